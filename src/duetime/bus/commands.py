"""Parses commands, or explains why they cannot be accepted."""

import re

import msgspec
from msgspec import UNSET, DecodeError, Raw, Struct, ValidationError

from duetime.bus.messages import (
    CANCEL_TIMER,
    SCHEDULE_TIMER,
    CancelTimerEnvelope,
    ScheduleTimerEnvelope,
)
from duetime.domain.callback import Payload
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import parse_instant
from duetime.domain.json_depth import is_deeper_than
from duetime.domain.limits import MAX_COMMAND_BYTES, MAX_JSON_DEPTH, MAX_PAYLOAD_BYTES
from duetime.ports.bus import ReceivedCommand
from duetime.service.bus_scheduling import Cancellation, Schedule
from duetime.telemetry.current_work import traceparent_of

UNREADABLE = (DecodeError, RecursionError, UnicodeDecodeError)
_NOT_JSON = "the command is not JSON in UTF-8, or is nested too deeply"

_MISSING = re.compile("Object missing required field `(.*)`")
_EXPECTED = re.compile("Expected `([^`]*)`(?:( of length)? ([<>]=) (.*))?(?:, got `.*`)?")
_IN_WORDS = {
    "array": "an array",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a string",
}

_FIELDS = {
    "namespace": "payload.tenantId",
    "id": "payload.serviceCallId",
    "execute_at": "payload.dueAt",
    "correlation_id": "correlationId",
    "callback.payload": "payload.payload",
}
"""Field names of the service, and their names on the bus."""


class _Type(Struct):
    type: str


_decode_type = msgspec.json.Decoder(_Type).decode
_decode_schedule = msgspec.json.Decoder(ScheduleTimerEnvelope).decode
_decode_cancellation = msgspec.json.Decoder(CancelTimerEnvelope).decode


class Rejection(Exception):
    """The command cannot be accepted, by any node. The message says why."""


def read_command(command: ReceivedCommand) -> Schedule | Cancellation:
    """Raises `Rejection`."""
    if not command.data:
        raise Rejection("the command is empty")
    if len(command.data) > MAX_COMMAND_BYTES + MAX_PAYLOAD_BYTES:
        raise _too_large()
    try:
        envelope = _decode_schedule(command.data)
    except UNREADABLE as error:
        if isinstance(error, ValidationError) and _type_of(command.data) == CANCEL_TIMER:
            return _read_cancellation(command)
        raise Rejection(_problem_of(command.data, error)) from None
    payload = envelope.payload
    carried = _checked_payload(command.data, payload.payload)
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
        payload=carried,
        traceparent=traceparent_of(command.traceparent),
    )


def _read_cancellation(command: ReceivedCommand) -> Cancellation:
    if len(command.data) > MAX_COMMAND_BYTES:
        raise _too_large()
    try:
        envelope = _decode_cancellation(command.data)
    except UNREADABLE as error:
        raise Rejection(_problem_of(command.data, error)) from None
    payload = envelope.payload
    if envelope.tenant_id != payload.tenant_id:
        raise Rejection("payload.tenantId must be the same as tenantId")
    return Cancellation(
        namespace=payload.tenant_id, id=payload.service_call_id, order=command.order
    )


def _checked_payload(data: bytes, payload: Payload) -> Payload:
    """The payload on its own, without the rest of the message; msgspec has checked neither its
    text nor its depth. The service checks its size."""
    if payload is UNSET:
        if len(data) > MAX_COMMAND_BYTES:
            raise _too_large()
        return UNSET
    text = bytes(payload)
    if len(data) - len(text) > MAX_COMMAND_BYTES:
        raise _too_large()
    try:
        text.decode()
    except UnicodeDecodeError:
        raise Rejection("payload.payload is not UTF-8") from None
    if is_deeper_than(text, MAX_JSON_DEPTH):
        raise Rejection(f"payload.payload is nested deeper than {MAX_JSON_DEPTH} levels")
    return Raw(text)


def _too_large() -> Rejection:
    return Rejection(
        f"the command must not be larger than {MAX_COMMAND_BYTES} bytes without payload.payload"
    )


def reason_of(error: InvalidInput) -> str:
    """The service's refusal, with the field names of the bus."""
    return f"{_FIELDS.get(error.field, error.field)} {error.problem}"


def _type_of(data: bytes) -> str | None:
    try:
        return _decode_type(data).type
    except UNREADABLE:
        return None


def _problem_of(data: bytes, error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return _NOT_JSON
    try:
        command_type = _decode_type(data).type
    except ValidationError:
        command_type = None
    except UNREADABLE:
        return _NOT_JSON
    if command_type is not None and command_type not in (SCHEDULE_TIMER, CANCEL_TIMER):
        known = f"only {SCHEDULE_TIMER!r} and {CANCEL_TIMER!r} are known"
        return f"type is {command_type[:64]!r}; {known}"
    return _field_first(str(error))


def _field_first(problem: str) -> str:
    """msgspec's "Expected `str`, got `int` - at `$.payload.dueAt`" becomes "payload.dueAt must be a
    string"."""
    text, _, path = problem.partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    missing = _MISSING.fullmatch(text)
    if missing is not None:
        return f"{field}{'.' if field else ''}{missing[1]} is missing"
    return f"{field or 'the command'} {_in_words(text)}"


def _in_words(problem: str) -> str:
    expected = _EXPECTED.fullmatch(problem)
    if expected is None:
        return "is out of range" if problem.endswith("out of range") else "is not valid"
    kinds, is_length, comparison, bound = expected.groups()
    if comparison is None:
        return "must be " + " or ".join(_IN_WORDS.get(kind, kind) for kind in kinds.split(" | "))
    limit = f"{'at least' if comparison == '>=' else 'at most'} {bound}"
    if not is_length:
        return f"must be {limit}"
    return f"must have {limit} character{'' if bound == '1' else 's'}"
