"""A message on the bus as one line, for people or for programs."""

from base64 import b64decode
from binascii import Error as Base64Error

import msgspec
from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from rich.text import Text

from duetime.bus.messages import (
    CANCEL_TIMER,
    COMMAND_REJECTED,
    DUE_TIME_REACHED,
    SCHEDULE_TIMER,
    AnyEnvelope,
    CancelTimer,
    CommandRejected,
    DueTimeReached,
    ScheduleTimer,
)
from duetime.cli.terminal import printable
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, datetime_of

_MAX_NAME = 60
_MAX_REASON = 120
_MAX_CONTENT = 100
_MAX_TIMESTAMP_MS = 253_402_300_800_000
"""First timestamp after the year 9999."""

_STYLES = {
    SCHEDULE_TIMER: "yellow",
    CANCEL_TIMER: "yellow",
    DUE_TIME_REACHED: "green",
    COMMAND_REJECTED: "red",
}


class Summary(Struct, frozen=True):
    """The tenant and call that a message is about, and what it says."""

    name: str
    facts: tuple[str, ...]


def tenant_of(data: bytes) -> str | None:
    envelope = _envelope(data)
    return None if envelope is None else envelope.tenant_id


def readable_line(data: bytes, arrived_at: Instant) -> Text:
    """Time, type, tenant and call, and content of the message. The time of arrival replaces a
    missing timestamp."""
    envelope = _envelope(data)
    message_type = "unreadable" if envelope is None else envelope.type or "no type"
    summary = Summary("-", (_beginning(data),)) if envelope is None else _summary(envelope, data)
    return Text.assemble(
        (_time(_made_at(envelope) or arrived_at, arrived_at), "dim"),
        "  ",
        (printable(message_type, _MAX_NAME), _STYLES.get(message_type, "red")),
        "  ",
        (printable(summary.name, _MAX_NAME), "cyan"),
        "  ",
        "  ".join(summary.facts),
    )


def json_line(data: bytes) -> str:
    """The message without line breaks; as a JSON string if it is not JSON."""
    try:
        return msgspec.json.format(data, indent=-1).decode("utf-8", "replace")
    except DecodeError:
        return msgspec.json.encode(data.decode("utf-8", "replace")).decode()


def _made_at(envelope: AnyEnvelope | None) -> Instant | None:
    """The timestamp of the message; None if it has none, or an impossible one."""
    made_at_ms = None if envelope is None else envelope.timestamp_ms
    if not isinstance(made_at_ms, int) or not 0 < made_at_ms < _MAX_TIMESTAMP_MS:
        return None
    return Instant(made_at_ms * MICROSECONDS_PER_MS)


def _time(instant: Instant, now: Instant) -> str:
    """The time of day, preceded by the date unless it is today."""
    time, today = datetime_of(instant), datetime_of(now).date()
    day = "" if time.date() == today else f"{time:%Y-%m-%d} "
    return f"{day}{time:%H:%M:%S.%f}"[:-3] + "Z"


def _summary(envelope: AnyEnvelope, data: bytes) -> Summary:
    try:
        return _summary_by_type(envelope)
    except (DecodeError, UnicodeDecodeError):
        return Summary(envelope.tenant_id or "-", (_beginning(data),))


def _summary_by_type(envelope: AnyEnvelope) -> Summary:
    """Raises DecodeError if the type is unknown, or the payload does not fit it."""
    correlation = envelope.correlation_id
    traced = () if not correlation else (f"correlation {printable(correlation, _MAX_NAME)}",)
    match envelope.type:
        case "ScheduleTimer":
            command = msgspec.json.decode(envelope.payload, type=ScheduleTimer)
            due = f"due {printable(command.due_at, _MAX_NAME)}"
            facts = (due, *traced, *_carried(command.payload))
            return Summary(f"{command.tenant_id}/{command.service_call_id}", facts)
        case "CancelTimer":
            cancel = msgspec.json.decode(envelope.payload, type=CancelTimer)
            return Summary(f"{cancel.tenant_id}/{cancel.service_call_id}", traced)
        case "DueTimeReached":
            event = msgspec.json.decode(envelope.payload, type=DueTimeReached)
            reached = f"reached {printable(event.reached_at, _MAX_NAME)}"
            facts = (reached, *traced, *_carried(event.payload))
            return Summary(f"{event.tenant_id}/{event.service_call_id}", facts)
        case "CommandRejected":
            rejected = msgspec.json.decode(envelope.payload, type=CommandRejected)
            reason = printable(rejected.reason, _MAX_REASON)
            return Summary(envelope.tenant_id or "-", (reason, *traced, _quoted(rejected.command)))
        case _:
            raise DecodeError("not a type of ours")


def _carried(payload: Raw | UnsetType) -> tuple[str, ...]:
    return () if payload is UNSET else (_beginning(bytes(payload)),)


def _quoted(command: str) -> str:
    try:
        return _beginning(b64decode(command, validate=True))
    except (Base64Error, ValueError):
        return printable(command, _MAX_CONTENT)


def _beginning(data: bytes) -> str:
    if not data:
        return "(empty)"
    return printable(data[: 4 * _MAX_CONTENT].decode("utf-8", "replace"), _MAX_CONTENT)


def _envelope(data: bytes) -> AnyEnvelope | None:
    try:
        return msgspec.json.decode(data, type=AnyEnvelope)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
