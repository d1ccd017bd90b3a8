"""The configured store, for commands that look into it without a server."""

import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, assert_never

from duetime.cli.output.terminal import ExitCode, fail
from duetime.domain.errors import DuetimeError, SettingsError
from duetime.ports.inspection import StoreInspector
from duetime.server.event_loop import run
from duetime.settings import (
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
    load_settings,
)

ResultT = TypeVar("ResultT")

# What is of no concern to somebody who only looks: callers, and how many processes there are.
_NOT_ASKED_FOR = {"AUTH": "none", "WORKERS": "1"}


def store_settings(config: Path | None) -> Settings:
    """The settings as `serve` reads them, but no API key is needed. Ends the command if one of
    them is wrong."""
    try:
        return load_settings(os.environ | _NOT_ASKED_FOR, toml_path=config)
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)


def run_on_store(main: Coroutine[None, None, ResultT]) -> ResultT:
    """Run to the end, which a store that cannot be reached brings early."""
    try:
        return run(main)
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
            from duetime.composition import postgres_options
            from duetime.stores.postgres.inspector import PostgresInspector

            return PostgresInspector(postgres_options(store, settings.retention_days))
        case _ as unreachable:
            assert_never(unreachable)
