"""Migrations of the SQLite file, and the files that are refused."""

import threading
from pathlib import Path

import apsw
import pytest

from duetime.domain.errors import SchemaRefused, StoreUnavailable
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.stores.migrations import Migration
from duetime.stores.operation_rows import operation_text
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.connections import connect
from duetime.stores.sqlite.disk import opening
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.stores.sqlite.schema import migrate, migrations, schema_version
from duetime.testing.store_contract.redriving import operation
from duetime.testing.store_contract.steps import at, brought_to, own_shards
from duetime.testing.timers import make_timer

NEWEST = migrations()[-1][0]

NEXT_MIGRATION = (
    NEWEST + 1,
    """
    ALTER TABLE timers ADD COLUMN color TEXT NOT NULL DEFAULT 'red';
    UPDATE timers SET color = 'blue' WHERE id = 'pending';
    """,
)
BROKEN_MIGRATION = (NEWEST + 1, "CREATE TABLE half_done (a INTEGER); SELECT nothing FROM nowhere;")

# As written before the first release: the tables that matter here, and no application id.
PRERELEASE_TABLES = """
    CREATE TABLE namespaces (name TEXT PRIMARY KEY, num_shards INTEGER NOT NULL)
        STRICT, WITHOUT ROWID;
    CREATE TABLE timers (
        row_id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, id TEXT NOT NULL,
        shard INTEGER NOT NULL, timer_uuid BLOB NOT NULL, created_at INTEGER NOT NULL,
        delivery_id TEXT NOT NULL, callback TEXT NOT NULL, retry_policy TEXT, metadata TEXT,
        correlation_id TEXT, fingerprint BLOB) STRICT;
    CREATE TABLE unfiled_blocks (
        block_id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, created_at INTEGER NOT NULL,
        first_due INTEGER NOT NULL, first_uuid BLOB NOT NULL, instants BLOB NOT NULL,
        uuids BLOB NOT NULL, timers TEXT NOT NULL) STRICT;
    INSERT INTO timers VALUES (1, 'default', 'a', 0, x'00', 0, 'd', '{}', NULL, NULL, NULL, NULL);
"""


