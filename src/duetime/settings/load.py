"""From sources to checked settings, or to everything that is wrong with them at once."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from duetime.domain.errors import SettingsError
from duetime.domain.limits import (
    BATCH_BODY_FACTOR,
    BODY_RESERVE_PART,
    MIN_API_KEY_CHARACTERS,
)
from duetime.settings.brokers import NatsAccess
from duetime.settings.connection_definitions import BrokerParts, StoreParts
from duetime.settings.definitions import LoadingSettings, Settings
from duetime.settings.given_values import GivenValues
from duetime.settings.namespaces import client_certificates, merged_namespaces
from duetime.settings.store import read_store
from duetime.settings.values import (
    Auth,
    BrokerSettings,
    MemoryStoreSettings,
    SqliteStoreSettings,
)


def load_settings(
    environ: Mapping[str, str],
    dotenv_path: Path | None = Path(".env"),
    toml_path: Path | None = None,
) -> Settings:
    """Read and check all settings. `GivenValues` says which source wins.

    Raises `SettingsError` with one line for each problem.
    """
    return _settings_of(GivenValues(environ, dotenv_path, toml_path))


def load_settings_for_store(
    url: str,
    schema: str | None,
    environ: Mapping[str, str],
    dotenv_path: Path | None = Path(".env"),
    toml_path: Path | None = None,
    *,
    source: str,
) -> Settings:
    """Like `load_settings`, with the store of this URL in place of the one that they name. Problems
    name the `source` of the URL."""
    given = GivenValues(environ, dotenv_path, toml_path)
    given.choose_store(url, schema, source)
    return _settings_of(given)


def _settings_of(given: GivenValues) -> Settings:
    loading = given.read(LoadingSettings)
    _check_access(loading, given)
    store = read_store(given.read(StoreParts), given)
    nats = NatsAccess(given.read(BrokerParts), given)
    settings = given.read(
        Settings,
        store=store or MemoryStoreSettings(),
        nats=nats.server(),
        broker=nats.broker(),
        warnings=given.warnings,
    )
    namespaces = merged_namespaces(settings.namespaces, given.namespace_tables, given.problems)
    certificates = client_certificates(given.namespace_tables, given.problems)
    settings = replace(settings, namespaces=namespaces, client_certificates=certificates)
    if loading.rust_log is not None and not given.has("LOG_LEVEL"):
        settings = replace(settings, log_level=loading.rust_log)
    settings = _with_room_for_bodies(settings, given)
    if settings.workers > 1 and isinstance(store, SqliteStoreSettings | MemoryStoreSettings):
        given.problem(
            "WORKERS",
            "more than one process needs a store they can share; set DATABASE_URL or PG_HOST to a "
            "PostgreSQL server, or WORKERS=1",
        )
    _check_metrics_port(settings, given)
    _raise_problems(given)
    return settings


def load_broker(
    environ: Mapping[str, str],
    dotenv_path: Path | None = Path(".env"),
    toml_path: Path | None = None,
) -> BrokerSettings | None:
    """Read the broker alone, for commands that use it without running the service. Raises
    `SettingsError`."""
    given = GivenValues(environ, dotenv_path, toml_path)
    broker = NatsAccess(given.read(BrokerParts), given).broker()
    _raise_problems(given)
    return broker


def _check_metrics_port(settings: Settings, given: GivenValues) -> None:
    if settings.metrics_port is None:
        if settings.metrics_host is not None:
            given.problem("METRICS_HOST", "is the address of METRICS_PORT, which is not set")
    elif settings.metrics_port == settings.port:
        given.problem("METRICS_PORT", "must differ from PORT; leave it out to have both there")


def _check_access(loading: LoadingSettings, given: GivenValues) -> None:
    if loading.auth is Auth.NONE:
        given.ignore("API_KEY")
    elif not given.has("API_KEY"):
        given.missing(
            "API_KEY",
            f"set it to a secret of at least {MIN_API_KEY_CHARACTERS} characters (openssl rand "
            "-hex 32 makes one), "
            "or set AUTH=none behind a gateway that checks callers",
        )


def _with_room_for_bodies(settings: Settings, given: GivenValues) -> Settings:
    """The largest body fits into the part of the budget that is not reserved for small ones."""
    largest_bytes = BATCH_BODY_FACTOR * settings.max_body_bytes
    needed_bytes = -(-largest_bytes * BODY_RESERVE_PART // (BODY_RESERVE_PART - 1))
    if settings.max_bodies_bytes >= needed_bytes:
        return settings
    if given.has("MAX_BODIES_BYTES"):
        given.problem(
            "MAX_BODIES_BYTES",
            f"must be at least {needed_bytes}, so that a batch of {largest_bytes} bytes "
            f"({BATCH_BODY_FACTOR} times MAX_BODY_BYTES) fits",
        )
    return replace(settings, max_bodies_bytes=needed_bytes)


def _raise_problems(given: GivenValues) -> None:
    if given.problems:
        raise SettingsError("\n".join(given.problems))
