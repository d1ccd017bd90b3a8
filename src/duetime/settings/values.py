"""Types of the values that settings have."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Auth(StrEnum):
    API_KEY = "api-key"
    NONE = "none"


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


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
    """`url` may contain a password; `place` (host, port and database) never does."""

    url: str = field(repr=False)
    place: str
    schema: str
    pool_size: int
    statement_timeout_seconds: float


StoreSettings = SqliteStoreSettings | MemoryStoreSettings | PostgresStoreSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSettings:
    """One server. `url` contains neither user nor password. The files exist and can be read;
    `tls_cert_file` and `tls_key_file` come together."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    credentials_file: Path | None = None
    tls_ca_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """An HTTP proxy. `user` and `password` are as they were meant, without escapes."""

    host: str
    port: int
    user: str | None = None
    password: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The proxy for people to read, without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """The PEM files of a certificate and of its key. They can be read, and they fit together."""

    certificate_file: Path
    key_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsBrokerSettings:
    """NATS with JetStream."""

    nats: NatsSettings

    @property
    def name(self) -> str:
        """The broker for people to read, without user and password."""
        return self.nats.url


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisBrokerSettings:
    """`url` may contain a password; `name`, for people to read, never does."""

    url: str = field(repr=False)
    name: str


@dataclass(frozen=True, slots=True)
class MemoryBrokerSettings:
    """Only the process itself can reach this broker. For tests and demonstrations."""

    name: str = "memory:"


BrokerSettings = NatsBrokerSettings | RedisBrokerSettings | MemoryBrokerSettings
