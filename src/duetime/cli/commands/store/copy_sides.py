"""The two stores of `duetime copy`: from their URLs to a source and a target."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from duetime.cli.commands.store.access import opened, store_name
from duetime.cli.commands.store.liveness import look_twice
from duetime.cli.terminal import ExitCode, fail, refuse
from duetime.domain.errors import CopyRefused, SettingsError
from duetime.domain.wording import counted
from duetime.settings import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
    load_settings_for_store,
)
from duetime.settings.postgres_address import SCHEMES as POSTGRES_SCHEMES
from duetime.store_adapters import postgres_options
from duetime.stores.copying.ports import CopySource
from duetime.stores.copying.run import Sides

SHOWN_NODES = 5
URL_FORMS = "postgresql://user@host/database, sqlite:///path.db, or the path of a SQLite file"

_SCHEMES = {*POSTGRES_SCHEMES, "sqlite", "memory"}


class Side(NamedTuple):
    """A store, and the settings of a service on it."""

    store: SqliteStoreSettings | PostgresStoreSettings
    settings: Settings

    @property
    def name(self) -> str:
        """The store for a person, without secrets."""
        name = store_name(self.store)
        if isinstance(self.store, PostgresStoreSettings):
            return f"{name} (schema {self.store.schema})"
        return name


def read_side(
    option: str, url: str, schema: str | None, config: Path | None, server_settings: dict[str, str]
) -> Side:
    """Ends the command if the option is wrong."""
    scheme, has_scheme, _ = url.partition("://")
    is_path = not has_scheme and not url.startswith("memory:")
    if has_scheme and scheme not in _SCHEMES:
        refuse(option, f"must be {URL_FORMS}")
    try:
        settings = load_settings_for_store(
            f"sqlite:///{url}" if is_path else url,
            schema,
            os.environ | server_settings,
            toml_path=config,
            source=option,
        )
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)
    if isinstance(settings.store, MemoryStoreSettings):
        refuse(option, "timers in memory cannot be copied: they live in the process of a server")
    return Side(settings.store, settings)


def refuse_pair(source: Side, target: Side) -> None:
    """End the command if there is nothing to copy between the two."""
    if source.name == target.name:
        refuse("--to", f"is the same store as --from: {source.name}")
    if isinstance(source.store, SqliteStoreSettings) and isinstance(
        target.store, SqliteStoreSettings
    ):
        refuse("--to", "is a file like --from: use `duetime backup` and `duetime restore`")


@asynccontextmanager
async def opened_sides(source: Side, target: Side) -> AsyncIterator[Sides]:
    """Both stores, the target open for writing. Raises `StoreUnavailable`, also if a service runs
    on one of them."""
    async with reading(source) as content:
        if isinstance(target.store, SqliteStoreSettings):
            from duetime.stores.sqlite.copying import target as sqlite

            reserve_bytes = target.settings.disk_reserve_bytes
            async with sqlite.opened_target(target.store.path, reserve_bytes) as (writing, back):
                yield Sides(
                    source_name=source.name,
                    source=content,
                    target=writing,
                    read_back=lambda: nullcontext(back),
                    read_again=partial(_reading_again, source, content),
                )
        else:
            from duetime.stores.postgres.copying import source as postgres_source
            from duetime.stores.postgres.copying import target as postgres

            options = postgres_options(target.store, target.settings.retention_days)
            async with postgres.opened_target(options) as copied:
                yield Sides(
                    source_name=source.name,
                    source=content,
                    target=copied,
                    read_back=partial(postgres_source.opened_source, options),
                    read_again=partial(_reading_again, source, content),
                )


@asynccontextmanager
async def reading(side: Side) -> AsyncIterator[CopySource]:
    """The content of a store on which no service runs."""
    if isinstance(side.store, SqliteStoreSettings):
        from duetime.stores.sqlite.copying.source import locked_source

        async with locked_source(side.store.path) as file:
            yield file
    else:
        from duetime.stores.postgres.copying.source import opened_source

        await _refuse_living_members(side)
        options = postgres_options(side.store, side.settings.retention_days)
        async with opened_source(options) as schema:
            yield schema


@asynccontextmanager
async def _reading_again(side: Side, content: CopySource) -> AsyncIterator[CopySource]:
    """A file has been locked all the time; a database may have got a node."""
    if isinstance(side.store, SqliteStoreSettings):
        yield content
    else:
        async with reading(side) as again:
            yield again


async def _refuse_living_members(side: Side) -> None:
    from duetime.cli.commands.store.access import inspector_of

    inspector = inspector_of(side.store, side.settings)
    async with opened(inspector):
        if not (await inspector.cluster()).view.members:
            return
        facts, silent = await look_twice(inspector, side.settings.lease_seconds)
    living = sorted({member.node for member in facts.view.members} - silent)
    if living:
        raise CopyRefused(
            f"{side.name} is in use by {counted(len(living), 'node')}"
            f" ({', '.join(living[:SHOWN_NODES])}): stop them first, so that nothing changes during"
            " the copy"
        )
