"""Full lines as they are written and read.

Unknown members are refused: a member that is left out silently would be missing from the copy.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duetime.api.http.types import DurationText, InstantText, OutcomeText, StatusText
from duetime.api.v1.answer_types import SloStatusAnswer
from duetime.api.v1.request_types import NamespaceBody, RetryPolicyBody

VERSION = 1
"""Version of the lines. A release reads the versions up to its own."""

PayloadJson = Annotated[Raw | UnsetType, Meta(description="The JSON value, exactly as written.")]
PayloadText = Annotated[
    str | UnsetType,
    Meta(description="The JSON value as text, if it has line breaks: they would end the line."),
]
Timeout = Annotated[
    DurationText | None,
    Meta(description="Absent if the service's own timeout applies."),
]


Traceparent = Annotated[
    str | None,
    Meta(
        description="The trace context of the request that gave the callback, if it had one.",
        examples=["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    ),
]


class FullHttpCallback(
    Struct,
    frozen=True,
    kw_only=True,
    tag="http",
    tag_field="type",
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """A callback over HTTP."""

    url: str
    headers: dict[str, str] | None = None
    payload: PayloadJson = UNSET
    payload_text: PayloadText = UNSET
    timeout: Timeout = None
    protocol: Literal["answer", "status"]
    traceparent: Traceparent = None


class FullNatsCallback(
    Struct,
    frozen=True,
    kw_only=True,
    tag="nats",
    tag_field="type",
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """A message over NATS."""

    topic: str
    key: str | None = None
    headers: dict[str, str] | None = None
    payload: PayloadJson = UNSET
    payload_text: PayloadText = UNSET
    timeout: Timeout = None
    ack: bool = False
    traceparent: Traceparent = None


class FullBusCallback(
    Struct,
    frozen=True,
    kw_only=True,
    tag="bus",
    tag_field="type",
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """An event on the bus."""

    payload: PayloadJson = UNSET
    payload_text: PayloadText = UNSET
    timeout: Timeout = None
    traceparent: Traceparent = None


FullCallback = FullHttpCallback | FullNatsCallback | FullBusCallback


MAX_WAIT_MICROSECONDS = 10**16
"""Three centuries; no timer is that late."""


class FullWait(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the time for which an attempt waited before it was sent."""

    cause: Annotated[str, Meta(description="The cause, in a word.", max_length=64)]
    microseconds: Annotated[int, Meta(description="Its length.", ge=0, le=MAX_WAIT_MICROSECONDS)]


class FullAttempt(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """One attempt to deliver. `outcome` is absent in records of older releases."""

    number: int
    due_at: InstantText
    claimed_at: InstantText
    sent_at: InstantText | None = None
    answered_at: InstantText | None = None
    outcome: OutcomeText | None = None
    error: str | None = None
    answer: str | None = None
    waits: Annotated[
        tuple[FullWait, ...],
        Meta(
            description="Its waits before it was sent, one after the other.",
            max_length=100,
        ),
    ] = ()


class FullTimer(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """A timer with its whole state. Absent members are null, zero or empty."""

    namespace: str
    id: str
    status: StatusText
    execute_at: InstantText
    due_at: Annotated[InstantText, Meta(description="Instant of the next attempt, or of the last.")]
    created_at: InstantText
    updated_at: InstantText
    executed_at: InstantText | None = None
    claimed_at: Annotated[
        InstantText | None, Meta(description="Present if the timer is executing.")
    ] = None
    delivery_id: str
    callback: FullCallback
    retry_policy: Annotated[
        RetryPolicyBody | None, Meta(description="Absent if the timer is not retried.")
    ] = None
    attempt: Annotated[int, Meta(description="Attempts of this firing.")] = 0
    failures: Annotated[int, Meta(description="Failed attempts of this firing.")] = 0
    claim_number: Annotated[int, Meta(description="Claims since the timer was created.")] = 0
    attempts: tuple[FullAttempt, ...] = ()
    last_error: str | None = None
    metadata: PayloadJson = UNSET
    metadata_text: PayloadText = UNSET
    correlation_id: str | None = None
    command_order: Annotated[
        int, Meta(description="Position of the bus command that scheduled the timer.")
    ] = 0
    fingerprint: Annotated[
        str | None,
        Meta(
            description="Recognises a repeated create by its idempotency key or `executeIn`; 16 "
            "bytes in hexadecimal digits. Left out where secrets are `[redacted]`, because it "
            "covers them."
        ),
    ] = None


class FullNamespace(NamespaceBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A namespace with its options, as the list of namespaces shows it."""

    name: str
    slo_status: Annotated[
        SloStatusAnswer | UnsetType | None,
        Meta(description="Ignored: the attempts of a copy count where they were made."),
    ] = UNSET
    deleting: Annotated[
        bool, Meta(description="Ignored: a namespace that is restored takes timers.")
    ] = False


class FullLine(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a full export: a namespace or a timer."""

    full: Annotated[int, Meta(description=f"The version of the line, {VERSION}.")]
    namespace: FullNamespace | UnsetType = UNSET
    timer: FullTimer | UnsetType = UNSET


class FullTimerPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Timers in the order of `executeAt`, and the cursor of the next page."""

    timers: list[FullTimer]
    next_cursor: str | None
    unreadable: int = 0
