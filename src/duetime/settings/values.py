"""The checked settings, as the rest of the program uses them."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from duetime.domain.namespace import WantedNamespace


class LogLevel(StrEnum):
    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class LogFormat(StrEnum):
    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class SqliteStoreSettings:
    path: Path


@dataclass(frozen=True, slots=True)
class MemoryStoreSettings:
    """Timers live as long as the process. For tests and demonstrations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresStoreSettings:
    """`url` may carry a password; `place` names host, port and database and never does."""

    url: str = field(repr=False)
    place: str
    schema: str
    pool_size: int
    statement_timeout_seconds: float


StoreSettings = SqliteStoreSettings | MemoryStoreSettings | PostgresStoreSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSettings:
    """`url` carries neither user nor password."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every value is valid on its own and together with the others.

    `api_key` is None when authentication is turned off. `retention_days` 0 keeps finished
    timers for ever. `workers` is more than 1 only with a store that processes can share.
    `namespaces` has each name once, and `default` among them.
    """

    api_key: str | None = field(repr=False)
    host: str
    port: int
    workers: int
    namespaces: tuple[WantedNamespace, ...]
    store: StoreSettings
    nats: NatsSettings | None
    broker_url: str | None = field(repr=False)
    min_delay_seconds: float
    max_body_bytes: int
    max_payload_bytes: int
    delivery_concurrency: int
    delivery_concurrency_per_endpoint: int
    claim_horizon_ms: int
    claim_batch_size: int
    polling_interval_ms: int
    lease_seconds: float
    clock_skew_limit_ms: int
    callback_timeout_seconds: float
    shutdown_grace_seconds: float
    retention_days: float
    log_level: LogLevel
    log_format: LogFormat
