"""The bodies of the Timer API v1, as they are read and written.

Unknown members are refused: a misspelt `retryPolicy` would be noticed only when the timer has
failed without it.
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
    KEY_LENGTH,
    KEY_TEXT,
    MAX_ATTEMPTS,
    MAX_RETRIES,
    TIMEOUT_SECONDS,
)
from duetime.api.platform.types import AttemptOutcomeText, DurationText, InstantText

MAX_BATCH = 1_000
EXISTENCE_HEADER = "Timer-Existence"
"""Of the answer to a create: whether the timer is a new one."""

NamespaceText = Annotated[
    str,
    Meta(
        description="The namespace; it must exist. `default` unless given.",
        extra_json_schema=KEY_LENGTH,
        examples=["notifications"],
    ),
]
GroupIdText = Annotated[
    str | UnsetType,
    Meta(description="An older name of `namespace`.", extra_json_schema=KEY_LENGTH),
]
TimerIdText = Annotated[
    str,
    Meta(
        description="The client's own id, unique within the namespace. Any characters but NUL.",
        extra_json_schema=KEY_TEXT,
        examples=["user-reminder-123"],
    ),
]
ExecuteAtText = Annotated[
    str,
    Meta(
        description="When to make the callback: ISO 8601 with a UTC offset, in the future.",
        extra_json_schema=INSTANT,
        examples=["2030-01-01T12:00:00Z"],
    ),
]
CallbackUrlText = Annotated[
    str,
    Meta(
        description="An http or https URL.",
        extra_json_schema=HTTP_URL,
        examples=["https://app.example.com/webhooks/timer"],
    ),
]
PayloadJson = Annotated[
    Raw | UnsetType, Meta(description="Any JSON value; the callback carries it as it is.")
]
TimeoutText = Annotated[
    str | UnsetType,
    Meta(
        description='How long an attempt may take, such as "30s"; from 1ms to 1h. Without one '
        "the service's own holds, 30s unless configured.",
        extra_json_schema=DURATION,
    ),
]
TimeoutSeconds = Annotated[
    float | UnsetType,
    Meta(description="The same in seconds; give one of them.", extra_json_schema=TIMEOUT_SECONDS),
]
Protocol = Annotated[
    Literal["answer", "status"] | UnsetType,
    Meta(
        description="`answer`: the callback is `{namespace, id, executeAt, attempt, payload}` and "
        'a 200 must carry `{"ok": true}` or `{"ok": false}`. `status`: the payload alone is '
        "sent, and any 2xx completes the timer. `answer` unless given.",
    ),
]
HeadersJson = Annotated[
    dict[str, Annotated[str, Meta(extra_json_schema=HEADER_VALUE)]] | UnsetType | None,
    Meta(
        description="Headers to send along, 16 KiB in all. Left out are those that frame the "
        "request, `webhook-id`, `webhook-timestamp`, `webhook-signature` and `Timer-Attempt`.",
        examples=[{"Authorization": "Bearer token123"}],
        extra_json_schema=HEADERS,
    ),
]
MetadataJson = Annotated[
    Raw | UnsetType,
    Meta(description="Any JSON value for the client's own reference. It is not sent."),
]
StatusLabel = Literal["pending", "executing", "completed", "failed", "canceled"]
Details = dict[str, str | int | list[str]]


class RetryPolicyBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """How a failing callback is tried again. Absent members are those of the namespace."""

    max_retries: Annotated[
        int | UnsetType,
        Meta(description="Retries after the first attempt.", extra_json_schema=MAX_RETRIES),
    ] = UNSET
    max_attempts: Annotated[
        int | UnsetType,
        Meta(
            description="Instead of `maxRetries`: one more than it.",
            extra_json_schema=MAX_ATTEMPTS,
        ),
    ] = UNSET
    max_retry_attempts_duration: Annotated[
        str | UnsetType,
        Meta(
            description="No retry is planned later than this after the first attempt; up to 365 "
            "days.",
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    max_attempts_duration: Annotated[
        str | UnsetType,
        Meta(
            description="Instead of `maxRetryAttemptsDuration`: the same.",
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    initial_interval: Annotated[
        str | UnsetType,
        Meta(
            description='The wait before the first retry, such as "500ms", "30s" or "1h30m".',
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    backoff_multiplier: Annotated[
        float | UnsetType,
        Meta(
            description="What each further wait is multiplied by.",
            extra_json_schema=BACKOFF_MULTIPLIER,
        ),
    ] = UNSET
    max_interval: Annotated[
        str | UnsetType,
        Meta(description="The longest wait, up to 30 days.", extra_json_schema=DURATION),
    ] = UNSET


class CreateBody(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """A timer that is wanted."""

    id: TimerIdText
    execute_at: ExecuteAtText
    callback_url: CallbackUrlText
    namespace: NamespaceText | UnsetType = UNSET
    group_id: GroupIdText = UNSET
    payload: PayloadJson = UNSET
    retry_policy: RetryPolicyBody | None = None
    callback_timeout: TimeoutText = UNSET
    callback_timeout_seconds: TimeoutSeconds = UNSET
    callback_headers: HeadersJson = UNSET
    callback_protocol: Protocol = UNSET
    metadata: MetadataJson = UNSET


class ChangeMembers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What may be changed of a pending timer."""

    execute_at: ExecuteAtText | UnsetType = UNSET
    callback_url: CallbackUrlText | UnsetType = UNSET
    payload: PayloadJson = UNSET
    retry_policy: RetryPolicyBody | UnsetType | None = UNSET
    callback_timeout: TimeoutText = UNSET
    callback_timeout_seconds: TimeoutSeconds = UNSET
    callback_headers: HeadersJson = UNSET
    callback_protocol: Protocol = UNSET


