"""From sources to checked settings, or to everything that is wrong with them at once."""

from collections.abc import Mapping
from pathlib import Path

from duetime.domain.errors import SettingsError
from duetime.settings import definitions as table
from duetime.settings.brokers import NatsAccess
from duetime.settings.definitions import Auth
from duetime.settings.given_values import Texts
from duetime.settings.namespaces import read_namespaces
from duetime.settings.sources import gather
from duetime.settings.store import read_store
from duetime.settings.values import (
    LogLevel,
    MemoryStoreSettings,
    Settings,
    SqliteStoreSettings,
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
    given, namespace_tables = gather(environ, dotenv_path, toml_path, problems)
    texts = Texts(given, problems)
    store = read_store(texts)
    nats = NatsAccess(texts)
    settings = Settings(
        api_key=_api_key(texts),
        host=texts.value(table.HOST),
        port=texts.value(table.PORT),
        workers=texts.value(table.WORKERS),
        namespaces=read_namespaces(texts, namespace_tables, problems),
        store=store or MemoryStoreSettings(),
        nats=nats.server(),
        broker=nats.broker(),
        min_delay_seconds=texts.value(table.MIN_DELAY_SECONDS),
        max_body_bytes=texts.value(table.MAX_BODY_BYTES),
        max_payload_bytes=texts.value(table.MAX_PAYLOAD_BYTES),
        delivery_concurrency=texts.value(table.DELIVERY_CONCURRENCY),
        delivery_concurrency_per_endpoint=texts.value(table.DELIVERY_CONCURRENCY_PER_ENDPOINT),
        claim_horizon_ms=texts.value(table.CLAIM_HORIZON_MS),
        claim_batch_size=texts.value(table.TIMER_BATCH_SIZE),
        polling_interval_ms=texts.value(table.TIMER_POLLING_INTERVAL),
        lease_seconds=texts.value(table.LEASE_SECONDS),
        clock_skew_limit_ms=texts.value(table.CLOCK_SKEW_LIMIT_MS),
        callback_timeout_seconds=texts.value(table.CALLBACK_TIMEOUT_SECONDS),
        shutdown_grace_seconds=texts.value(table.SHUTDOWN_GRACE_SECONDS),
        retention_days=texts.value(table.RETENTION_DAYS),
        log_level=_log_level(texts),
        log_format=texts.value(table.LOG_FORMAT),
    )
    if settings.workers > 1 and isinstance(store, SqliteStoreSettings | MemoryStoreSettings):
        texts.problem(
            table.WORKERS,
            "more than one process needs a store they can share; set DATABASE_URL or PG_HOST to a "
            "PostgreSQL server, or WORKERS=1",
        )
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def _api_key(texts: Texts) -> str | None:
    if texts.value(table.AUTH) is Auth.NONE:
        return None
    if not texts.has(table.API_KEY):
        texts.missing(
            table.API_KEY,
            "set it to a secret of at least 32 characters (openssl rand -hex 32 makes one), "
            "or set AUTH=none behind a gateway that checks callers",
        )
    return texts.optional(table.API_KEY)


def _log_level(texts: Texts) -> LogLevel:
    rust_log = texts.optional(table.RUST_LOG)
    if rust_log is not None and not texts.has(table.LOG_LEVEL):
        return rust_log
    return texts.value(table.LOG_LEVEL)
