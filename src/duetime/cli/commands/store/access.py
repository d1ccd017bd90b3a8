"""The configured store, for commands that open it without a server."""

import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, assert_never

from duetime.cli.client.dev_server import DEV_DB_PATH
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
from duetime.settings.definitions import SETTINGS
from duetime.settings.postgres_address import PostgresAddress

ResultT = TypeVar("ResultT")

# These settings concern the server only, so a command does not fail if they are wrong.
SERVER_SETTINGS = {"AUTH": "none", "WORKERS": "1"}


def store_settings(config: Path | None) -> Settings:
    """The settings as `serve` reads them, without the need for an API key. Ends the command if a
    setting is wrong."""
    try:
        return load_settings(os.environ | SERVER_SETTINGS, toml_path=config)
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


def require_file(database: Path, command: str) -> None:
    """End the command if there is no file, with a word on that of `duetime dev` if `serve` was
    never started here."""
    if database.is_file():
        return
    problem = f"cannot open {database}: there is no such file"
    if database == Path(SETTINGS["TIMER_DB_PATH"].default or "") and DEV_DB_PATH.is_file():
        problem += (
            f"; `duetime dev` keeps its timers in {DEV_DB_PATH}:"
            f" TIMER_DB_PATH={DEV_DB_PATH} duetime {command}"
        )
    fail(problem, ExitCode.UNREACHABLE)


def store_name(store: SqliteStoreSettings | PostgresStoreSettings) -> str:
    """The store for a person: an absolute path, or a URL without secrets."""
    if isinstance(store, SqliteStoreSettings):
        return str(store.path.absolute())
    return without_secrets(store.url)


def without_secrets(url: str) -> str:
    """The URL of a PostgreSQL database without passwords."""
    address = PostgresAddress.from_url(url)
    parameters = tuple(each for each in address.parameters if each[0] != "sslpassword")
    return replace(address, password=None, parameters=parameters).url


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
