"""The answers of the v1 API, as far as the commands read them.

Members that a command does not read are ignored, so that clients and servers of different releases
understand each other.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class RetryPolicy(Struct, frozen=True, rename="camel"):
    max_retries: int
    max_retry_attempts_duration: str
    initial_interval: str
    backoff_multiplier: float
    max_interval: str


class TimerCounts(Struct, frozen=True):
    pending: int
    executing: int
    completed: int
    failed: int
    canceled: int


class SloStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    attempts: int
    late: int
    error_budget_left: float


class Namespace(Struct, frozen=True, kw_only=True, rename="camel"):
    """Null stands for the service's own setting; a retention of "0s" is forever."""

    name: str
    num_shards: int
    retry_policy: RetryPolicy
    retention: str | None
    concurrency: int | None
    max_payload_bytes: int | None
    max_pending: int | None = None
    callback_networks: str | None = None
    slo: str | None = None
    slo_status: SloStatus | None = None
    deleting: bool = False
    counts: TimerCounts | UnsetType = UNSET


class NamespaceList(Struct, frozen=True):
    namespaces: list[Namespace]


class Paused(Struct, frozen=True, rename="camel"):
    paused_at: str
    paused_by: str
    reason: str | None


class Pause(Struct, frozen=True, rename="camel"):
    endpoint: str
    paused_at: str
    paused_by: str
    reason: str | None


class EndpointFigures(Struct, frozen=True, rename="camel"):
    attempts: int
    failures: int
    p50_ms: float
    p99_ms: float


class Endpoint(Struct, frozen=True, rename="camel"):
    endpoint: str
    state: Literal["closed", "open", "halfOpen"]
    in_flight: int
    waiting: int
    consecutive_failures: int
    last_error: str | None
    paused: Paused | None = None
    last15_minutes: EndpointFigures | None = None


class EndpointList(Struct, frozen=True):
    endpoints: list[Endpoint]


class LineError(Struct, frozen=True):
    """The reason why a line was not imported; the first line is 1."""

    line: int
    message: str
    id: str | UnsetType = UNSET


class Restored(Struct, frozen=True, rename="camel"):
    """Full lines that were restored; the timers by their new status. Some of the namespaces may
    have existed as they are."""

    namespaces: int
    timers: TimerCounts
    existing_namespaces: int = 0


class ImportSummary(Struct, frozen=True):
    """`errors` holds the first `MAX_IMPORT_ERRORS` lines that were not imported. `restored` is
    present if there were full lines."""

    lines: int
    created: int
    existing: int
    conflicts: int
    invalid: int
    errors: list[LineError]
    restored: Restored | UnsetType = UNSET


class MatchedTimers(Struct, frozen=True, kw_only=True, rename="camel"):
    """With `matched_is_minimum` counting was cut short."""

    matched: int
    matched_is_minimum: bool


class Operation(MatchedTimers, frozen=True, kw_only=True, rename="camel"):
    """A bulk operation."""

    id: str
    action: str
    namespace: str
    started_by: str | None = None
    filter: dict[str, object] = {}
    execute_at: str | UnsetType = UNSET
    move_by: str | UnsetType = UNSET
    status: str
    scanned: int
    changed: int
    skipped: int
    executing: int = 0
    error: str | None
    created_at: str
    finished_at: str | None


class OperationList(Struct, frozen=True):
    operations: list[Operation]


class Secret(Struct, frozen=True, kw_only=True, rename="camel"):
    """A secret that signs callbacks, without its text. One of the settings was never created."""

    id: str
    type: str
    created_at: str | None
    expires_at: str | None
    public_key: str | UnsetType = UNSET


class NewSecret(Secret, frozen=True, kw_only=True, rename="camel"):
    secret: str


class SecretList(Struct, frozen=True):
    secrets: list[Secret]


class AuditEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry of the audit log."""

    id: str
    at: str
    actor: str
    key_id: str | None
    address: str | None
    action: str
    namespace: str | None
    target: str | None
    result: str
    details: str | None


class AuditLogPage(Struct, frozen=True, rename="camel"):
    entries: list[AuditEntry]
    next_cursor: str | None


class KeyRate(Struct, frozen=True, rename="camel"):
    """The rate limit of a key."""

    per_second: float
    burst: int


class KeySettings(Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of a key that every answer has."""

    id: str
    name: str
    roles: list[str]
    namespaces: list[str]
    expires_at: str | None
    created_at: str


class IssuedKey(KeySettings, frozen=True, kw_only=True, rename="camel"):
    """A new key, with its text, and the limits that were given."""

    key: str
    rate_limit: KeyRate | None = None
    max_concurrent: int | None = None


class Key(KeySettings, frozen=True, kw_only=True, rename="camel"):
    """A key without its text."""

    last_used_at: str | None
    rate_limit: KeyRate | None
    max_concurrent: int | None
    replaced_by: str | None


class KeyList(Struct, frozen=True):
    keys: list[Key]


class UiLink(Struct, frozen=True, rename="camel"):
    """A link to the Web UI. One that expires works once."""

    path: str
    expires_at: str | None
