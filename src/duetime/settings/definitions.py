"""Every setting, declared once. Loading, `.env.example`, the reference page and the typed
`Settings` follow from these declarations."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

from duetime.domain.defaults import (
    DEFAULT_CALLBACK_TIMEOUT_MS,
    DEFAULT_DISK_RESERVE_BYTES,
    DEFAULT_KEPT_ANSWER_BYTES,
    DEFAULT_KEY_MAX_CONCURRENT,
    DEFAULT_MAX_BODIES_BYTES,
    DEFAULT_MAX_BODY_BYTES,
    DEFAULT_MAX_PAYLOAD_BYTES,
    DEFAULT_MIN_DELAY_SECONDS,
    DEFAULT_PORT,
)
from duetime.domain.limits import (
    MAX_CALLBACK_TIMEOUT_MS,
    MAX_CONCURRENT_REQUESTS,
    MAX_KEPT_ANSWER_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_PORT,
    MAX_RETENTION_DAYS,
    MIN_API_KEY_CHARACTERS,
)
from duetime.domain.namespace import DEFAULT_SHARDS, ConfiguredNamespace
from duetime.domain.security.credentials import RateLimit
from duetime.settings.connection_definitions import BrokerParts, StoreParts
from duetime.settings.namespaces import namespace_list
from duetime.settings.parsers import (
    api_key,
    choice,
    file_path,
    log_level,
    number,
    one_word,
    rate_limit,
    true_or_false,
    whole_number,
)
from duetime.settings.security_definitions import SecuritySettings
from duetime.settings.setting import Definition, Group, definition_of, setting
from duetime.settings.values import (
    Auth,
    BrokerSettings,
    LogFormat,
    LogLevel,
    NatsSettings,
    StoreSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SecuritySettings):
    """The checked settings, as the rest of the program uses them.

    Every value is valid on its own and together with the others. `api_key` is None when
    authentication is turned off. `workers` is more than 1 only with a store that processes can
    share. `namespaces` has each name once, and `default` among them. `store`, `nats` and `broker`
    are made from the parts below.
    """

    api_key: str | None = setting(
        "Access",
        api_key,
        None,
        "secret",
        "The key that callers send as X-API-Key or as Authorization: Bearer, at least "
        f"{MIN_API_KEY_CHARACTERS} characters. It opens everything; duetime keys makes others. "
        "Required unless AUTH=none.",
        secret=True,
    )
    key_rate_limit: RateLimit | None = setting(
        "Access",
        rate_limit,
        None,
        "requests per second[/burst]",
        "Requests that a key may send to each process, and how many of them at once after a pause; "
        "for keys without a limit of their own, and not for API_KEY.",
    )
    key_max_concurrent: int = setting(
        "Access",
        whole_number(1, MAX_CONCURRENT_REQUESTS),
        str(DEFAULT_KEY_MAX_CONCURRENT),
        "requests",
        "Requests of one key that each process works on at once; for keys without a limit of their "
        "own, and not for API_KEY.",
    )

    host: str = setting("API", one_word, "0.0.0.0", "address", "The address the API listens on.")
    port: int = setting(
        "API",
        whole_number(0, MAX_PORT),
        str(DEFAULT_PORT),
        "port",
        "The port of the API; 0 = any free port.",
    )
    workers: int = setting(
        "API",
        whole_number(1, 64),
        "1",
        "processes",
        "Processes that duetime serve runs; more than one needs PostgreSQL.",
    )
    drain_seconds: float = setting(
        "API",
        number(0, 3_600),
        "0",
        "seconds",
        "Time that duetime serve goes on serving after it was told to stop, while /readyz answers "
        "503; behind a load balancer, the time that it needs to notice.",
    )
    namespaces: tuple[ConfiguredNamespace, ...] = setting(
        "API",
        namespace_list,
        "default",
        "name[:shards], ...",
        "Namespaces created at the start, each with its number of shards unless that is "
        f"{DEFAULT_SHARDS}. The namespace default always exists.",
    )
    min_delay_seconds: float = setting(
        "API",
        number(0, 86_400),
        str(DEFAULT_MIN_DELAY_SECONDS),
        "seconds",
        "Shortest delay until an instant that the platform API accepts; 0 = any future instant.",
    )
    max_body_bytes: int = setting(
        "API",
        whole_number(1_024, 64 * 2**20),
        str(DEFAULT_MAX_BODY_BYTES),
        "bytes",
        "Size of the largest request body; a batch may be eight times as large, and in an import "
        "this limits a line.",
    )
    max_bodies_bytes: int = setting(
        "API",
        whole_number(65_536, 2**40),
        str(DEFAULT_MAX_BODIES_BYTES),
        "bytes",
        "Memory for the bodies of all requests under way in one process; over it, bodies are "
        "refused with 503. One eighth is reserved for bodies of up to 64 KiB, and the rest must "
        "have room for the largest batch. Unless it is given, it grows with MAX_BODY_BYTES.",
    )
    max_payload_bytes: int = setting(
        "API",
        whole_number(1, MAX_PAYLOAD_BYTES),
        str(DEFAULT_MAX_PAYLOAD_BYTES),
        "bytes",
        "The largest callback payload of a timer.",
    )

    retention_days: float = setting(
        "Store",
        number(0, MAX_RETENTION_DAYS),
        "30",
        "days",
        "Time for which finished timers are kept; 0 = for ever.",
    )
    disk_reserve_bytes: int = setting(
        "Store",
        whole_number(0, 2**50),
        str(DEFAULT_DISK_RESERVE_BYTES),
        "bytes",
        "Free space on the disk of the SQLite file that is kept for accepted timers: below it, new "
        "timers are refused. 0 = no reserve.",
    )
    startup_wait_seconds: float = setting(
        "Store",
        number(0, 3_600),
        "30",
        "seconds",
        "Time that a start waits for a database that cannot be reached or is starting up; 0 = end "
        "at once.",
    )

    delivery_concurrency: int = setting(
        "Delivery",
        whole_number(1, 65_536),
        "4096",
        "callbacks",
        "Callbacks that may be under way at once; fewer if the limit of open files is too low.",
    )
    delivery_concurrency_per_endpoint: int = setting(
        "Delivery",
        whole_number(1, 65_536),
        "1024",
        "callbacks",
        "Callbacks to one endpoint that may be under way at once.",
    )
    callback_timeout_seconds: float = setting(
        "Delivery",
        number(0.1, MAX_CALLBACK_TIMEOUT_MS / 1_000),
        f"{DEFAULT_CALLBACK_TIMEOUT_MS / 1_000:g}",
        "seconds",
        "Time that a callback may take in all before it counts as failed.",
    )
    kept_answer_bytes: int = setting(
        "Delivery",
        whole_number(0, MAX_KEPT_ANSWER_BYTES),
        str(DEFAULT_KEPT_ANSWER_BYTES),
        "bytes",
        "Bytes of a failing answer's body that are kept with the attempt and shown to everyone who "
        "may read the timer; 0 = none.",
    )
    shutdown_grace_seconds: float = setting(
        "Delivery",
        number(0, 3_600),
        "10",
        "seconds",
        "Time that callbacks under way have to finish when the service stops.",
    )

    claim_horizon_ms: int = setting(
        "Engine",
        whole_number(0, 10_000),
        "50",
        "ms",
        "Time before their instant at which timers are claimed from the store.",
    )
    claim_batch_size: int = setting(
        "Engine",
        whole_number(1, 10_000),
        "500",
        "timers",
        "Timers claimed from the store at once.",
        name="TIMER_BATCH_SIZE",
    )
    polling_interval_ms: int = setting(
        "Engine",
        whole_number(10, 3_600_000),
        "5000",
        "ms",
        "Time after which the engine looks at the store even if nothing woke it.",
        name="TIMER_POLLING_INTERVAL",
    )
    lease_seconds: float = setting(
        "Engine",
        number(1, 300),
        "10",
        "seconds",
        "Time for which the timers of a dead node may wait until another node takes over.",
    )
    clock_skew_limit_ms: int = setting(
        "Engine",
        whole_number(10, 3_600_000),
        "500",
        "ms",
        "Distance of a node's clock from the database's above which the node logs an error.",
    )

    log_level: LogLevel = setting(
        "Logs",
        log_level,
        "info",
        "trace, debug, info, warn, error",
        "The lowest level to log; trace includes the messages of libraries.",
    )
    log_format: LogFormat = setting(
        "Logs",
        choice(LogFormat),
        "auto",
        "auto, json, text",
        "JSON lines or readable text; auto = text on a terminal, else JSON.",
    )

    metrics_port: int | None = setting(
        "Metrics",
        whole_number(1, MAX_PORT),
        None,
        "port",
        "A port for /metrics alone, on the address METRICS_HOST. Without it /metrics is on PORT.",
    )
    metrics_host: str | None = setting(
        "Metrics", one_word, None, "address", "The address of METRICS_PORT; HOST unless set."
    )
    metrics_public: bool = setting(
        "Metrics",
        true_or_false,
        "false",
        "true, false",
        "Whether everyone who can reach /metrics may read it. Otherwise it takes a key with the "
        "role read for all namespaces, like the API; none if AUTH=none.",
    )
    metrics_namespaces: int = setting(
        "Metrics",
        whole_number(1, 100_000),
        "1000",
        "namespaces",
        "Namespaces that metrics tell apart; further ones are summed up as `other`.",
    )
    metrics_endpoints: int = setting(
        "Metrics",
        whole_number(0, 10_000),
        "0",
        "endpoints",
        "Endpoints of callbacks that metrics tell apart; 0 = no metrics by endpoint.",
    )

    store: StoreSettings
    nats: NatsSettings | None
    broker: BrokerSettings | None
    warnings: tuple[str, ...] = ()
    """Sentences about names in the environment that are probably misspelt settings."""

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """The host and the port of the metrics; None if they are on the API's port."""
        port = self.metrics_port
        return None if port is None else (self.metrics_host or self.host, port)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingSettings:
    """The settings that only decide how others are read."""

    auth: Auth = setting(
        "Access",
        choice(Auth),
        "api-key",
        "api-key, none",
        "How the API checks its callers; none is for deployments behind a gateway, and needs "
        "--insecure unless HOST is a loopback address.",
    )
    rust_log: LogLevel | None = setting(
        "Logs",
        log_level,
        None,
        "trace, debug, info, warn, error",
        "Another name for LOG_LEVEL. LOG_LEVEL wins if both are set.",
    )
    duetime_config: Path | None = setting(
        "Configuration file",
        file_path,
        None,
        "path",
        "A TOML file with settings in lower-case names.",
    )


_DEFINITIONS = [
    definition
    for declaring in (StoreParts, BrokerParts, Settings, LoadingSettings)
    for declared in fields(declaring)
    if (definition := definition_of(declared)) is not None
]

SETTINGS: dict[str, Definition] = {
    definition.name: definition
    for group in get_args(Group)
    for definition in _DEFINITIONS
    if definition.group == group
}
"""Definitions by name, in the order of their groups."""
