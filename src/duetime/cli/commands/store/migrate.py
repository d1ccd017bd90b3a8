"""`duetime migrate`: bring the schema of the store up to date.

The version of a store is the number of its newest migration, and 0 if it has no schema.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from duetime.cli.commands.options import ConfigOption
from duetime.cli.commands.store.access import run_on_store, store_settings
from duetime.cli.terminal import ExitCode, fail
from duetime.settings import MemoryStoreSettings, PostgresStoreSettings, SqliteStoreSettings


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; show which migrations are missing.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Apply missing migrations to the store.

    `serve` does the same when it starts; this command does it beforehand. With `--check` the exit
    status is 0 if the schema is up to date, 1 if it is not, 3 if the store cannot be reached.
    """
    settings = store_settings(config)
    match settings.store:
        case SqliteStoreSettings(path=path):
            run_on_store(_migrate_sqlite(path, check))
        case PostgresStoreSettings() as postgres:
            run_on_store(_migrate_postgres(postgres, settings.retention_days, check))
        case MemoryStoreSettings():
            print("timers are kept in memory: there is no schema")


async def _migrate_sqlite(path: Path, check: bool) -> None:
    from duetime.stores.sqlite import SqliteStore
    from duetime.stores.sqlite.schema import migrations, schema_version

    newest = migrations()[-1][0]
    version = schema_version(path)
    _refuse_newer(version, newest)
    if check:
        _report_check(version, newest)
        return
    if version < newest:
        # Opening the store migrates it, under the lock that keeps other processes out.
        store = SqliteStore(path)
        await store.open()
        await store.close()
    _report_applied(range(version + 1, newest + 1), newest)


async def _migrate_postgres(
    store: PostgresStoreSettings, retention_days: float, check: bool
) -> None:
    from duetime.store_adapters import postgres_options
    from duetime.stores.postgres import schema

    options = postgres_options(store, retention_days)
    version, newest = await schema.check(options)
    _refuse_newer(version or 0, newest)
    if check:
        _report_check(version or 0, newest)
    else:
        _report_applied(await schema.migrate(options), newest)


def _refuse_newer(version: int, newest: int) -> None:
    """End the command if the store was migrated by a newer release."""
    if version > newest:
        fail(
            f"the schema has version {version}, but this release of Duetime knows only"
            f" version {newest}: use a newer release",
            ExitCode.FAILED,
        )


def _report_check(version: int, newest: int) -> None:
    """Print the missing migrations. Ends the command if there are any."""
    for number in range(version + 1, newest + 1):
        print(f"missing migration {number}")
    if version == newest:
        print(_up_to_date(newest))
    elif version:
        fail(
            f"the schema has version {version} and this release needs version {newest}:"
            " run `duetime migrate`",
            ExitCode.FAILED,
        )
    else:
        fail("there is no schema yet: run `duetime migrate`", ExitCode.FAILED)


def _report_applied(applied: Iterable[int], newest: int) -> None:
    for number in applied:
        print(f"applied migration {number}")
    print(_up_to_date(newest))


def _up_to_date(version: int) -> str:
    return f"schema is up to date (version {version})"
