"""Which store the settings name. Several may; they must agree."""

import os
from dataclasses import replace
from pathlib import Path

from duetime.settings import definitions as table
from duetime.settings.definitions import Setting
from duetime.settings.given_values import Texts
from duetime.settings.postgres_address import PostgresAddress
from duetime.settings.values import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    SqliteStoreSettings,
    StoreSettings,
)

_REMOVE_ONE = "remove one of the two"


def read_store(texts: Texts) -> StoreSettings | None:
    """DATABASE_URL goes before PG_HOST, which goes before TIMER_DB_PATH; all say the same, or it
    is a problem. None if what was given names no store."""
    path = texts.value(table.TIMER_DB_PATH)
    by_parts = _PostgresParts(texts)
    if texts.has(table.DATABASE_URL):
        by_url = texts.optional(table.DATABASE_URL)
        if by_url is None:
            return None
        _check_other_stores(texts, by_url, path)
        if isinstance(by_url, PostgresAddress):
            return by_parts.store(by_parts.completed(by_url))
        return by_url
    if texts.has(table.PG_HOST):
        if texts.has(table.TIMER_DB_PATH):
            texts.problem(table.TIMER_DB_PATH, f"names another store than PG_HOST; {_REMOVE_ONE}")
        address = by_parts.address()
        return None if address is None else by_parts.store(address)
    if not texts.has(table.TIMER_DB_PATH):
        for setting in (table.PG_USER, table.PG_PASSWORD, table.PG_DB_NAME):
            if texts.has(setting):
                texts.problem(setting, "is set without PG_HOST; set that too, or remove this")
    return SqliteStoreSettings(path)


def _check_other_stores(
    texts: Texts,
    by_url: SqliteStoreSettings | MemoryStoreSettings | PostgresAddress,
    path: Path,
) -> None:
    another = f"names another store than DATABASE_URL; {_REMOVE_ONE}"
    is_same_file = isinstance(by_url, SqliteStoreSettings) and (
        os.path.abspath(by_url.path) == os.path.abspath(path)
    )
    if texts.has(table.TIMER_DB_PATH) and not is_same_file:
        texts.problem(table.TIMER_DB_PATH, another)
    if texts.has(table.PG_HOST) and not isinstance(by_url, PostgresAddress):
        texts.problem(table.PG_HOST, another)


class _PostgresParts:
    """PostgreSQL in several settings rather than in one URL."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._hosts = texts.optional(table.PG_HOST)
        self._port = texts.value(table.PG_PORT)
        self._user = texts.optional(table.PG_USER)
        self._password = texts.optional(table.PG_PASSWORD)
        self._database = texts.optional(table.PG_DB_NAME)
        self._schema = texts.value(table.PG_SCHEMA)
        self._pool_size = texts.value(table.PG_POOL_SIZE)
        self._statement_timeout_seconds = texts.value(table.PG_STATEMENT_TIMEOUT_SECONDS)

    def store(self, address: PostgresAddress) -> PostgresStoreSettings:
        return PostgresStoreSettings(
            url=address.url,
            place=address.place,
            schema=self._schema,
            pool_size=self._pool_size,
            statement_timeout_seconds=self._statement_timeout_seconds,
        )

    def address(self) -> PostgresAddress | None:
        needed: list[tuple[Setting[object], str]] = [
            (table.PG_USER, "PG_HOST is set, so the user to connect as is needed too"),
            (table.PG_DB_NAME, "PG_HOST is set, so the name of the database is needed too"),
        ]
        if self._hosts and not all(host.startswith("/") for host in self._hosts):
            wanted = "set it, or use DATABASE_URL for a server that asks for none"
            needed.append((table.PG_PASSWORD, wanted))
        for setting, why in needed:
            if not self._texts.has(setting):
                self._texts.missing(setting, why)
        if not self._hosts or not self._database:
            return None
        return PostgresAddress(
            hosts=tuple((host, self._port) for host in self._hosts),
            database=self._database,
            user=self._user,
            password=self._password,
        )

    def completed(self, by_url: PostgresAddress) -> PostgresAddress:
        """Parts may repeat what the URL says and add user and password, e.g. from a secret."""
        host_names = tuple(host for host, _ in by_url.hosts)
        ports = {port for _, port in by_url.hosts}
        self._check(table.PG_HOST, self._hosts in (None, host_names))
        self._check(table.PG_PORT, ports == {self._port})
        self._check(table.PG_DB_NAME, self._database in (None, by_url.database))
        self._check(table.PG_USER, None in (self._user, by_url.user) or self._user == by_url.user)
        self._check(
            table.PG_PASSWORD,
            None in (self._password, by_url.password) or self._password == by_url.password,
        )
        return replace(
            by_url,
            user=by_url.user or self._user,
            password=by_url.password or self._password,
        )

    def _check(self, setting: Setting[object], agrees: bool) -> None:
        if self._texts.has(setting) and not agrees:
            self._texts.problem(setting, f"differs from DATABASE_URL; {_REMOVE_ONE}")
