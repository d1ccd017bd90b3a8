"""The bodies that the platform API reads and writes.

Unknown members are refused: otherwise a misspelled `retry_policy` would be noticed only after the
timer had fired without it.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct

from duetime.api.http.types import (
    HEADERS,
    HTTP_URL,
    INSTANT,
    KEY_TEXT,
    AnswerText,
    BackoffMultiplier,
    DurationText,
    ExecuteIn,
    HeaderValue,
    InitialInterval,
    InstantText,
    MaxAttempts,
    MaxAttemptsDuration,
    MaxInterval,
    MaxRetries,
    MaxRetryDuration,
    OutcomeText,
    ShownHeaders,
    StatusText,
)
from duetime.domain.limits import MAX_URL_CHARACTERS

ExecuteAt = Annotated[
    str,
    Meta(
        description="Instant of the callback: ISO 8601 with a UTC offset.",
        examples=["2030-01-01T12:00:00Z"],
        extra_json_schema=INSTANT,
    ),
]
CallbackType = Annotated[str, Meta(extra_json_schema={"enum": ["http", "nats", "bus"]})]
CallbackHeaders = Annotated[
    dict[str, HeaderValue] | None,
    Meta(
        description="Headers to send with the callback.",
        examples=[{"Authorization": "Bearer token123"}],
        extra_json_schema=HEADERS,
    ),
]
Payload = Annotated[
    Raw | UnsetType,
    Meta(description="Any JSON value, sent exactly as written. Without one the body is empty."),
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
            description=f"An http or https URL of at most {MAX_URL_CHARACTERS} characters.",
            examples=["https://api.example.com/webhook"],
            extra_json_schema=HTTP_URL,
        ),
    ]
    headers: CallbackHeaders = None
    payload: Payload = UNSET


class NatsCallbackBody(
    Struct, frozen=True, tag="nats", tag_field="type", forbid_unknown_fields=True
):
    """A message published on a NATS subject. The timer is completed once the NATS server has it.
    Refused with 400 if no NATS server is configured."""

    topic: Annotated[
        str,
        Meta(
            description="The subject: words separated by dots, without spaces and wildcards.",
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
            description="Whether the attempt succeeds only when a JetStream stream has stored the "
            "message. Defaults to false."
        ),
    ] = False


CallbackBody = HttpCallbackBody | NatsCallbackBody


class RetryPolicyBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How a failed callback is retried. Defaults: 3 retries within 24h, the first after 30s, each
    wait twice as long as the last, up to 10m."""

    max_retries: MaxRetries = UNSET
    max_attempts: MaxAttempts = UNSET
    max_retry_attempts_duration: MaxRetryDuration = UNSET
    max_attempts_duration: MaxAttemptsDuration = UNSET
    initial_interval: InitialInterval = UNSET
    backoff_multiplier: BackoffMultiplier = UNSET
    max_interval: MaxInterval = UNSET


