"""Numbered migrations, applied in order, by one node at a time."""

from importlib import resources

import asyncpg

from duetime.domain.errors import StoreUnavailable
from duetime.stores.postgres.connections import ANY_PLAN, Connection, connected
from duetime.stores.postgres.options import PostgresOptions

OLDEST_SERVER_VERSION = 15
_MIGRATION_TIMEOUT_SECONDS = 600.0

_LOCK_PATIENCE_MS = 200
"""How long we wait for a table. Nodes at work may hold one and wait for another that we have: then
it is we who give way, before PostgreSQL's `deadlock_timeout` (a second) makes one of them fail."""

_MAX_TRIES = 300

_SERVER = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"

_FIND_VERSIONS = "SELECT to_regclass($1) IS NOT NULL"
_NEWEST_APPLIED = "SELECT max(version) FROM schema_version"

_FIND_SCHEMA = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)"
_CREATE_VERSIONS = "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY)"
_ADD_VERSION = "INSERT INTO schema_version (version) VALUES ($1)"

# Several nodes that start together take turns. The two numbers are ours and the schema's.
_TAKE_TURN = "SELECT pg_advisory_xact_lock(1685419380, hashtext($1))"
_LET_OTHERS_WORK = "SELECT pg_sleep(0.05)"
_BE_IMPATIENT = f"SET LOCAL lock_timeout = '{_LOCK_PATIENCE_MS}ms'"


def migrations() -> list[tuple[int, str]]:
    """Number and script of each migration, in order."""
    folder = resources.files("duetime.stores.postgres") / "migrations"
    scripts = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return [(int(script.name.split("_")[0]), script.read_text()) for script in scripts]


def newest_version() -> int:
    return migrations()[-1][0]


async def check(options: PostgresOptions) -> tuple[int | None, int]:
    """The version the database has, None if it has no schema, and the newest there is.

    Changes nothing. Raises `StoreUnavailable`.
    """
    async with connected(options, ANY_PLAN) as connection:
        await check_server(connection, options)
        return await stored_version(connection, options), newest_version()


async def migrate(options: PostgresOptions) -> list[int]:
    """Bring the schema up to date; the versions that were applied, none if it is.

    Several may do so at once: each version is applied by one of them, and all return when it
    is. A schema of a newer release is refused. Raises `StoreUnavailable`.
    """
    async with connected(
        options, ANY_PLAN, statement_timeout_seconds=_MIGRATION_TIMEOUT_SECONDS
    ) as connection:
        await check_server(connection, options)
        stored = await stored_version(connection, options)
        refuse_newer(stored)
        if stored == newest_version():
            return []
        for _ in range(_MAX_TRIES):
            try:
                return await _apply(connection, options)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                await connection.execute(_LET_OTHERS_WORK)
        raise StoreUnavailable(
            f"PostgreSQL ({options.place}): the schema could not be migrated, because its tables"
            " are in use all the time: try again, or stop what holds them for so long"
        )


async def _apply(connection: Connection, options: PostgresOptions) -> list[int]:
    async with connection.transaction():
        return await _apply_in_turn(connection, options)


async def _apply_in_turn(connection: Connection, options: PostgresOptions) -> list[int]:
    await connection.execute(_TAKE_TURN, options.schema)
    await connection.execute(_BE_IMPATIENT)
    # Creating it "if not exists" would need the privilege to create it even where it exists.
    if not await connection.fetchval(_FIND_SCHEMA, options.schema):
        await connection.execute(f'CREATE SCHEMA "{options.schema}"')
    await connection.execute(_CREATE_VERSIONS)
    stored = await connection.fetchval(_NEWEST_APPLIED)
    refuse_newer(stored)
    applied = []
    for number, script in migrations():
        if stored is None or number > stored:
            await connection.execute(script)
            await connection.execute(_ADD_VERSION, number)
            applied.append(number)
    return applied


async def check_server(connection: Connection, options: PostgresOptions) -> None:
    row = await connection.fetchrow(_SERVER)
    assert row is not None
    version, encoding = row
    if version < OLDEST_SERVER_VERSION * 10_000:
        raise StoreUnavailable(
            f"PostgreSQL ({options.place}) is version {version // 10_000}, but duetime needs"
            f" {OLDEST_SERVER_VERSION} or newer"
        )
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"PostgreSQL ({options.place}) keeps text as {encoding}, but duetime needs a"
            " database with the encoding UTF8: create one"
        )


async def stored_version(connection: Connection, options: PostgresOptions) -> int | None:
    if not await connection.fetchval(_FIND_VERSIONS, f'"{options.schema}".schema_version'):
        return None
    version: int | None = await connection.fetchval(_NEWEST_APPLIED)
    return version


def refuse_newer(stored: int | None) -> None:
    newest = newest_version()
    if stored is not None and stored > newest:
        raise StoreUnavailable(
            f"the database has schema version {stored}, but this release of duetime knows only"
            f" version {newest}: start a newer release"
        )
