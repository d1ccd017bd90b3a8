"""The bodies of the platform API, as they are read and written.

Unknown members are refused: a misspelt `retry_policy` or `headers` would be noticed only when the
timer has fired without it.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duetime.api.http.constraints import (
    BACKOFF_MULTIPLIER,
    DURATION,
    HEADER_VALUE,
    HEADERS,
    HTTP_URL,
    INSTANT,
    KEY_TEXT,
    MAX_ATTEMPTS,
    MAX_RETRIES,
)

ExecuteAt = Annotated[
    str,
    Meta(
        description="When to make the callback: ISO 8601 with a UTC offset.",
        examples=["2030-01-01T12:00:00Z"],
        extra_json_schema=INSTANT,
    ),
]
InstantText = Annotated[
    str, Meta(description="ISO 8601 in UTC.", extra_json_schema={"format": "date-time"})
]
DurationText = Annotated[
    str,
    Meta(
        description='A duration such as "500ms", "30s", "10m" or "1h30m".',
        extra_json_schema=DURATION,
    ),
]
AttemptOutcomeText = Annotated[
    Literal["completed", "rescheduled", "failed", "interrupted"],
    Meta(
        description="How it ended. `rescheduled`: the answer asked for another instant. "
        "`interrupted`: no answer was recorded, as the service stopped meanwhile or the connection "
        "was gone; it is repeated and does not count as a failure.",
    ),
]
CallbackHeaders = Annotated[
    dict[str, Annotated[str, Meta(extra_json_schema=HEADER_VALUE)]] | None,
    Meta(
        description="Headers to send along.",
        examples=[{"Authorization": "Bearer token123"}],
        extra_json_schema=HEADERS,
    ),
]
Payload = Annotated[
    Raw | UnsetType,
    Meta(description="Any JSON value, sent exactly as written here; absent: no body."),
]
Metadata = Annotated[
    Raw | UnsetType,
    Meta(description="Any JSON value for the client's own reference. It is not sent."),
]


class HttpCallbackBody(
    Struct, frozen=True, tag="http", tag_field="type", forbid_unknown_fields=True
):
    """An HTTP POST with the payload as its body. Any 2xx answer completes the timer."""

    url: Annotated[
        str,
        Meta(
            description="An http or https URL of at most 2048 characters.",
            examples=["https://api.example.com/webhook"],
            extra_json_schema=HTTP_URL,
        ),
    ]
    headers: CallbackHeaders = None
    payload: Payload = UNSET


class NatsCallbackBody(
    Struct, frozen=True, tag="nats", tag_field="type", forbid_unknown_fields=True
):
    """A message published on a NATS subject. The timer is completed once the server has it. A 400
    if the service is set to no NATS server."""

    topic: Annotated[
        str,
        Meta(
            description="The subject: words with dots between them, no spaces and no wildcards.",
            examples=["events.timer.triggered"],
        ),
    ]
    key: Annotated[
        str | None,
        Meta(description="If given, the subject is `topic.key`.", examples=["user123"]),
    ] = None
    headers: CallbackHeaders = None
    payload: Payload = UNSET
    ack: Annotated[
        bool,
        Meta(
            description="Whether a JetStream stream must have stored the message: if none does, "
            "the attempt failed. False unless given."
        ),
    ] = False


CallbackBody = HttpCallbackBody | NatsCallbackBody


class RetryPolicyBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How a failing callback is tried again. Every member has a default."""

    max_retries: Annotated[
        int | UnsetType,
        Meta(
            description="Retries after the first attempt, 3 unless given.",
            extra_json_schema=MAX_RETRIES,
        ),
    ] = UNSET
    max_attempts: Annotated[
        int | UnsetType,
        Meta(
            description="Instead of `max_retries`: one more than it.",
            extra_json_schema=MAX_ATTEMPTS,
        ),
    ] = UNSET
    max_retry_attempts_duration: Annotated[
        str | UnsetType,
        Meta(
            description="No retry is planned later than this after the first attempt: 24h "
            "unless given, up to 365 days.",
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    max_attempts_duration: Annotated[
        str | UnsetType,
        Meta(
            description="Instead of `max_retry_attempts_duration`: the same.",
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    initial_interval: Annotated[
        str | UnsetType,
        Meta(
            description='The wait before the first retry, such as "500ms" or "1h30m"; 30s '
            "unless given.",
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    backoff_multiplier: Annotated[
        float | UnsetType,
        Meta(
            description="What each further wait is multiplied by, 2 unless given.",
            extra_json_schema=BACKOFF_MULTIPLIER,
        ),
    ] = UNSET
    max_interval: Annotated[
        str | UnsetType,
        Meta(
            description="The longest wait: 10m unless given, up to 30 days.",
            extra_json_schema=DURATION,
        ),
    ] = UNSET


class CreateTimerBody(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A timer to create."""

    execute_at: ExecuteAt
    callback: CallbackBody
    metadata: Metadata = UNSET
    retry_policy: Annotated[
        RetryPolicyBody | None,
        Meta(description="Without one, a failed callback is not tried again."),
    ] = None
    idempotency_key: Annotated[
        str | None,
        Meta(
            description="A second request with the same key and the same content is answered "
            "with the first one's timer; with other content it is refused.",
            extra_json_schema=KEY_TEXT,
        ),
    ] = None


class UpdateTimerBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What to change. A member that is absent stays as it is."""

    execute_at: ExecuteAt | UnsetType = UNSET
    callback: Annotated[
        CallbackBody | UnsetType, Meta(description="The complete new callback.")
    ] = UNSET
    metadata: Annotated[
        Raw | UnsetType, Meta(description="Any JSON value; null removes the metadata.")
    ] = UNSET
    retry_policy: Annotated[
        RetryPolicyBody | UnsetType | None,
        Meta(description="The complete new policy; null removes it."),
    ] = UNSET


class TimerSummary(Struct, frozen=True, gc=False):
    """A timer in short."""

    id: str
    created_at: InstantText
    execute_at: InstantText
    callback_type: str
    status: str
    executed_at: InstantText | None


class ChangedTimer(Struct, frozen=True):
    """A timer in short, after a change."""

    id: str
    created_at: InstantText
    updated_at: InstantText
    execute_at: InstantText
    callback_type: str
    status: str
    executed_at: InstantText | None


class CanceledTimer(Struct, frozen=True):
    id: str
    status: str


class TimerList(Struct, frozen=True):
    """A page of timers. `total` counts all that match."""

    timers: list[TimerSummary]
    total: int
    limit: int
    offset: int
    total_is_estimated: Annotated[
        bool | UnsetType,
        Meta(description="There, and true, when `total` is large and was estimated."),
    ] = UNSET


class HttpCallbackConfig(Struct, frozen=True, tag="http", tag_field="type"):
    url: str
    headers: dict[str, str] | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET


class NatsCallbackConfig(Struct, frozen=True, tag="nats", tag_field="type"):
    """A message at NATS, on `topic`, or on `topic.key`."""

    topic: str
    key: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET
    ack: Annotated[
        bool | UnsetType,
        Meta(description="There, and true, when a JetStream stream must store the message."),
    ] = UNSET


class BusCallbackConfig(Struct, frozen=True, tag="bus", tag_field="type"):
    """The timer was registered over the bus and is announced there."""


CallbackConfig = HttpCallbackConfig | NatsCallbackConfig | BusCallbackConfig


class RetryPolicyAnswer(Struct, frozen=True):
    max_retries: int
    max_retry_attempts_duration: DurationText
    initial_interval: DurationText
    backoff_multiplier: float
    max_interval: DurationText


class AttemptAnswer(Struct, frozen=True):
    """One try to deliver. An attempt that the service did not live to see answered has neither
    `sent_at` nor `answered_at`."""

    number: int
    due_at: InstantText
    claimed_at: InstantText
    sent_at: InstantText | None
    answered_at: InstantText | None
    outcome: AttemptOutcomeText
    error: str | None


class TimerDetail(Struct, frozen=True):
    """Everything about a timer."""

    id: str
    created_at: InstantText
    updated_at: InstantText
    execute_at: InstantText
    callback_type: str
    callback_config: CallbackConfig
    status: str
    last_error: str | None
    executed_at: InstantText | None
    metadata: Annotated[Raw | None, Meta(description="As it was given, or null.")]
    retry_policy: RetryPolicyAnswer | None
    due_at: Annotated[
        InstantText,
        Meta(description="When the next attempt is due; `execute_at` unless a retry is planned."),
    ]
    attempt: Annotated[int, Meta(description="Attempts made in the current firing.")]
    delivery_id: Annotated[
        str, Meta(description="The `webhook-id` of the current firing, the same in its retries.")
    ]
    attempts: Annotated[list[AttemptAnswer], Meta(description="The latest attempts, oldest first.")]


class EngineStatus(Struct, frozen=True):
    running: bool
    shards_owned: int
    lateness_ms: Annotated[
        float | None,
        Meta(description="The 99th percentile of the last minute; null when nothing was due."),
    ]
    in_flight: Annotated[int, Meta(description="Attempts being made at this moment.")]


class ClusterStatus(Struct, frozen=True):
    """This process among those that share its database."""

    node: str
    members: int
    shards: int
    clock_offset_ms: Annotated[
        float | None, Meta(description="How far the database's clock is ahead of this one.")
    ]
    clock_skewed: bool


class BusStatus(Struct, frozen=True):
    """The message bus, as this process sees it. Counts are since its start."""

    broker: str
    connected: bool
    consuming: Annotated[
        bool, Meta(description="False when commands could not be taken for ten seconds or more.")
    ]
    commands_received: int
    commands_rejected: int
    commands_ignored: Annotated[
        int, Meta(description="Commands for timers that had fired or were canceled.")
    ]
    events_published: int


class NatsStatus(Struct, frozen=True):
    """The NATS server of callbacks, as this process sees it."""

    server: str
    connected: bool


class HealthStatus(Struct, frozen=True):
    status: Annotated[str, Meta(extra_json_schema={"enum": ["up", "degraded"]})]
    database: Annotated[str, Meta(extra_json_schema={"enum": ["connected", "disconnected"]})]
    timestamp: InstantText
    engine: EngineStatus
    cluster: ClusterStatus | UnsetType = UNSET
    bus: BusStatus | UnsetType = UNSET
    nats: NatsStatus | UnsetType = UNSET
