"""From sources to checked settings, or to everything that is wrong with them at once."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from duetime.domain.errors import SettingsError
from duetime.settings import table
from duetime.settings.readers import PostgresUrl, host_in_url, without_user_info
from duetime.settings.sources import ENVIRONMENT, Given, gather
from duetime.settings.table import Auth, Setting
from duetime.settings.values import (
    LogLevel,
    NatsSettings,
    Settings,
    SqliteStoreSettings,
    StoreSettings,
)

ValueT = TypeVar("ValueT")

_NO_POSTGRES = (
    "PostgreSQL is not supported by this release yet; "
    "use SQLite instead, for example DATABASE_URL=sqlite:///duetime.db"
)


def load_settings(
    environ: Mapping[str, str],
    dotenv_path: Path | None = Path(".env"),
    toml_path: Path | None = None,
) -> Settings:
    """Read and check all settings.

    The environment goes before `.env`, which goes before the TOML file (`toml_path`, else
    DUETIME_CONFIG), which goes before the defaults. An empty text stands for the default. Raises
    `SettingsError` with one line for each problem that was found.
    """
    problems: list[str] = []
    texts = _Texts(gather(environ, dotenv_path, toml_path, problems), problems)
    settings = Settings(
        api_key=_api_key(texts),
        host=texts.value(table.HOST),
        port=texts.value(table.PORT),
        store=_store(texts),
        nats=_nats(texts),
        broker_url=texts.optional(table.TIMER_BROKER_URL),
        min_delay_seconds=texts.value(table.MIN_DELAY_SECONDS),
        max_body_bytes=texts.value(table.MAX_BODY_BYTES),
        max_payload_bytes=texts.value(table.MAX_PAYLOAD_BYTES),
        delivery_concurrency=texts.value(table.DELIVERY_CONCURRENCY),
        delivery_concurrency_per_endpoint=texts.value(table.DELIVERY_CONCURRENCY_PER_ENDPOINT),
        claim_horizon_ms=texts.value(table.CLAIM_HORIZON_MS),
        claim_batch_size=texts.value(table.TIMER_BATCH_SIZE),
        polling_interval_ms=texts.value(table.TIMER_POLLING_INTERVAL),
        callback_timeout_seconds=texts.value(table.CALLBACK_TIMEOUT_SECONDS),
        shutdown_grace_seconds=texts.value(table.SHUTDOWN_GRACE_SECONDS),
        retention_days=texts.value(table.RETENTION_DAYS),
        log_level=_log_level(texts),
        log_format=texts.value(table.LOG_FORMAT),
    )
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


class _Texts:
    """The given texts, read on demand; one that cannot be read becomes a problem."""

    def __init__(self, given: dict[str, Given], problems: list[str]) -> None:
        self._given = {name: value for name, value in given.items() if value.text}
        self._problems = problems

    def has(self, setting: Setting[object]) -> bool:
        return setting.name in self._given

    def value(self, setting: Setting[ValueT]) -> ValueT:
        assert setting.default is not None
        value = self.optional(setting)
        return setting.read(setting.default) if value is None else value

    def optional(self, setting: Setting[ValueT]) -> ValueT | None:
        if not self.has(setting):
            return None
        try:
            return setting.read(self._given[setting.name].text)
        except PostgresUrl:
            self.problem(setting, _NO_POSTGRES)
        except ValueError as error:
            self.problem(setting, f"must be {error}")
        return None

    def problem(self, setting: Setting[object], text: str) -> None:
        """Record a problem with a setting that was given, in one line."""
        given = self._given[setting.name]
        shown = "" if setting.secret else f"={_shortened(given.text, setting.url)!r}"
        source = "" if given.source == ENVIRONMENT else f" (from {given.source})"
        self._problems.append(f"{setting.name}{shown}{source}: {text}")

    def missing(self, setting: Setting[object], text: str) -> None:
        self._problems.append(f"{setting.name} is missing: {text}")


def _shortened(text: str, is_url: bool) -> str:
    shown = without_user_info(text) if is_url else text
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _api_key(texts: _Texts) -> str | None:
    if texts.value(table.AUTH) is Auth.NONE:
        return None
    if not texts.has(table.API_KEY):
        texts.missing(
            table.API_KEY,
            "set it to a secret of at least 32 characters (openssl rand -hex 32 makes one), "
            "or set AUTH=none behind a gateway that checks callers",
        )
    return texts.optional(table.API_KEY)


def _log_level(texts: _Texts) -> LogLevel:
    rust_log = texts.optional(table.RUST_LOG)
    if rust_log is not None and not texts.has(table.LOG_LEVEL):
        return rust_log
    return texts.value(table.LOG_LEVEL)


def _store(texts: _Texts) -> StoreSettings:
    by_path = SqliteStoreSettings(texts.value(table.TIMER_DB_PATH))
    by_url = texts.optional(table.DATABASE_URL)
    texts.value(table.PG_PORT)
    if texts.has(table.DATABASE_URL):
        if by_url and texts.has(table.TIMER_DB_PATH) and not _same_file(by_url, by_path):
            texts.problem(
                table.TIMER_DB_PATH, "names another store than DATABASE_URL; remove one of the two"
            )
        return by_url or by_path
    if texts.optional(table.PG_HOST):
        texts.problem(table.PG_HOST, _NO_POSTGRES)
    elif not texts.has(table.TIMER_DB_PATH):
        for setting in (table.PG_USER, table.PG_PASSWORD, table.PG_DB_NAME):
            if texts.has(setting):
                texts.problem(setting, "is set without PG_HOST; " + _NO_POSTGRES)
    return by_path


def _same_file(one: StoreSettings, other: SqliteStoreSettings) -> bool:
    return isinstance(one, SqliteStoreSettings) and os.path.abspath(one.path) == os.path.abspath(
        other.path
    )


def _nats(texts: _Texts) -> NatsSettings | None:
    by_url = texts.optional(table.NATS_URL)
    host = texts.optional(table.NATS_HOST)
    port = texts.value(table.NATS_PORT)
    user = texts.optional(table.NATS_USER)
    password = texts.optional(table.NATS_PASSWORD)
    if by_url is not None:
        return by_url if by_url.user else replace(by_url, user=user, password=password)
    if host is None:
        return None
    return NatsSettings(url=f"nats://{host_in_url(host)}:{port}", user=user, password=password)
