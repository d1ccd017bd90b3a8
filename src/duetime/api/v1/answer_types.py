"""The bodies that the Timer API v1 writes."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duetime.api.http.types import (
    AnswerText,
    DurationText,
    InstantText,
    OutcomeText,
    ShownHeaders,
    StatusText,
)
from duetime.domain.limits import MAX_IMPORT_ERRORS

EXISTENCE_HEADER = "Timer-Existence"
"""Header of the answer to a create: whether the timer is new."""

Details = dict[str, str | int | list[str]]


class RetryPolicyAnswer(Struct, frozen=True, rename="camel", gc=False):
    """The policy with all its members, in both spellings. It may be sent back as it is."""

    max_retries: int
    max_attempts: int
    max_retry_attempts_duration: DurationText
    max_attempts_duration: DurationText
    initial_interval: DurationText
    backoff_multiplier: float
    max_interval: DurationText


class AttemptAnswer(Struct, frozen=True, rename="camel", gc=False):
    """One attempt to deliver."""

    number: int
    due_at: InstantText
    claimed_at: InstantText
    sent_at: InstantText | None
    answered_at: InstantText | None
    outcome: OutcomeText
    error: str | None
    answer: AnswerText


class TimerAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A timer as it is now."""

    id: str
    namespace: str
    execute_at: InstantText
    callback_url: str | None
    callback_type: Literal["nats", "bus"] | UnsetType = UNSET
    callback_protocol: Literal["answer", "status"] | UnsetType = UNSET
    callback_headers: ShownHeaders = UNSET
    payload: Raw | None
    retry_policy: RetryPolicyAnswer | None
    callback_timeout: DurationText
    callback_timeout_seconds: float
    created_at: InstantText
    updated_at: InstantText
    executed_at: InstantText | None
    status: StatusText
    attempts: list[AttemptAnswer]
    last_error: str | None
    next_attempt_at: InstantText | None
    delivery_id: str
    correlation_id: str | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET


class TimerPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Timers in the order of `executeAt`, and the cursor of the next page."""

    timers: list[TimerAnswer]
    next_cursor: str | None
    unreadable: int = 0


class ItemError(Struct, frozen=True, kw_only=True):
    """Why a timer was not created."""

    error: str
    message: str
    details: Details


class ErrorAnswer(ItemError, frozen=True, kw_only=True):
    """Why a request was refused or failed."""

    timestamp: InstantText


class BatchResult(Struct, frozen=True, gc=False, omit_defaults=True):
    """The result for one timer of a batch."""

    status: Literal["created", "existing", "conflict", "invalid"]
    namespace: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET


class BatchAnswer(Struct, frozen=True):
    """One result for each timer of the batch, in the same order."""

    results: list[BatchResult]


class LineError(ItemError, frozen=True):
    """Why a line was not imported. The first line is number 1."""

    line: int
    namespace: str | UnsetType = UNSET
    id: str | UnsetType = UNSET


class CountsAnswer(Struct, frozen=True, kw_only=True, gc=False):
    """Timers by status."""

    pending: int
    executing: int
    completed: int
    failed: int
    canceled: int


class RestoredAnswer(Struct, frozen=True, rename="camel"):
    """The full lines of an import that were restored."""

    namespaces: Annotated[
        int, Meta(description="Namespaces that were created, or existed with the same options.")
    ]
    existing_namespaces: Annotated[
        int, Meta(description="Those of `namespaces` that existed with the same options.")
    ]
    timers: Annotated[
        CountsAnswer, Meta(description="Timers that were restored, by their new status.")
    ]


class ImportAnswer(Struct, frozen=True, kw_only=True):
    """The result of an import."""

    lines: int
    created: int
    existing: int
    conflicts: int
    invalid: int
    errors: Annotated[
        list[LineError],
        Meta(description=f"The first {MAX_IMPORT_ERRORS} lines that were not imported."),
    ]
    restored: Annotated[
        RestoredAnswer | UnsetType, Meta(description="Present if the stream had full lines.")
    ] = UNSET


class RedriveAnswer(Struct, frozen=True):
    """How many timers matched, and how many of them are pending again."""

    matched: int
    redriven: int


class SloStatusAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """The attempts within the window of a lateness objective, of all nodes."""

    attempts: Annotated[int, Meta(description="Attempts within the window.")]
    late: Annotated[int, Meta(description="Those of them that were late.")]
    error_budget_left: Annotated[
        float,
        Meta(
            description="Share of the error budget that is left: 1 is all of it, and below 0 the "
            "objective is missed.",
            examples=[0.87],
        ),
    ]


class NamespaceAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A namespace as it is now. Null means that the service's own setting applies."""

    name: str
    num_shards: int
    retry_policy: RetryPolicyAnswer
    retention: Annotated[
        str | None, Meta(description='How long finished timers are kept; "0s" keeps them for ever.')
    ]
    concurrency: int | None
    max_payload_bytes: int | None
    max_pending: int | None
    callback_networks: str | None
    slo: Annotated[str | None, Meta(description="Lateness objective; null if there is none.")]
    slo_status: Annotated[
        SloStatusAnswer | None,
        Meta(description="Null without an objective, and for seconds after a start or a change."),
    ]
    deleting: Annotated[
        bool,
        Meta(
            description="The namespace is being deleted: it takes no more timers, and will be gone."
        ),
    ]
    counts: Annotated[
        CountsAnswer | UnsetType,
        Meta(description="The namespace's timers by status; absent in lists."),
    ] = UNSET


class NamespaceListAnswer(Struct, frozen=True):
    """All namespaces, in the order of their names."""

    namespaces: list[NamespaceAnswer]