@pytest.fixture(params=[1, 2])
def prerelease(request: pytest.FixtureRequest, path: Path) -> Path:
    """A file of either schema version that existed before the first release."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(PRERELEASE_TABLES)
    connection.pragma("user_version", request.param)
    connection.close()
    return path


def migrate_file(path: Path, known: list[Migration]) -> None:
    connection = apsw.Connection(str(path))
    try:
        migrate(connection, known)
    finally:
        connection.close()


async def fill(path: Path) -> None:
    """A timer of each status."""
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    leases = await own_shards(store)
    for seconds, status in enumerate(reversed(TimerStatus)):
        await brought_to(store, leases, make_timer(status.label, execute_at=at(seconds)), status)
    await store.close()


def content_of(path: Path) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        tables = ("timers", "live_timers", "finished_timers", "counts", "shards")
        return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]
    finally:
        connection.close()


async def test_a_file_of_the_previous_schema_is_upgraded_with_its_timers(path: Path) -> None:
    await fill(path)
    before = content_of(path)
    migrate_file(path, [*migrations(), NEXT_MIGRATION])
    assert schema_version(path) == NEWEST + 1
    colors = [row[-1] for row in content_of(path)[:5]]
    assert colors == ["red", "red", "red", "red", "blue"]
    assert [row[:-1] for row in content_of(path)[:5]] == before[:5]
    assert content_of(path)[5:] == before[5:]


async def test_operations_from_before_their_namespaces_were_searched_for_are_found(
    path: Path,
) -> None:
    migrate_file(path, [each for each in migrations() if each[0] < 5])
    old = operation(namespace='odd "name" é')
    connection = apsw.Connection(str(path))
    row = (old.id, old.created_at, old.updated_at, old.version, old.is_running, operation_text(old))
    connection.execute("INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.close()
    store = SqliteStore(path)
    await store.open()
    found = await store.operations(running=False, limit=9, namespaces=[old.namespace])
    await store.close()
    assert list(found) == [old]


async def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    await fill(path)
    before = content_of(path)
    with pytest.raises(apsw.SQLError):
        migrate_file(path, [*migrations(), BROKEN_MIGRATION])
    assert schema_version(path) == NEWEST
    assert content_of(path) == before
    migrate_file(path, [*migrations(), NEXT_MIGRATION])
    assert schema_version(path) == NEWEST + 1


async def test_a_file_of_a_newer_release_is_refused(path: Path) -> None:
    migrate_file(path, [*migrations(), NEXT_MIGRATION])
    with pytest.raises(StoreUnavailable, match=f"version {NEWEST + 1}.*start a newer release"):
        await SqliteStore(path).open()
    with pytest.raises(StoreUnavailable, match=f"version {NEWEST + 1}.*use a newer release"):
        await SqliteInspector(path).open()


async def test_a_file_that_is_up_to_date_is_left_alone(path: Path) -> None:
    await fill(path)
    before = path.read_bytes()
    migrate_file(path, migrations())
    assert path.read_bytes() == before


async def test_a_file_from_before_the_first_release_is_refused(prerelease: Path) -> None:
    before = prerelease.read_bytes()
    message = "from before the first release.*start with a new file"
    with pytest.raises(StoreUnavailable, match=message) as refused:
        await SqliteStore(prerelease).open()
    assert str(prerelease) in refused.value.message
    with pytest.raises(StoreUnavailable, match=message):
        await SqliteInspector(prerelease).open()
    with pytest.raises(StoreUnavailable, match=message):
        schema_version(prerelease)
    assert prerelease.read_bytes() == before


@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
@pytest.mark.parametrize(
    ("application_id", "version"), [(0, 0), (0, 7), (0x47504B47, 0), (0x47504B47, 1)]
)
async def test_a_file_of_another_program_is_refused_and_left_as_it_was(
    path: Path, application_id: int, version: int, journal_mode: str
) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", journal_mode)
    connection.execute("CREATE TABLE accounts (name TEXT); INSERT INTO accounts VALUES ('a')")
    connection.pragma("application_id", application_id)
    connection.pragma("user_version", version)
    connection.close()
    before = path.read_bytes()
    message = "timers.db is not a Duetime file: choose another path"
    with pytest.raises(SchemaRefused, match=message):
        await SqliteStore(path).open()
    with pytest.raises(SchemaRefused, match=message):
        await SqliteInspector(path).open()
    with pytest.raises(SchemaRefused, match=message):
        schema_version(path)
    assert path.read_bytes() == before


async def test_an_empty_file_with_the_mark_of_another_program_is_refused(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", 0x47504B47)
    connection.close()
    with pytest.raises(SchemaRefused, match="not a Duetime file"):
        await SqliteStore(path).open()


@pytest.mark.parametrize("failing", ["Reader", "Checkpointer", "migrate"])
async def test_a_store_that_fails_to_open_lets_go_of_the_file(
    path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[apsw.Connection] = []

    def recording_connect(path: Path, cache_kib: int) -> apsw.Connection:
        opened.append(connect(path, cache_kib))
        return opened[-1]

    def fail(*_: object, **__: object) -> None:
        raise apsw.IOError("disk I/O error")

    await fill(path)
    threads = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(opening, "connect", recording_connect)
        patch.setattr(opening, failing, fail)
        with pytest.raises(StoreUnavailable, match=r"cannot open .* disk I/O error"):
            await SqliteStore(path).open()
    (connection,) = opened
    with pytest.raises(apsw.ConnectionClosedError):
        connection.execute("SELECT 1")
    left = {each.name for each in set(threading.enumerate()) - threads}
    assert not any(name.startswith("duetime") for name in left)
    store = SqliteStore(path)
    await store.open()
    await store.close()
