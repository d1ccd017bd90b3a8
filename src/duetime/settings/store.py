"""The store that the settings name. Several settings may name it; they must agree."""

import os
from dataclasses import replace

from duetime.settings.connection_definitions import StoreParts
from duetime.settings.given_values import GivenValues
from duetime.settings.postgres_address import PostgresAddress
from duetime.settings.values import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    SqliteStoreSettings,
    StoreSettings,
)

_REMOVE_ONE = "remove one of the two"


def read_store(parts: StoreParts, given: GivenValues) -> StoreSettings | None:
    """DATABASE_URL takes precedence over PG_HOST, which takes precedence over TIMER_DB_PATH. It is
    a problem if they contradict each other. None if the given values name no store."""
    if given.has("DATABASE_URL"):
        by_url = parts.database_url
        if by_url is None:
            return None
        _check_other_stores(parts, by_url, given)
        if isinstance(by_url, PostgresAddress):
            return _postgres(parts, _completed(by_url, parts, given))
        return by_url
    if given.has("PG_HOST"):
        if given.has("TIMER_DB_PATH"):
            given.problem("TIMER_DB_PATH", f"names another store than PG_HOST; {_REMOVE_ONE}")
        address = _address(parts, given)
        return None if address is None else _postgres(parts, address)
    if not given.has("TIMER_DB_PATH"):
        for name in ("PG_USER", "PG_PASSWORD", "PG_DB_NAME"):
            if given.has(name):
                given.problem(name, "is set without PG_HOST; set that too, or remove this")
    return SqliteStoreSettings(parts.timer_db_path)


def _check_other_stores(
    parts: StoreParts,
    by_url: SqliteStoreSettings | MemoryStoreSettings | PostgresAddress,
    given: GivenValues,
) -> None:
    another = f"names another store than DATABASE_URL; {_REMOVE_ONE}"
    is_same_file = isinstance(by_url, SqliteStoreSettings) and (
        os.path.abspath(by_url.path) == os.path.abspath(parts.timer_db_path)
    )
    if given.has("TIMER_DB_PATH") and not is_same_file:
        given.problem("TIMER_DB_PATH", another)
    if given.has("PG_HOST") and not isinstance(by_url, PostgresAddress):
        given.problem("PG_HOST", another)


def _postgres(parts: StoreParts, address: PostgresAddress) -> PostgresStoreSettings:
    return PostgresStoreSettings(
        url=address.url,
        place=address.place,
        schema=parts.pg_schema,
        pool_size=parts.pg_pool_size,
        statement_timeout_seconds=parts.pg_statement_timeout_seconds,
    )


def _address(parts: StoreParts, given: GivenValues) -> PostgresAddress | None:
    """The address of PG_HOST and the settings beside it."""
    needed = {
        "PG_USER": "PG_HOST is set, so the user to connect as is needed too",
        "PG_DB_NAME": "PG_HOST is set, so the name of the database is needed too",
    }
    hosts = parts.pg_host
    if hosts and not all(host.startswith("/") for host in hosts):
        needed["PG_PASSWORD"] = "set it, or use DATABASE_URL for a server that asks for none"
    for name, why in needed.items():
        if not given.has(name):
            given.missing(name, why)
    if not hosts or not parts.pg_db_name:
        return None
    return PostgresAddress(
        hosts=tuple((host, parts.pg_port) for host in hosts),
        database=parts.pg_db_name,
        user=parts.pg_user,
        password=parts.pg_password,
    )


def _completed(by_url: PostgresAddress, parts: StoreParts, given: GivenValues) -> PostgresAddress:
    """The address of the URL. The other settings may repeat it, and may add user and password, for
    example from a secret."""
    user, password = parts.pg_user, parts.pg_password
    agreements = {
        "PG_HOST": parts.pg_host in (None, tuple(host for host, _ in by_url.hosts)),
        "PG_PORT": {port for _, port in by_url.hosts} == {parts.pg_port},
        "PG_DB_NAME": parts.pg_db_name in (None, by_url.database),
        "PG_USER": None in (user, by_url.user) or user == by_url.user,
        "PG_PASSWORD": None in (password, by_url.password) or password == by_url.password,
    }
    for name, agrees in agreements.items():
        if given.has(name) and not agrees:
            given.problem(name, f"differs from DATABASE_URL; {_REMOVE_ONE}")
    return replace(by_url, user=by_url.user or user, password=by_url.password or password)
