"""The messages of the bus, as they travel: JSON envelopes, in the spelling of the contract."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

MAX_COMMAND_BYTES = 65_536
MAX_ENVELOPE_ID_CHARACTERS = 255
MAX_CORRELATION_CHARACTERS = 1_024

SCHEDULE_TIMER: Final = "ScheduleTimer"
DUE_TIME_REACHED: Final = "DueTimeReached"
COMMAND_REJECTED: Final = "CommandRejected"

EnvelopeId = Annotated[
    str,
    Meta(
        description="The name of this message, a UUIDv7 as a rule. A repeat has the same.",
        min_length=1,
        max_length=MAX_ENVELOPE_ID_CHARACTERS,
        examples=["01920f6e-7a3b-7cc1-8f2e-5d4c3b2a1908"],
    ),
]
TenantId = Annotated[
    str,
    Meta(
        description="The tenant, which is the namespace of its timers. Needs no provisioning.",
        min_length=1,
        max_length=255,
        examples=["acme"],
    ),
]
ServiceCallId = Annotated[
    str,
    Meta(
        description="Which call of the tenant it is: the id of the timer.",
        min_length=1,
        max_length=255,
        examples=["call-42"],
    ),
]
TimestampMs = Annotated[
    int,
    Meta(
        description="When the message was made, in milliseconds since 1970.",
        ge=0,
        examples=[1_767_225_600_000],
    ),
]
CorrelationId = Annotated[
    str,
    Meta(
        description="What the sender traces a request by. Carried through to the event.",
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


class ScheduleTimer(Struct, frozen=True, kw_only=True, rename="camel"):
    """The call is to be announced at an instant; at once if it has passed.

    Takes the place of an earlier one for the same call as long as that is pending, and is ignored
    once it has fired.
    """

    tenant_id: TenantId
    service_call_id: ServiceCallId
    due_at: InstantText


class DueTimeReached(Struct, frozen=True, kw_only=True, rename="camel"):
    """The instant of the call has come. `reachedAt` is when that was announced, never earlier."""

    tenant_id: TenantId
    service_call_id: ServiceCallId
    reached_at: InstantText


class CommandRejected(Struct, frozen=True, kw_only=True, rename="camel"):
    """A command that could not be accepted, and why."""

    reason: Annotated[
        str,
        Meta(
            description="What is wrong; names the field, unless it is the whole command.",
            examples=["payload.dueAt must have a UTC offset, such as 2026-01-01T12:00:00Z"],
        ),
    ]
    command: Annotated[
        str,
        Meta(
            description="The command as it came, in base64; of a very long one, the beginning.",
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
    """On `timer.commands`. Fields that are not known here are ignored."""

    type: Literal["ScheduleTimer"]
    payload: ScheduleTimer


class DueTimeReachedEnvelope(_Envelope, frozen=True, kw_only=True):
    """On `timer.events`. `id` is fixed when the timer is registered, so that a repeat can be told.
    `correlationId` is that of the command, if it had one."""

    type: Literal["DueTimeReached"]
    payload: DueTimeReached


class CommandRejectedEnvelope(Struct, frozen=True, kw_only=True, rename="camel"):
    """On `timer.commands.rejected`. `tenantId` and `correlationId` are those of the command, and
    `causationId` is its id, as far as they could be read."""

    id: EnvelopeId
    type: Literal["CommandRejected"]
    tenant_id: str | UnsetType = UNSET
    timestamp_ms: TimestampMs
    correlation_id: str | UnsetType = UNSET
    causation_id: str | UnsetType = UNSET
    payload: CommandRejected


class AnyEnvelope(Struct, frozen=True, kw_only=True, rename="camel"):
    """As much of a message as a person who looks at it wants to be told apart."""

    type: str = ""
    id: str = ""
    tenant_id: str = ""
    correlation_id: str | None = None
    causation_id: str | None = None
    timestamp_ms: object = None
    payload: Raw = Raw(b"{}")


encode = msgspec.json.Encoder().encode


def key_of(tenant_id: str, service_call_id: str) -> str:
    """What messages are kept in order by."""
    return f"{tenant_id}.{service_call_id}"
