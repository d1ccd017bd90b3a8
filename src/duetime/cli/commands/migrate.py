"""`duetime migrate`: bring the schema of the store up to date before a release needs it."""

from pathlib import Path
from typing import Annotated

import typer

from duetime.cli.options import ConfigOption
from duetime.cli.output.schema_report import refuse_newer, report_applied, report_check
from duetime.cli.store_access import run_on_store, store_settings
from duetime.settings import MemoryStoreSettings, PostgresStoreSettings, SqliteStoreSettings


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; tell whether something is missing.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Apply the migrations of the store that are missing.

    `serve` does the same when it starts; this is for those who want it done before. With `--check`
    the exit status is 0 if the schema is up to date, 1 if it is not, 3 if the store cannot be
    reached.
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
    from duetime.stores.sqlite.inspector import schema_version
    from duetime.stores.sqlite.schema import migrations

    newest = migrations()[-1][0]
    version = schema_version(path)
    refuse_newer(version, newest)
    if check:
        report_check(version, newest)
        return
    if version < newest:
        # Opening the store migrates it, under the lock that keeps other processes out.
        store = SqliteStore(path)
        await store.open()
        await store.close()
    report_applied(range(version + 1, newest + 1), newest)


async def _migrate_postgres(
    store: PostgresStoreSettings, retention_days: float, check: bool
) -> None:
    from duetime.composition import postgres_options
    from duetime.stores.postgres import schema

    options = postgres_options(store, retention_days)
    version, newest = await schema.check(options)
    refuse_newer(version or 0, newest)
    if check:
        report_check(version or 0, newest)
    else:
        report_applied(await schema.migrate(options), newest)