class CreateTimerBody(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A timer to create."""

    execute_at: ExecuteAt | UnsetType = UNSET
    execute_in: ExecuteIn = UNSET
    callback: CallbackBody
    metadata: Metadata = UNSET
    retry_policy: Annotated[
        RetryPolicyBody | None,
        Meta(description="Without one, a failed callback is not retried."),
    ] = None
    idempotency_key: Annotated[
        str | None,
        Meta(
            description="A second request with the same key and content returns the timer of the "
            "first. With other content it is refused.",
            extra_json_schema=KEY_TEXT,
        ),
    ] = None


class UpdateTimerBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a timer. Absent members stay as they are."""

    execute_at: ExecuteAt | UnsetType = UNSET
    execute_in: ExecuteIn = UNSET
    callback: Annotated[
        CallbackBody | UnsetType, Meta(description="The new callback, complete.")
    ] = UNSET
    metadata: Annotated[
        Raw | UnsetType, Meta(description="Any JSON value; null removes the metadata.")
    ] = UNSET
    retry_policy: Annotated[
        RetryPolicyBody | UnsetType | None,
        Meta(description="The new policy, complete; null removes the policy."),
    ] = UNSET


class TimerSummary(Struct, frozen=True, gc=False):
    """A timer in short."""

    id: str
    created_at: InstantText
    execute_at: InstantText
    callback_type: CallbackType
    status: StatusText
    executed_at: InstantText | None


class ListedTimer(Struct, frozen=True, gc=False):
    """A timer in a list."""

    id: str
    created_at: InstantText
    execute_at: InstantText
    callback_type: CallbackType
    callback_target: Annotated[
        str | None,
        Meta(
            description="The URL of an HTTP callback, or the subject of a NATS callback.",
            examples=["https://api.example.com/webhook"],
        ),
    ]
    status: StatusText
    due_at: InstantText
    executed_at: InstantText | None
    last_error: str | None


class ChangedTimer(Struct, frozen=True):
    """A timer in short, after a change."""

    id: str
    created_at: InstantText
    updated_at: InstantText
    execute_at: InstantText
    callback_type: CallbackType
    status: StatusText
    executed_at: InstantText | None


class CanceledTimer(Struct, frozen=True):
    id: str
    status: StatusText


class TimerList(Struct, frozen=True):
    """A page of timers."""

    timers: list[ListedTimer]
    total: int
    limit: int
    offset: int
    total_is_estimated: Annotated[
        bool | UnsetType,
        Meta(description="Present and true when `total` is large and was estimated."),
    ] = UNSET


class HttpCallbackConfig(Struct, frozen=True, tag="http", tag_field="type"):
    url: str
    headers: ShownHeaders = UNSET
    payload: Raw | UnsetType = UNSET


class NatsCallbackConfig(Struct, frozen=True, tag="nats", tag_field="type"):
    """A NATS message on `topic`, or on `topic.key` with a key."""

    topic: str
    key: str | UnsetType = UNSET
    headers: ShownHeaders = UNSET
    payload: Raw | UnsetType = UNSET
    ack: Annotated[
        bool | UnsetType,
        Meta(description="Present and true when a JetStream stream must store the message."),
    ] = UNSET


class BusCallbackConfig(Struct, frozen=True, tag="bus", tag_field="type"):
    """An event on the message bus: the timer was registered there."""

    payload: Raw | UnsetType = UNSET


CallbackConfig = HttpCallbackConfig | NatsCallbackConfig | BusCallbackConfig


class RetryPolicyAnswer(Struct, frozen=True):
    """The policy with all its members, in both spellings. It may be sent back as it is."""

    max_retries: int
    max_attempts: int
    max_retry_attempts_duration: DurationText
    max_attempts_duration: DurationText
    initial_interval: DurationText
    backoff_multiplier: float
    max_interval: DurationText


class AttemptAnswer(Struct, frozen=True):
    """One attempt to deliver. If Duetime stopped before the answer, `sent_at` and `answered_at`
    are null."""

    number: int
    due_at: InstantText
    claimed_at: InstantText
    sent_at: InstantText | None
    answered_at: InstantText | None
    outcome: OutcomeText
    error: str | None
    answer: AnswerText


class TimerDetail(Struct, frozen=True):
    """Everything about a timer."""

    id: str
    created_at: InstantText
    updated_at: InstantText
    execute_at: InstantText
    callback_type: CallbackType
    callback_config: CallbackConfig
    status: StatusText
    last_error: str | None
    executed_at: InstantText | None
    metadata: Annotated[Raw | None, Meta(description="The metadata as given, or null.")]
    retry_policy: RetryPolicyAnswer | None
    due_at: Annotated[
        InstantText,
        Meta(description="Instant of the next attempt: `execute_at` unless a retry is planned."),
    ]
    attempt: Annotated[int, Meta(description="Attempts made in the current firing.")]
    delivery_id: Annotated[
        str, Meta(description="The `webhook-id` of the current firing. Its retries share it.")
    ]
    attempts: Annotated[list[AttemptAnswer], Meta(description="The latest attempts, oldest first.")]


class EngineStatus(Struct, frozen=True):
    running: bool
    shards_owned: int
    lateness_ms: Annotated[
        float | None,
        Meta(description="99th percentile over the last minute; null if nothing was due."),
    ]
    in_flight: Annotated[int, Meta(description="Attempts under way.")]
    local_shortages: Annotated[
        int,
        Meta(
            description="Attempts postponed since the start because this process lacked file"
            " descriptors, local ports or memory, or could not reach the proxy of callbacks. They"
            " do not count as attempts."
        ),
    ]
    callbacks_refused: Annotated[
        int,
        Meta(
            description="Callbacks since the start that were not sent because `CALLBACK_NETWORKS`,"
            " or the list of their namespace, does not allow their address."
        ),
    ]


class ClusterStatus(Struct, frozen=True):
    """This node and the others that share its database."""

    node: str
    members: int
    shards: int
    clock_offset_ms: Annotated[
        float | None, Meta(description="How far the database's clock is ahead of this node's.")
    ]
    clock_skewed: bool


class BusStatus(Struct, frozen=True):
    """The message bus as this node sees it. Counts start with the process."""

    broker: str
    connected: bool
    consuming: Annotated[
        bool, Meta(description="False when no commands could be read for ten seconds or more.")
    ]
    commands_received: int
    commands_rejected: int
    commands_ignored: Annotated[
        int, Meta(description="Commands for timers that had fired or been canceled.")
    ]
    events_published: int


class NatsStatus(Struct, frozen=True):
    """The NATS server for callbacks, as this node sees it."""

    server: str
    connected: bool


class DiskStatus(Struct, frozen=True):
    """The disk of the SQLite file."""

    free_bytes: Annotated[
        int,
        Meta(
            description="Free space, less the room that the write-ahead log needs in the database"
            " file when it is copied."
        ),
    ]
    reserve_bytes: int
    short: Annotated[
        bool, Meta(description="Whether free space is below the reserve: nothing new is accepted.")
    ]


class HealthStatus(Struct, frozen=True):
    status: Annotated[str, Meta(extra_json_schema={"enum": ["up", "degraded"]})]
    database: Annotated[str, Meta(extra_json_schema={"enum": ["connected", "disconnected"]})]
    timestamp: InstantText
    engine: EngineStatus
    disk: DiskStatus | UnsetType = UNSET
    cluster: ClusterStatus | UnsetType = UNSET
    bus: BusStatus | UnsetType = UNSET
    nats: NatsStatus | UnsetType = UNSET


def _envelope(name: str, data: Any, codes: dict[str, object]) -> type[Struct]:
    """The type of an answer `{code, message, data}`, for its schema."""
    code = Annotated[int, Meta(extra_json_schema=codes)]
    return defstruct(name, [("code", code), ("message", str), ("data", data)])


TimerSummaryEnvelope = _envelope("TimerSummaryEnvelope", TimerSummary, {"const": 0})
ChangedTimerEnvelope = _envelope("ChangedTimerEnvelope", ChangedTimer, {"const": 0})
CanceledTimerEnvelope = _envelope("CanceledTimerEnvelope", CanceledTimer, {"const": 0})
TimerDetailEnvelope = _envelope("TimerDetailEnvelope", TimerDetail, {"const": 0})
TimerListEnvelope = _envelope("TimerListEnvelope", TimerList, {"const": 0})
HealthStatusEnvelope = _envelope("HealthStatusEnvelope", HealthStatus, {"enum": [0, 1]})
ProbeEnvelope = _envelope("ProbeEnvelope", None, {"enum": [0, 1]})
Error = _envelope("Error", None, {"enum": [1, 2, 3, 4]})