class UpdateBody(ChangeMembers, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Any of its members; the others stay as they are."""


class SelectionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Which timer is meant."""

    timer_id: TimerIdText
    namespace: NamespaceText | UnsetType = UNSET
    group_id: GroupIdText = UNSET


class RetryPolicyAnswer(Struct, frozen=True, rename="camel", gc=False):
    """The policy with all its members."""

    max_retries: int
    max_retry_attempts_duration: DurationText
    initial_interval: DurationText
    backoff_multiplier: float
    max_interval: DurationText


class AttemptAnswer(Struct, frozen=True, rename="camel", gc=False):
    """One try to deliver."""

    number: int
    due_at: InstantText
    claimed_at: InstantText
    sent_at: InstantText | None
    answered_at: InstantText | None
    outcome: AttemptOutcomeText
    error: str | None


class TimerAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A timer as it is now."""

    id: str
    namespace: str
    execute_at: InstantText
    callback_url: str | None
    callback_type: Literal["nats", "bus"] | UnsetType = UNSET
    callback_protocol: Literal["answer", "status"] | UnsetType = UNSET
    callback_headers: dict[str, str] | UnsetType = UNSET
    payload: Raw | None
    retry_policy: RetryPolicyAnswer | None
    callback_timeout: DurationText
    callback_timeout_seconds: float
    created_at: InstantText
    updated_at: InstantText
    executed_at: InstantText | None
    status: StatusLabel
    attempts: list[AttemptAnswer]
    last_error: str | None
    next_attempt_at: InstantText | None
    delivery_id: str
    correlation_id: str | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET


class ItemError(Struct, frozen=True, kw_only=True):
    """Why a timer was not created."""

    error: str
    message: str
    details: Details


class ErrorAnswer(ItemError, frozen=True, kw_only=True):
    """Why a request was not done."""

    timestamp: InstantText


class BatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Up to 1,000 timers that are wanted."""

    timers: Annotated[
        list[CreateBody], Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_BATCH})
    ]


class BatchResult(Struct, frozen=True, gc=False, omit_defaults=True):
    """What became of one timer of the batch; `error` says why it is `conflict` or `invalid`."""

    status: Literal["created", "existing", "conflict", "invalid"]
    namespace: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET


class BatchAnswer(Struct, frozen=True):
    """One result for each timer of the batch, in the same order."""

    results: list[BatchResult]


class LineError(ItemError, frozen=True):
    """What is wrong with a line, the first being 1."""

    line: int
    namespace: str | UnsetType = UNSET
    id: str | UnsetType = UNSET


class ImportAnswer(Struct, frozen=True, kw_only=True):
    """What became of the lines. `errors` tells of the first 100 that were not imported."""

    lines: int
    created: int
    existing: int
    conflicts: int
    invalid: int
    errors: list[LineError]


class TimerPage(Struct, frozen=True, rename="camel"):
    """Timers in the order of their instants, and where the next page begins."""

    timers: list[TimerAnswer]
    next_cursor: str | None


class RedriveBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Which failed timers are to be fired once more: one by its id, or those in a range."""

    namespace: NamespaceText | UnsetType = UNSET
    timer_id: TimerIdText | UnsetType = UNSET
    due_after: Annotated[
        str | UnsetType,
        Meta(
            description="Only those with an `executeAt` at or after this instant.",
            extra_json_schema=INSTANT,
        ),
    ] = UNSET
    due_before: Annotated[
        str | UnsetType,
        Meta(
            description="Only those with an `executeAt` before this instant.",
            extra_json_schema=INSTANT,
        ),
    ] = UNSET
    error_contains: Annotated[
        str | UnsetType,
        Meta(
            description="Only those whose `lastError` contains this text; upper and lower case "
            "differ."
        ),
    ] = UNSET
    all: Annotated[bool, Meta(description="All of the namespace; needed without a filter.")] = False
    dry_run: Annotated[bool, Meta(description="Only count them.")] = False


class RedriveAnswer(Struct, frozen=True):
    """How many timers matched, and how many of them are pending again."""

    matched: int
    redriven: int
