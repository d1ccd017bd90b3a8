"""The schema's migrations, applied in order, by one node at a time."""

import asyncpg

from duetime.domain.errors import SchemaRefused, StoreUnavailable
from duetime.stores.migrations import Migration, read_migrations, refuse_newer
from duetime.stores.postgres.connections import ANY_PLAN, Connection, connected
from duetime.stores.postgres.options import PostgresOptions

OLDEST_SERVER_VERSION = 15
_MIGRATION_TIMEOUT_SECONDS = 600.0

_LOCK_TIMEOUT_MS = 200
"""Time that a migration waits for a table. A node at work may hold one table and wait for another
that the migration has locked. The migration gives way before PostgreSQL's `deadlock_timeout` (a
second) would make the node fail."""

_MAX_TRIES = 300

_SERVER = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"

_VERSION_TABLES = """
    SELECT to_regclass($1 || '.schema_version') IS NOT NULL
               AND to_regclass($1 || '.pending_timers') IS NOT NULL,
           to_regclass($1 || '.applied_migrations') IS NOT NULL
"""
_APPLIED = "SELECT array(SELECT version FROM applied_migrations)"

_FIND_SCHEMA = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)"
_CREATE_VERSIONS = "CREATE TABLE IF NOT EXISTS applied_migrations (version integer PRIMARY KEY)"
_ADD_VERSION = "INSERT INTO applied_migrations (version) VALUES ($1)"

# Nodes that start together take turns. The lock's two numbers stand for Duetime and the schema.
_TAKE_TURN = "SELECT pg_advisory_xact_lock(1685419380, hashtext($1))"
_LET_OTHERS_WORK = "SELECT pg_sleep(0.05)"
_SET_LOCK_TIMEOUT = f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_MS}ms'"


def migrations() -> list[Migration]:
    return read_migrations("duetime.stores.postgres")


def newest_version() -> int:
    return migrations()[-1][0]


async def check(options: PostgresOptions) -> tuple[int | None, int]:
    """The database's version, None if it has no schema, and the newest version known.

    Changes nothing. Raises `StoreUnavailable`.
    """
    async with connected(options, ANY_PLAN) as connection:
        await check_server(connection, options)
        return await stored_version(connection, options), newest_version()


async def migrate(options: PostgresOptions) -> list[int]:
    """Bring the schema up to date; answers the versions applied, none if it was up to date.

    Several nodes may call this at once: each version is applied by one of them, and all return
    once it is. A schema of a newer release is refused. Raises `StoreUnavailable`.
    """
    async with connected(
        options, ANY_PLAN, statement_timeout_seconds=_MIGRATION_TIMEOUT_SECONDS
    ) as connection:
        await check_server(connection, options)
        stored = await stored_version(connection, options)
        refuse_newer(stored, newest_version())
        if stored == newest_version():
            return []
        for _ in range(_MAX_TRIES):
            try:
                async with connection.transaction():
                    return await _apply(connection, options)
            except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                await connection.execute(_LET_OTHERS_WORK)
        raise SchemaRefused(
            f"PostgreSQL ({options.place}): the schema could not be migrated, because its tables"
            " are in use all the time: try again, or stop what holds them for so long"
        )


async def _apply(connection: Connection, options: PostgresOptions) -> list[int]:
    await connection.execute(_TAKE_TURN, options.schema)
    await connection.execute(_SET_LOCK_TIMEOUT)
    # CREATE SCHEMA IF NOT EXISTS needs the privilege to create it even where it exists.
    if not await connection.fetchval(_FIND_SCHEMA, options.schema):
        await connection.execute(f'CREATE SCHEMA "{options.schema}"')
    stored = await stored_version(connection, options)
    refuse_newer(stored, newest_version())
    await connection.execute(_CREATE_VERSIONS)
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
            f"PostgreSQL ({options.place}) is version {version // 10_000}, but Duetime needs"
            f" {OLDEST_SERVER_VERSION} or newer"
        )
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"PostgreSQL ({options.place}) keeps text as {encoding}, but Duetime needs a"
            " database with the encoding UTF8: create one"
        )


async def stored_version(connection: Connection, options: PostgresOptions) -> int | None:
    """The schema's version, None if there is no schema. Refuses one whose list of migrations has
    gaps, and one from before the first release: its versions were numbered differently, in the
    table `schema_version`. Alone, a table of that name may belong to another program."""
    tables = await connection.fetchrow(_VERSION_TABLES, f'"{options.schema}"')
    assert tables is not None
    is_from_before_first_release, has_versions = tables
    if is_from_before_first_release:
        raise SchemaRefused(
            f"PostgreSQL ({options.place}): the schema {options.schema!r} is from before the first"
            " release of Duetime and cannot be upgraded: set PG_SCHEMA to another name (to keep the"
            " timers, export them with the version that wrote the schema, and import them)"
        )
    if not has_versions:
        return None
    applied = await connection.fetchval(_APPLIED)
    version: int = max(applied, default=0)
    lacking = [number for number, _ in migrations() if number <= version and number not in applied]
    if lacking or not applied:
        raise SchemaRefused(
            f"PostgreSQL ({options.place}): the schema {options.schema!r} is not whole: its table"
            f" applied_migrations lacks {', '.join(map(str, lacking)) or 'all entries'}. Restore a"
            " backup, or set PG_SCHEMA to another name"
        )
    return version
