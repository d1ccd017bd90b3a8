"""The bodies that the Timer API v1 reads.

Unknown members are refused: otherwise a misspelled `retryPolicy` would be noticed only after the
timer had failed without it.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duetime.api.http.types import (
    DURATION,
    HEADERS,
    HTTP_URL,
    INSTANT,
    KEY_LENGTH,
    KEY_TEXT,
    BackoffMultiplier,
    ExecuteIn,
    HeaderValue,
    InitialInterval,
    MaxAttempts,
    MaxAttemptsDuration,
    MaxInterval,
    MaxRetries,
    MaxRetryDuration,
)
from duetime.domain import limits
from duetime.domain.defaults import DEFAULT_CALLBACK_TIMEOUT_MS
from duetime.domain.instants import format_duration
from duetime.domain.lateness.objective import EXAMPLE, MAX_OBJECTIVE_CHARACTERS
from duetime.domain.namespace import DEFAULT_SHARDS

NamespaceText = Annotated[
    str,
    Meta(
        description="An existing namespace. Defaults to `default`.",
        extra_json_schema=KEY_LENGTH,
        examples=["notifications"],
    ),
]
GroupIdText = Annotated[
    str | UnsetType,
    Meta(description="An older name for `namespace`.", extra_json_schema=KEY_LENGTH),
]
TimerIdText = Annotated[
    str,
    Meta(
        description="The client's own id, unique within the namespace. Any characters except NUL.",
        extra_json_schema=KEY_TEXT,
        examples=["order-1042-expiry"],
    ),
]
ExecuteAtText = Annotated[
    str,
    Meta(
        description="Instant of the callback, in the future: ISO 8601 with a UTC offset.",
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
    Raw | UnsetType, Meta(description="Any JSON value, sent exactly as written.")
]
TimeoutText = Annotated[
    str | UnsetType,
    Meta(
        description='Longest duration of an attempt, such as "30s", from '
        f"{format_duration(limits.MIN_CALLBACK_TIMEOUT_MS)} to "
        f"{format_duration(limits.MAX_CALLBACK_TIMEOUT_MS)}. Defaults to the service's own "
        f"timeout, {format_duration(DEFAULT_CALLBACK_TIMEOUT_MS)} unless configured.",
        extra_json_schema=DURATION,
    ),
]
TimeoutSeconds = Annotated[
    float | UnsetType,
    Meta(
        description="The timeout in seconds, instead of `callbackTimeout`.",
        extra_json_schema={
            "minimum": limits.MIN_CALLBACK_TIMEOUT_MS / 1_000,
            "maximum": limits.MAX_CALLBACK_TIMEOUT_MS // 1_000,
        },
    ),
]
Protocol = Annotated[
    Literal["answer", "status"] | UnsetType,
    Meta(
        description="`answer`: the callback is `{namespace, id, executeAt, attempt, payload}` and "
        'a 200 must carry `{"ok": true}` or `{"ok": false}`. `status`: the payload alone is '
        "sent, and any 2xx completes the timer. Defaults to `answer`.",
    ),
]
HeadersJson = Annotated[
    dict[str, HeaderValue] | UnsetType | None,
    Meta(
        description="Headers to send with the callback, "
        f"{limits.MAX_HEADER_BYTES // 1_024} KiB in all. Headers that frame the request, "
        "`webhook-id`, `webhook-timestamp`, `webhook-signature` and `Timer-Attempt` are not sent.",
        examples=[{"Authorization": "Bearer token123"}],
        extra_json_schema=HEADERS,
    ),
]
MetadataJson = Annotated[
    Raw | UnsetType,
    Meta(description="Any JSON value for the client's own reference. It is not sent."),
]


class RetryPolicyBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """How a failed callback is retried. Absent members are those of the namespace."""

    max_retries: MaxRetries = UNSET
    max_attempts: MaxAttempts = UNSET
    max_retry_attempts_duration: MaxRetryDuration = UNSET
    max_attempts_duration: MaxAttemptsDuration = UNSET
    initial_interval: InitialInterval = UNSET
    backoff_multiplier: BackoffMultiplier = UNSET
    max_interval: MaxInterval = UNSET


class CreateBody(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """A timer to create."""

    id: TimerIdText
    execute_at: ExecuteAtText | UnsetType = UNSET
    execute_in: ExecuteIn = UNSET
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
    """The members of a pending timer that may be changed."""

    execute_at: ExecuteAtText | UnsetType = UNSET
    execute_in: ExecuteIn = UNSET
    callback_url: CallbackUrlText | UnsetType = UNSET
    payload: PayloadJson = UNSET
    retry_policy: RetryPolicyBody | UnsetType | None = UNSET
    callback_timeout: TimeoutText = UNSET
    callback_timeout_seconds: TimeoutSeconds = UNSET
    callback_headers: HeadersJson = UNSET
    callback_protocol: Protocol = UNSET


class UpdateBody(ChangeMembers, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a timer. Absent members stay as they are."""


class SelectionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The timer that the operation is for."""

    timer_id: TimerIdText
    namespace: NamespaceText | UnsetType = UNSET
    group_id: GroupIdText = UNSET


class SelectedUpdateBody(
    ChangeMembers, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """The timer that the operation is for, and the changes to it."""

    timer_id: TimerIdText
    namespace: NamespaceText | UnsetType = UNSET
    group_id: GroupIdText = UNSET


class BatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The timers to create."""

    timers: Annotated[
        list[CreateBody],
        Meta(
            description=f"Up to {limits.MAX_BATCH_TIMERS:,} timers.",
            extra_json_schema={"minItems": 1, "maxItems": limits.MAX_BATCH_TIMERS},
        ),
    ]


class RedriveBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The failed timers to fire once more: one by its id, or all that match."""

    namespace: NamespaceText | UnsetType = UNSET
    timer_id: TimerIdText | UnsetType = UNSET
    due_after: Annotated[
        str | UnsetType,
        Meta(
            description="Only timers with an `executeAt` at or after this instant.",
            extra_json_schema=INSTANT,
        ),
    ] = UNSET
    due_before: Annotated[
        str | UnsetType,
        Meta(
            description="Only timers with an `executeAt` before this instant.",
            extra_json_schema=INSTANT,
        ),
    ] = UNSET
    error_contains: Annotated[
        str | UnsetType,
        Meta(description="Only timers whose `lastError` contains this text. Case matters."),
    ] = UNSET
    all: Annotated[
        bool, Meta(description="All failed timers of the namespace. Required without a filter.")
    ] = False
    dry_run: Annotated[bool, Meta(description="Only count the timers.")] = False


class NamespaceBody(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """A namespace to create or change. Absent members stay as they are; null resets a member."""

    num_shards: Annotated[
        int | UnsetType | None,
        Meta(
            description="Shards that the timers are spread over, "
            f"{DEFAULT_SHARDS} by default. Fixed once the namespace exists.",
            extra_json_schema={"minimum": 1, "maximum": limits.MAX_SHARDS},
        ),
    ] = UNSET
    retry_policy: Annotated[
        RetryPolicyBody | UnsetType | None,
        Meta(
            description="Policy of timers that are created without one. Absent members stay as "
            "they are; null restores the default policy."
        ),
    ] = UNSET
    retention: Annotated[
        str | UnsetType | None,
        Meta(
            description='How long finished timers are kept, such as "7d"; "0s" keeps them for '
            "ever, null applies the service's own setting.",
            examples=["7d"],
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    concurrency: Annotated[
        int | UnsetType | None,
        Meta(
            description="Callbacks of the namespace that may be under way at once on all nodes "
            "together; null removes the limit.",
            extra_json_schema={"minimum": 1, "maximum": limits.MAX_NAMESPACE_CONCURRENCY},
        ),
    ] = UNSET
    max_payload_bytes: Annotated[
        int | UnsetType | None,
        Meta(
            description="Size of the largest payload; null applies the service's own setting.",
            extra_json_schema={"minimum": 1, "maximum": limits.MAX_PAYLOAD_BYTES},
        ),
    ] = UNSET
    max_pending: Annotated[
        int | UnsetType | None,
        Meta(
            description="Timers of the namespace that may be pending or executing; creates beyond "
            "it are answered with 429. 0 takes no timers, null removes the limit.",
            extra_json_schema={"minimum": 0, "maximum": limits.MAX_NAMESPACE_PENDING},
        ),
    ] = UNSET
    callback_networks: Annotated[
        str | UnsetType | None,
        Meta(
            description="Networks and hosts that the namespace's HTTP callbacks may go to, written"
            " as in `CALLBACK_NETWORKS`. It narrows that setting: both have to allow an address."
            " Null applies the setting alone.",
            examples=["*.example.com:443"],
            extra_json_schema={
                "minLength": 1,
                "maxLength": limits.MAX_CALLBACK_NETWORKS_CHARACTERS,
            },
        ),
    ] = UNSET
    slo: Annotated[
        str | UnsetType | None,
        Meta(
            description="Lateness objective: the share of attempts that should be sent within a "
            "time after they were due, over a window of whole hours. It is measured, and changes "
            "nothing. Null removes it.",
            examples=[EXAMPLE],
            extra_json_schema={"minLength": 1, "maxLength": MAX_OBJECTIVE_CHARACTERS},
        ),
    ] = UNSET
