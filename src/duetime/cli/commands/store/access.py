"""The configured store, for commands that open it without a server."""

import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar, assert_never

from duetime.cli.terminal import ExitCode, fail
from duetime.domain.errors import CopyRefused, DuetimeError, SchemaRefused, SettingsError
from duetime.event_loop import run
from duetime.ports.inspection import StoreInspector
from duetime.settings import (
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
    load_settings,
)

ResultT = TypeVar("ResultT")

# These settings concern the server only, so a command does not fail if they are wrong.
_SERVER_SETTINGS = {"AUTH": "none", "WORKERS": "1"}


def store_settings(config: Path | None) -> Settings:
    """The settings as `serve` reads them, without the need for an API key. Ends the command if a
    setting is wrong."""
    try:
        return load_settings(os.environ | _SERVER_SETTINGS, toml_path=config)
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)


def run_on_store(main: Coroutine[None, None, ResultT]) -> ResultT:
    """Run the coroutine. Ends the command if the store cannot be reached or used."""
    with ending_on_store_errors():
        return run(main)


@contextmanager
def ending_on_store_errors() -> Iterator[None]:
    try:
        yield
    except (SchemaRefused, CopyRefused) as error:
        fail(error.message, ExitCode.FAILED)
    except DuetimeError as error:
        fail(error.message, ExitCode.UNREACHABLE)


@asynccontextmanager
async def opened(inspector: StoreInspector) -> AsyncIterator[None]:
    await inspector.open()
    try:
        yield
    finally:
        await inspector.close()


def inspector_of(
    store: SqliteStoreSettings | PostgresStoreSettings, settings: Settings
) -> StoreInspector:
    match store:
        case SqliteStoreSettings(path=path):
            from duetime.stores.sqlite.inspector import SqliteInspector

            return SqliteInspector(path)
        case PostgresStoreSettings():
            from duetime.store_adapters import postgres_options
            from duetime.stores.postgres.inspection.inspector import PostgresInspector

            return PostgresInspector(postgres_options(store, settings.retention_days))
        case _ as unreachable:
            assert_never(unreachable)
