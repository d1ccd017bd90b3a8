"""A received callback, and its output as one line, for people or for programs."""

from collections.abc import Iterator
from functools import cached_property
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec
from rich.text import Text

from duetime.cli.terminal import printable
from duetime.delivery.answer_protocol import CallbackRequest
from duetime.domain.instants import (
    MICROSECONDS_PER_MS,
    Instant,
    datetime_of,
    format_instant,
    parse_instant,
)
from duetime.domain.wording import lateness

_MAX_TARGET = 60
_MAX_NAME = 60
_MAX_PAYLOAD = 100
_ON_TIME_MS = 20
_DUE_FIELDS = ("due", "execute_at", "executeAt")

_decode_request = msgspec.json.Decoder(CallbackRequest).decode


class Signature(NamedTuple):
    """The outcome of the check of a callback's signatures."""

    problem: str | None

    @property
    def is_verified(self) -> bool:
        return self.problem is None


class ReceivedCallback:
    """One request as it arrived, with header names in lower case."""

    def __init__(self, arrived_at: Instant) -> None:
        self.arrived_at = arrived_at
        self.method = ""
        self.target = ""
        self.headers: dict[str, str] = {}
        self.body = b""
        self.answer_status: int = HTTPStatus.OK
        self.answer_body = b""
        self.signature: Signature | None = None

    @property
    def webhook_id(self) -> str | None:
        return self.headers.get("webhook-id")

    @property
    def attempt(self) -> str | None:
        """The header of both APIs' callbacks, else the number in the body; a request made by hand
        may lack both."""
        attempt = self.headers.get("timer-attempt")
        if attempt is None and self.request is not None:
            return str(self.request.attempt)
        return attempt

    @property
    def is_retry(self) -> bool:
        attempt = self.attempt or ""
        return attempt.isascii() and attempt.isdigit() and attempt.lstrip("0") not in ("", "1")

    @cached_property
    def request(self) -> CallbackRequest | None:
        """The body of a v1 callback, which names its timer; None for any other body."""
        try:
            return _decode_request(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    @property
    def payload_text(self) -> bytes:
        """The payload as it was sent; empty if there is none."""
        if self.request is None:
            return self.body
        text = bytes(self.request.payload)
        return b"" if text == b"null" else text

    @cached_property
    def payload(self) -> object:
        """The decoded payload; text if it is not JSON, None if there is none."""
        text = self.payload_text
        if not text:
            return None
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return text.decode("utf-8", "replace")

    @cached_property
    def due_at(self) -> Instant | None:
        """The instant at which the callback was due: `?due=` in the URL, `executeAt` of a v1
        callback, or `due` or `execute_at` in the payload; None without any of them."""
        try:
            text: object = parse_qs(urlsplit(self.target).query).get("due", [None])[0]
        except ValueError:
            return None
        if text is None and self.request is not None:
            text = self.request.execute_at
        if text is None and isinstance(self.payload, dict):
            text = next((self.payload[name] for name in _DUE_FIELDS if name in self.payload), None)
        if not isinstance(text, str):
            return None
        try:
            return parse_instant(text)
        except ValueError:
            return None

    @property
    def lateness_ms(self) -> float | None:
        """None for a retry too: the callback does not say when that was due."""
        if self.due_at is None or self.is_retry:
            return None
        return (self.arrived_at - self.due_at) / MICROSECONDS_PER_MS


def readable_line(callback: ReceivedCallback) -> Text:
    """Time of arrival, request, timer (or delivery id if the callback does not name the timer),
    attempt, lateness, payload and answer."""
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
        f"attempt {printable(callback.attempt or '-', 8)}",
        "  ",
        ("retry", "yellow")
        if callback.is_retry
        else (lateness(late_ms), "green" if on_time else "yellow"),
        "  ",
        printable(_payload_text(callback), _MAX_PAYLOAD),
        "  ",
        *_signature_text(callback.signature),
        ("→ " + _answer_text(callback), "green" if 200 <= callback.answer_status < 300 else "red"),
    )


def _signature_text(signature: Signature | None) -> Iterator[tuple[str, str]]:
    if signature is None:
        return
    if signature.is_verified:
        yield "signature verified", "green"
    else:
        yield f"signature refused: {signature.problem}", "red"
    yield "  ", ""


def json_line(callback: ReceivedCallback) -> str:
    request, signature = callback.request, callback.signature
    return msgspec.json.encode(
        {
            "arrived_at": format_instant(callback.arrived_at),
            "method": callback.method,
            "target": callback.target,
            "webhook_id": callback.webhook_id,
            "namespace": None if request is None else request.namespace,
            "id": None if request is None else request.id,
            "attempt": callback.attempt,
            "lateness_ms": callback.lateness_ms,
            "headers": callback.headers,
            "payload": _written_payload(callback),
            "signature": None
            if signature is None
            else {"verified": signature.is_verified, "problem": signature.problem},
            "answer": {
                "status": callback.answer_status,
                "body": callback.answer_body.decode("utf-8", "replace") or None,
            },
        }
    ).decode()


def _written_payload(callback: ReceivedCallback) -> object:
    """The payload for a line of JSON: as it was sent, without line breaks. Decoding would turn 1.10
    into 1.1."""
    text = callback.payload_text
    try:
        text.decode()
        return msgspec.Raw(msgspec.json.format(text, indent=-1)) if text else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return callback.payload


def _name(callback: ReceivedCallback) -> str:
    request = callback.request
    if request is None:
        return _short_id(callback.webhook_id)
    return printable(f"{request.namespace}/{request.id}", _MAX_NAME)


def _short_id(webhook_id: str | None) -> str:
    """The end of the id, because ids made at the same time begin alike."""
    if webhook_id is None:
        return "-"
    return printable(webhook_id if len(webhook_id) <= 12 else "…" + webhook_id[-8:])


def _payload_text(callback: ReceivedCallback) -> str:
    text = callback.payload_text
    if not text:
        return "(no payload)"
    return text[: 4 * _MAX_PAYLOAD].decode("utf-8", "replace")


def _answer_text(callback: ReceivedCallback) -> str:
    body = callback.answer_body.decode("utf-8", "replace")
    return f"{callback.answer_status} {printable(body, _MAX_PAYLOAD)}".rstrip()
