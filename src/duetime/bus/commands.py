"""From the bytes of a command to what it asks for, or to why it cannot be accepted."""

import re
from base64 import b64encode
from hashlib import blake2b
from uuid import UUID

import msgspec
from msgspec import UNSET, DecodeError, Struct, UnsetType, ValidationError

from duetime.bus.messages import (
    COMMAND_REJECTED,
    MAX_COMMAND_BYTES,
    SCHEDULE_TIMER,
    CommandRejected,
    CommandRejectedEnvelope,
    ScheduleTimerEnvelope,
    encode,
    key_of,
)
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, parse_instant
from duetime.ports.bus import Channel, OutgoingMessage, ReceivedCommand
from duetime.service.bus_scheduling import Schedule

MAX_QUOTED_BYTES = 16_384

_UNREADABLE = (DecodeError, RecursionError, UnicodeDecodeError)
_NOT_JSON = "the command is not JSON in UTF-8, or is nested too deeply"

_MISSING = re.compile("Object missing required field `(.*)`")

_FIELDS = {
    "namespace": "payload.tenantId",
    "id": "payload.serviceCallId",
    "execute_at": "payload.dueAt",
    "correlation_id": "correlationId",
}
"""As the service names them, and as they are spelt here."""


class _Type(Struct):
    type: str


class _Readable(Struct, rename="camel"):
    """What a rejection repeats, if it is there and what it should be."""

    id: object = UNSET
    tenant_id: object = UNSET
    correlation_id: object = UNSET


_decode_type = msgspec.json.Decoder(_Type).decode
_decode_schedule = msgspec.json.Decoder(ScheduleTimerEnvelope).decode
_decode_readable = msgspec.json.Decoder(_Readable).decode


class Rejection(Exception):
    """The command cannot be accepted, whoever looks at it. The message says why."""


def read_command(command: ReceivedCommand) -> Schedule:
    """Raises `Rejection`."""
    if not command.data:
        raise Rejection("the command is empty")
    if len(command.data) > MAX_COMMAND_BYTES:
        raise Rejection(f"the command must not be larger than {MAX_COMMAND_BYTES} bytes")
    try:
        envelope = _decode_schedule(command.data)
    except _UNREADABLE as error:
        raise Rejection(_problem_of(command.data, error)) from None
    payload = envelope.payload
    if envelope.tenant_id != payload.tenant_id:
        raise Rejection("payload.tenantId must be the same as tenantId")
    try:
        due_at = parse_instant(payload.due_at)
    except ValueError as error:
        raise Rejection(f"payload.dueAt {error}") from None
    return Schedule(
        namespace=payload.tenant_id,
        id=payload.service_call_id,
        due_at=due_at,
        correlation_id=envelope.correlation_id or None,
        order=command.order,
    )


def reason_of(error: InvalidInput) -> str:
    """What the service did not accept, in the spelling of the bus."""
    return f"{_FIELDS.get(error.field, error.field)} {error.problem}"


def rejection_message(command: ReceivedCommand, reason: str, now: Instant) -> OutgoingMessage:
    """Its id follows from the command, so that a repeat can be told."""
    name = blake2b(b"%d " % command.order + command.data, digest_size=16).digest()
    readable = _readable(command.data)
    envelope = CommandRejectedEnvelope(
        id=str(UUID(bytes=name)),
        type=COMMAND_REJECTED,
        tenant_id=_text(readable.tenant_id),
        timestamp_ms=now // MICROSECONDS_PER_MS,
        correlation_id=_text(readable.correlation_id),
        causation_id=_text(readable.id),
        payload=CommandRejected(
            reason=reason, command=b64encode(command.data[:MAX_QUOTED_BYTES]).decode()
        ),
    )
    tenant_id = "" if envelope.tenant_id is UNSET else envelope.tenant_id
    return OutgoingMessage(
        channel=Channel.REJECTED,
        id=envelope.id,
        key=key_of(tenant_id, ""),
        data=encode(envelope),
    )


def _problem_of(data: bytes, error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return _NOT_JSON
    try:
        command_type = _decode_type(data).type
    except ValidationError:
        command_type = None
    except _UNREADABLE:
        return _NOT_JSON
    if command_type is not None and command_type != SCHEDULE_TIMER:
        return f"type is {command_type[:64]!r}; only {SCHEDULE_TIMER!r} is known"
    return _worded(str(error))


def _worded(problem: str) -> str:
    """`Expected X - at `$.payload.dueAt`` with the field first."""
    text, _, path = problem.partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    missing = _MISSING.fullmatch(text)
    if missing is not None:
        return f"{field}{'.' if field else ''}{missing[1]} is missing"
    return f"{field or 'the command'}: {text[:1].lower()}{text[1:]}"


def _readable(data: bytes) -> _Readable:
    try:
        return _decode_readable(data)
    except _UNREADABLE:
        return _Readable()


def _text(value: object) -> str | UnsetType:
    return value[:1_024] if isinstance(value, str) and value else UNSET
