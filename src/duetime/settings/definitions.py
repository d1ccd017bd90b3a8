"""The one list of settings: loading, `.env.example` and the reference page are made from it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from duetime.settings.broker_address import broker_url, nats_url
from duetime.settings.namespace_list import namespace_list
from duetime.settings.parsers import (
    any_text,
    api_key,
    choice,
    file_path,
    log_level,
    number,
    one_word,
    postgres_hosts,
    readable_file,
    schema_name,
    store_url,
    text_without_nul,
    whole_number,
)
from duetime.settings.values import LogFormat

ValueT_co = TypeVar("ValueT_co", covariant=True)

KIB = 1024
MIB = 1024 * KIB


class Auth(StrEnum):
    API_KEY = "api-key"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Setting(Generic[ValueT_co]):
    """`default` is text, as one would write it; None means that there is none.

    `secret` values are never shown; of a `url` user and password are not.
    """

    name: str
    read: Callable[[str], ValueT_co]
    default: str | None
    unit: str
    description: str
    secret: bool = False
    url: bool = False


CONFIG_FILE = Setting(
    "DUETIME_CONFIG", file_path, None, "path", "A TOML file with settings in lower-case names."
)

AUTH = Setting(
    "AUTH",
    choice(Auth),
    "api-key",
    "api-key, none",
    "How callers of the API are checked; none is for deployments behind a gateway.",
)
API_KEY = Setting(
    "API_KEY",
    api_key,
    None,
    "secret",
    "What callers send as X-API-Key, at least 32 characters. Required unless AUTH=none.",
    secret=True,
)

HOST = Setting("HOST", one_word, "0.0.0.0", "address", "The address the API listens on.")
PORT = Setting(
    "PORT", whole_number(0, 65535), "8080", "port", "The port the API listens on; 0 = any free one."
)
WORKERS = Setting(
    "WORKERS",
    whole_number(1, 64),
    "1",
    "processes",
    "How many processes duetime serve runs; more than one needs PostgreSQL.",
)
MAX_BODY_BYTES = Setting(
    "MAX_BODY_BYTES",
    whole_number(KIB, 64 * MIB),
    str(MIB),
    "bytes",
    "The largest request body the API reads.",
)
MAX_PAYLOAD_BYTES = Setting(
    "MAX_PAYLOAD_BYTES",
    whole_number(1, 16 * MIB),
    str(256 * KIB),
    "bytes",
    "The largest callback payload a timer may carry.",
)
NAMESPACES = Setting(
    "NAMESPACES",
    namespace_list,
    "default",
    "name[:shards], ...",
    "The namespaces that exist from the start, each with its number of shards if that is not to "
    "be 16; default is always among them.",
)
MIN_DELAY_SECONDS = Setting(
    "MIN_DELAY_SECONDS",
    number(0, 86_400),
    "5",
    "seconds",
    "How far in the future the platform API wants an instant to be at least; 0 = any future one.",
)

DATABASE_URL = Setting(
    "DATABASE_URL",
    store_url,
    None,
    "url",
    "Where timers are kept: sqlite:///path.db, sqlite:////absolute/path.db, "
    "postgresql://user:password@host:port/database or memory:.",
    url=True,
)
TIMER_DB_PATH = Setting(
    "TIMER_DB_PATH",
    file_path,
    "duetime.db",
    "path",
    "The SQLite file, when neither DATABASE_URL nor PG_HOST is set.",
)
RETENTION_DAYS = Setting(
    "RETENTION_DAYS",
    number(0, 36_500),
    "30",
    "days",
    "How long finished timers are kept; 0 = for ever.",
)
PG_HOST = Setting(
    "PG_HOST",
    postgres_hosts,
    None,
    "address",
    "PostgreSQL server, or the directory of its socket; another way to say DATABASE_URL.",
)
PG_PORT = Setting("PG_PORT", whole_number(1, 65535), "5432", "port", "PostgreSQL port.")
PG_USER = Setting("PG_USER", text_without_nul, None, "text", "PostgreSQL user.")
PG_PASSWORD = Setting(
    "PG_PASSWORD",
    text_without_nul,
    None,
    "secret",
    "PostgreSQL password, as it is: nothing in it needs to be escaped.",
    secret=True,
)
PG_DB_NAME = Setting("PG_DB_NAME", text_without_nul, None, "text", "PostgreSQL database.")
PG_SCHEMA = Setting(
    "PG_SCHEMA",
    schema_name,
    "duetime",
    "text",
    "The schema with Duetime's tables; it is created if need be.",
)
PG_POOL_SIZE = Setting(
    "PG_POOL_SIZE",
    whole_number(1, 100),
    "8",
    "connections",
    "How many connections a process keeps for reads and changes; its engine needs a few more.",
)
PG_STATEMENT_TIMEOUT_SECONDS = Setting(
    "PG_STATEMENT_TIMEOUT_SECONDS",
    number(0.1, 3_600),
    "10",
    "seconds",
    "How long PostgreSQL may work on one statement before the service gives up on it.",
)

DELIVERY_CONCURRENCY = Setting(
    "DELIVERY_CONCURRENCY",
    whole_number(1, 65_536),
    "4096",
    "callbacks",
    "How many callbacks may be under way at once.",
)
DELIVERY_CONCURRENCY_PER_ENDPOINT = Setting(
    "DELIVERY_CONCURRENCY_PER_ENDPOINT",
    whole_number(1, 65_536),
    "1024",
    "callbacks",
    "How many of them may go to one endpoint.",
)
CALLBACK_TIMEOUT_SECONDS = Setting(
    "CALLBACK_TIMEOUT_SECONDS",
    number(0.1, 3_600),
    "30",
    "seconds",
    "How long a callback may take in all before it counts as failed.",
)
SHUTDOWN_GRACE_SECONDS = Setting(
    "SHUTDOWN_GRACE_SECONDS",
    number(0, 3_600),
    "10",
    "seconds",
    "How long callbacks under way may take to finish when the service stops.",
)
CLAIM_HORIZON_MS = Setting(
    "CLAIM_HORIZON_MS",
    whole_number(0, 10_000),
    "50",
    "ms",
    "How long before their instant timers are taken from the store.",
)
TIMER_BATCH_SIZE = Setting(
    "TIMER_BATCH_SIZE",
    whole_number(1, 10_000),
    "500",
    "timers",
    "How many timers are taken from the store at once.",
)
TIMER_POLLING_INTERVAL = Setting(
    "TIMER_POLLING_INTERVAL",
    whole_number(10, 3_600_000),
    "5000",
    "ms",
    "How often the store is looked at even if nothing asks for it.",
)
LEASE_SECONDS = Setting(
    "LEASE_SECONDS",
    number(1, 300),
    "10",
    "seconds",
    "How long the timers of a node that died may wait until another node takes them over.",
)
CLOCK_SKEW_LIMIT_MS = Setting(
    "CLOCK_SKEW_LIMIT_MS",
    whole_number(10, 3_600_000),
    "500",
    "ms",
    "A node whose clock is further than this from the database's says so loudly.",
)

NATS_URL = Setting(
    "NATS_URL",
    nats_url,
    None,
    "url",
    "NATS server of NATS callbacks, as nats://user:password@host:port or tls://...; goes before "
    "NATS_HOST.",
    url=True,
)
NATS_HOST = Setting(
    "NATS_HOST", one_word, None, "address", "NATS server of NATS callbacks, without NATS_URL."
)
NATS_PORT = Setting("NATS_PORT", whole_number(1, 65535), "4222", "port", "NATS port.")
NATS_USER = Setting(
    "NATS_USER",
    any_text,
    None,
    "text",
    "NATS user, where the URL names none. This and what follows holds for a NATS broker, too.",
)
NATS_PASSWORD = Setting(
    "NATS_PASSWORD",
    any_text,
    None,
    "secret",
    "NATS password, as it is: nothing in it needs to be escaped.",
    secret=True,
)
NATS_CREDENTIALS_FILE = Setting(
    "NATS_CREDENTIALS_FILE",
    readable_file,
    None,
    "path",
    "A .creds file with the user's JWT and key, instead of user and password.",
)
NATS_TLS_CA_FILE = Setting(
    "NATS_TLS_CA_FILE",
    readable_file,
    None,
    "path",
    "The certificates to trust, in PEM; the system's unless given.",
)
NATS_TLS_CERT_FILE = Setting(
    "NATS_TLS_CERT_FILE",
    readable_file,
    None,
    "path",
    "The certificate to show to the server, in PEM; together with NATS_TLS_KEY_FILE.",
)
NATS_TLS_KEY_FILE = Setting(
    "NATS_TLS_KEY_FILE", readable_file, None, "path", "The key of that certificate, in PEM."
)
TIMER_BROKER_URL = Setting(
    "TIMER_BROKER_URL",
    broker_url,
    None,
    "url",
    "The broker of timer commands and events: nats://host:port, tls://host:port, "
    "redis://host:port/database, rediss://host:port/database (or valkey://, valkeys://) or "
    "memory:.",
    url=True,
)

LOG_LEVEL = Setting(
    "LOG_LEVEL",
    log_level,
    "info",
    "trace, debug, info, warn, error",
    "The least important messages to log; trace includes those of libraries.",
)
RUST_LOG = Setting(
    "RUST_LOG",
    log_level,
    None,
    "trace, debug, info, warn, error",
    "Another name for LOG_LEVEL, which goes before it.",
)
LOG_FORMAT = Setting(
    "LOG_FORMAT",
    choice(LogFormat),
    "auto",
    "auto, json, text",
    "JSON lines or readable text; auto = text on a terminal, else JSON.",
)

GROUPS: dict[str, tuple[Setting[object], ...]] = {
    "Access": (API_KEY, AUTH),
    "API": (
        HOST,
        PORT,
        WORKERS,
        NAMESPACES,
        MIN_DELAY_SECONDS,
        MAX_BODY_BYTES,
        MAX_PAYLOAD_BYTES,
    ),
    "Store": (DATABASE_URL, TIMER_DB_PATH, RETENTION_DAYS),
    "PostgreSQL": (
        PG_HOST,
        PG_PORT,
        PG_USER,
        PG_PASSWORD,
        PG_DB_NAME,
        PG_SCHEMA,
        PG_POOL_SIZE,
        PG_STATEMENT_TIMEOUT_SECONDS,
    ),
    "Delivery": (
        DELIVERY_CONCURRENCY,
        DELIVERY_CONCURRENCY_PER_ENDPOINT,
        CALLBACK_TIMEOUT_SECONDS,
        SHUTDOWN_GRACE_SECONDS,
    ),
    "Engine": (
        CLAIM_HORIZON_MS,
        TIMER_BATCH_SIZE,
        TIMER_POLLING_INTERVAL,
        LEASE_SECONDS,
        CLOCK_SKEW_LIMIT_MS,
    ),
    "Bus": (TIMER_BROKER_URL,),
    "NATS": (
        NATS_URL,
        NATS_HOST,
        NATS_PORT,
        NATS_USER,
        NATS_PASSWORD,
        NATS_CREDENTIALS_FILE,
        NATS_TLS_CA_FILE,
        NATS_TLS_CERT_FILE,
        NATS_TLS_KEY_FILE,
    ),
    "Logs": (LOG_LEVEL, RUST_LOG, LOG_FORMAT),
    "Configuration file": (CONFIG_FILE,),
}

SETTINGS: dict[str, Setting[object]] = {
    setting.name: setting for group in GROUPS.values() for setting in group
}
