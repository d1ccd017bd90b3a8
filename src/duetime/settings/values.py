"""The checked settings, as the rest of the program uses them."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from duetime.domain.namespace import ConfiguredNamespace


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
    """One server. `url` carries neither user nor password. The files are there and can be read;
    `tls_cert_file` and `tls_key_file` come together."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    credentials_file: Path | None = None
    tls_ca_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsBrokerSettings:
    """NATS with JetStream."""

    nats: NatsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisBrokerSettings:
    """`url` may carry a password; `name` names the server and never does."""

    url: str = field(repr=False)
    name: str


@dataclass(frozen=True, slots=True)
class MemoryBrokerSettings:
    """Nobody but the process itself can reach it. For tests and demonstrations."""


BrokerSettings = NatsBrokerSettings | RedisBrokerSettings | MemoryBrokerSettings


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
    namespaces: tuple[ConfiguredNamespace, ...]
    store: StoreSettings
    nats: NatsSettings | None
    broker: BrokerSettings | None
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
