"""A target file of the release before: migrated if it is empty, and left alone if it is in use."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from duetime.domain.errors import CopyRefused
from duetime.domain.instants import Instant
from duetime.stores.sqlite import schema
from duetime.stores.sqlite.copying.target import opened_target

NOW = Instant(1_800_000_000_000_000)
THEIRS = "INSERT INTO namespaces (name, num_shards) VALUES ('theirs', 2)"


def copy_row(finished_at: str) -> str:
    return (
        "INSERT INTO copies (number, source, identity, timers, started_at, finished_at)"
        f" VALUES (1, 'PostgreSQL', 'postgres 1', 0, 1, {finished_at})"
    )


async def begin(path: Path) -> None:
    async with opened_target(path, 0) as (target, _):
        await target.begin("PostgreSQL", "postgres 1", NOW)


def former_file(path: Path, *statements: str) -> Path:
    with closing(apsw.Connection(str(path))) as connection:
        schema.migrate(connection, schema.migrations()[:-1])
        for statement in statements:
            connection.execute(statement)
    return path


async def test_an_empty_file_is_migrated(tmp_path: Path) -> None:
    path = former_file(tmp_path / "former.db")
    await begin(path)
    assert schema.schema_version(path) == schema.newest_version()


async def test_the_beginning_of_a_copy_goes_on(tmp_path: Path) -> None:
    path = former_file(tmp_path / "former.db", THEIRS, copy_row("NULL"))
    await begin(path)
    assert schema.schema_version(path) == schema.newest_version()


@pytest.mark.parametrize("statements", [(THEIRS,), (THEIRS, copy_row("2"))])
async def test_a_file_in_use_is_refused_as_it_is(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    path = former_file(tmp_path / "former.db", *statements)
    content = path.read_bytes()
    with pytest.raises(CopyRefused, match="is not empty: it has rows in namespaces"):
        await begin(path)
    assert path.read_bytes() == content
    assert schema.schema_version(path) == schema.newest_version() - 1
