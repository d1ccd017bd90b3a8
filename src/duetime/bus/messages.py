"""The messages of the bus: JSON envelopes, in the spelling of the contract."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duetime.domain.limits import MAX_CORRELATION_CHARACTERS, MAX_KEY_CHARACTERS

SCHEDULE_TIMER: Final = "ScheduleTimer"
CANCEL_TIMER: Final = "CancelTimer"
DUE_TIME_REACHED: Final = "DueTimeReached"
COMMAND_REJECTED: Final = "CommandRejected"

EnvelopeId = Annotated[
    str,
    Meta(
        description="Identifies this message, usually a UUIDv7. A repeat has the same id.",
        min_length=1,
        max_length=MAX_KEY_CHARACTERS,
        examples=["01920f6e-7a3b-7cc1-8f2e-5d4c3b2a1908"],
    ),
]
TenantId = Annotated[
    str,
    Meta(
        description="The tenant: the namespace of its timers. Needs no provisioning.",
        min_length=1,
        max_length=MAX_KEY_CHARACTERS,
        examples=["acme"],
    ),
]
ServiceCallId = Annotated[
    str,
    Meta(
        description="The tenant's call: the id of the timer.",
        min_length=1,
        max_length=MAX_KEY_CHARACTERS,
        examples=["call-42"],
    ),
]
TimestampMs = Annotated[
    int,
    Meta(
        description="Time at which the message was created, in milliseconds since 1970.",
        ge=0,
        examples=[1_767_225_600_000],
    ),
]
CorrelationId = Annotated[
    str,
    Meta(
        description="The sender's id for tracing. The event repeats it.",
        max_length=MAX_CORRELATION_CHARACTERS,
        examples=["req-7f3a"],
    ),
]
InstantText = Annotated[
    str,
    Meta(
        description="A date and time in ISO 8601 with a UTC offset.",
        extra_json_schema={"format": "date-time"},
        examples=["2026-01-01T12:00:00Z"],
    ),
]


AnyPayload = Annotated[
    Raw,
    Meta(
        description="Any JSON. Comes back in the event to the letter; absent there if absent here.",
        examples=[{"order": 4711}],
    ),
]


class ScheduleTimer(Struct, frozen=True, kw_only=True, rename="camel"):
    """Announces the call at an instant, or at once if the instant has passed.

    Replaces an earlier command for the same call while that timer is pending, and is ignored once
    it has fired.
    """

    tenant_id: TenantId
    service_call_id: ServiceCallId
    due_at: InstantText
    payload: AnyPayload | UnsetType = UNSET


class CancelTimer(Struct, frozen=True, kw_only=True, rename="camel"):
    """Cancels the timer of the call while it is pending. Ignored once it has fired.

    A canceled timer stays canceled: a later `ScheduleTimer` for the call is ignored.
    """

    tenant_id: TenantId
    service_call_id: ServiceCallId


class DueTimeReached(Struct, frozen=True, kw_only=True, rename="camel"):
    """The instant of the call has come. `reachedAt` is when it was announced, never earlier."""

    tenant_id: TenantId
    service_call_id: ServiceCallId
    reached_at: InstantText
    payload: AnyPayload | UnsetType = UNSET


class CommandRejected(Struct, frozen=True, kw_only=True, rename="camel"):
    """A command that was not accepted, and why."""

    reason: Annotated[
        str,
        Meta(
            description="Why the command was rejected; names the field, if one is to blame.",
            examples=["payload.dueAt must have a UTC offset, such as 2026-01-01T12:00:00Z"],
        ),
    ]
    command: Annotated[
        str,
        Meta(
            description="The command as received, in base64; cut if very long.",
            extra_json_schema={"contentEncoding": "base64"},
        ),
    ]


class _Envelope(Struct, frozen=True, kw_only=True, rename="camel"):
    id: EnvelopeId
    tenant_id: TenantId
    aggregate_id: ServiceCallId | UnsetType | None = UNSET
    timestamp_ms: TimestampMs
    correlation_id: CorrelationId | UnsetType | None = UNSET
    causation_id: EnvelopeId | UnsetType | None = UNSET


class ScheduleTimerEnvelope(_Envelope, frozen=True, kw_only=True):
    """On `timer.commands`. Unknown fields are ignored."""

    type: Literal["ScheduleTimer"]
    payload: ScheduleTimer


class CancelTimerEnvelope(_Envelope, frozen=True, kw_only=True):
    """On `timer.commands`. Unknown fields are ignored."""

    type: Literal["CancelTimer"]
    payload: CancelTimer


class DueTimeReachedEnvelope(_Envelope, frozen=True, kw_only=True):
    """On `timer.events`. `id` is fixed when the timer is created, so that a repeat is recognized.
    `correlationId` is that of the command, if it had one."""

    type: Literal["DueTimeReached"]
    payload: DueTimeReached


class CommandRejectedEnvelope(Struct, frozen=True, kw_only=True, rename="camel"):
    """On `timer.commands.rejected`. `tenantId` and `correlationId` repeat the command's, and
    `causationId` is its id, if they are readable."""

    id: EnvelopeId
    type: Literal["CommandRejected"]
    tenant_id: str | UnsetType = UNSET
    timestamp_ms: TimestampMs
    correlation_id: str | UnsetType = UNSET
    causation_id: str | UnsetType = UNSET
    payload: CommandRejected


class AnyEnvelope(Struct, frozen=True, kw_only=True, rename="camel"):
    """The members of a message that are shown to people. Accepts any message."""

    type: str = ""
    id: str = ""
    tenant_id: str = ""
    correlation_id: str | None = None
    timestamp_ms: object = None
    payload: Raw = Raw(b"{}")


encode = msgspec.json.Encoder().encode


def key_of(tenant_id: str, service_call_id: str) -> str:
    """Messages of one key keep their order."""
    return f"{tenant_id}.{service_call_id}"
