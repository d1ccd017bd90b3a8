"""A received callback as one line, for people or for programs."""

import msgspec
from rich.text import Text

from duetime.cli.output.terminal import printable
from duetime.cli.output.wording import lateness
from duetime.cli.receiver import ReceivedCallback
from duetime.domain.instants import datetime_of, format_instant

_MAX_TARGET = 60
_MAX_NAME = 60
_MAX_PAYLOAD = 100
_ON_TIME_MS = 20


def readable_line(callback: ReceivedCallback) -> Text:
    """Time of arrival, request, timer if the callback names it, else the delivery id, attempt,
    lateness and payload."""
    late_ms = callback.lateness_ms
    on_time = late_ms is not None and 0 <= late_ms < _ON_TIME_MS
    arrival = datetime_of(callback.arrived_at).strftime("%H:%M:%S.%f")[:-3] + "Z"
    return Text.assemble(
        (arrival, "dim"),
        "  ",
        (printable(f"{callback.method} {callback.target}", _MAX_TARGET), "bold"),
        "  ",
        (_name(callback), "cyan"),
        "  ",
        f"attempt {printable(_attempt(callback) or '-', 8)}",
        "  ",
        (lateness(late_ms), "green" if on_time else "yellow"),
        "  ",
        printable(_payload_text(callback), _MAX_PAYLOAD),
    )


def json_line(callback: ReceivedCallback) -> str:
    request = callback.request
    return msgspec.json.encode(
        {
            "arrived_at": format_instant(callback.arrived_at),
            "method": callback.method,
            "target": callback.target,
            "webhook_id": callback.webhook_id,
            "namespace": None if request is None else request.namespace,
            "id": None if request is None else request.id,
            "attempt": _attempt(callback),
            "lateness_ms": callback.lateness_ms,
            "headers": callback.headers,
            "payload": callback.payload,
        }
    ).decode()


def _name(callback: ReceivedCallback) -> str:
    request = callback.request
    if request is None:
        return _short_id(callback.webhook_id)
    return printable(f"{request.namespace}/{request.id}", _MAX_NAME)


def _attempt(callback: ReceivedCallback) -> str | None:
    """As the header says, which callbacks of both APIs have; a request made by hand may not."""
    if callback.attempt is None and callback.request is not None:
        return str(callback.request.attempt)
    return callback.attempt


def _short_id(webhook_id: str | None) -> str:
    """The end of the id, because ids made at one time begin alike."""
    if webhook_id is None:
        return "-"
    return printable(webhook_id if len(webhook_id) <= 12 else "…" + webhook_id[-8:])


def _payload_text(callback: ReceivedCallback) -> str:
    text = callback.payload_text
    if not text:
        return "(no payload)"
    return text[: 4 * _MAX_PAYLOAD].decode("utf-8", "replace")
