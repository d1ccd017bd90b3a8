"""`duetime migrate`: bring the schema of the store up to date.

The version of a store is the number of its newest migration, and 0 if it has no schema.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, NoReturn, assert_never

import typer

from duetime.cli.commands.options import ConfigOption
from duetime.cli.commands.store.access import run_on_store, store_settings
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail
from duetime.settings import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Schema:
    """The schema after the command. The names are those of the documented JSON."""

    store: str
    version: int
    newest: int
    applied: Sequence[int] = field(default_factory=list)
    missing: Sequence[int] = field(default_factory=list)


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; show which migrations are missing.")
    ] = False,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Apply missing migrations to the store.

    `serve` does the same when it starts; this command does it beforehand. With `--check` the exit
    status is 0 if the schema is up to date, 1 if it is not, 3 if the store cannot be reached.
    """
    schema = _migrate(store_settings(config), check)
    if as_json:
        print_json(asdict(schema))
    else:
        _print(schema)
    if schema.missing:
        _fail_missing(schema)


def _migrate(settings: Settings, check: bool) -> _Schema:
    match settings.store:
        case SqliteStoreSettings(path=path):
            return run_on_store(_migrate_sqlite(path, check))
        case PostgresStoreSettings() as postgres:
            return run_on_store(_migrate_postgres(postgres, settings.retention_days, check))
        case MemoryStoreSettings():
            return _Schema(store="memory", version=0, newest=0)
        case _ as unreachable:
            assert_never(unreachable)


async def _migrate_sqlite(path: Path, check: bool) -> _Schema:
    from duetime.stores.sqlite import SqliteStore
    from duetime.stores.sqlite.schema import migrations, schema_version

    newest = migrations()[-1][0]
    version = schema_version(path)
    _refuse_newer(version, newest)
    if check:
        return _checked("sqlite", version, newest)
    if version < newest:
        # Opening the store migrates it, under the lock that keeps other processes out.
        store = SqliteStore(path)
        await store.open()
        await store.close()
    applied = list(range(version + 1, newest + 1))
    return _Schema(store="sqlite", version=newest, newest=newest, applied=applied)


async def _migrate_postgres(
    store: PostgresStoreSettings, retention_days: float, check: bool
) -> _Schema:
    from duetime.store_adapters import postgres_options
    from duetime.stores.postgres import schema

    options = postgres_options(store, retention_days)
    version, newest = await schema.check(options)
    _refuse_newer(version or 0, newest)
    if check:
        return _checked("postgres", version or 0, newest)
    applied = list(await schema.migrate(options))
    return _Schema(store="postgres", version=newest, newest=newest, applied=applied)


def _checked(store: str, version: int, newest: int) -> _Schema:
    missing = list(range(version + 1, newest + 1))
    return _Schema(store=store, version=version, newest=newest, missing=missing)


def _refuse_newer(version: int, newest: int) -> None:
    """End the command if the store was migrated by a newer release."""
    if version > newest:
        fail(
            f"the schema has version {version}, but this release of Duetime knows only"
            f" version {newest}: use a newer release",
            ExitCode.FAILED,
        )


def _print(schema: _Schema) -> None:
    if schema.store == "memory":
        print("timers are kept in memory: there is no schema")
        return
    for number in schema.missing:
        print(f"missing migration {number}")
    for number in schema.applied:
        print(f"applied migration {number}")
    if not schema.missing:
        print(f"schema is up to date (version {schema.version})")


def _fail_missing(schema: _Schema) -> NoReturn:
    if schema.version:
        fail(
            f"the schema has version {schema.version} and this release needs version"
            f" {schema.newest}: run `duetime migrate`",
            ExitCode.FAILED,
        )
    fail("there is no schema yet: run `duetime migrate`", ExitCode.FAILED)
