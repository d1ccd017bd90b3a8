"""The form for a new timer: from the typed fields to a timer, and from a timer to the fields."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import UNSET, Raw

from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.values import metadata_of, retry_policy_of
from duetime.api.v1.request_types import RetryPolicyBody
from duetime.domain.callback import (
    BusCallback,
    Callback,
    CallbackProtocol,
    HttpCallback,
    NatsCallback,
    Payload,
)
from duetime.domain.errors import DuetimeError, InvalidInput
from duetime.domain.instants import Delay, Instant, datetime_of, format_duration
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.redaction import has_redacted, shown_callback
from duetime.domain.timer import Timer
from duetime.service.create_requests import NewTimer
from duetime.web.pages.creating.instants import (
    LocalTime,
    TwiceThere,
    parse_delay,
    parse_local_time,
    parse_span_ms,
)
from duetime.web.request import Fields

DEFAULTS: Mapping[str, str] = {
    "kind": "http",
    "url": "",
    "protocol": CallbackProtocol.STATUS.value,
    "topic": "",
    "key": "",
    "ack": "",
    "headers": "",
    "payload": "",
    "when": "in",
    "in": "15 min",
    "at": "",
    "zone": "UTC",
    "occurrence": "",
    "namespace": "",
    "id": "",
    "metadata": "",
    "timeout": "",
    "max_retries": "",
    "initial_interval": "",
    "backoff_multiplier": "",
    "max_interval": "",
    "max_retry_attempts_duration": "",
}
"""The fields of the form, as a new one shows them."""

POLICY_FIELDS = tuple(DEFAULTS)[-5:]
WHOLE = "form"
"""The place for problems that belong to no field."""

_PLACEHOLDER = Delay(60_000)
_FIELDS = {"execute_at": "at", "execute_in": "in", "callback.type": "kind"}
_BYTE = re.compile(r"\(byte (\d+)\)")

_decode_json = BodyDecoder(Raw, {}).decode
T = TypeVar("T")


class TimerForm:
    """The fields of a form that was sent, and what is wrong with them. Every field is read, so that
    all problems are told at once. Fields of kinds that are not chosen do not matter."""

    def __init__(self, fields: Fields) -> None:
        self.values = {name: _line_ends(fields.text(name)) for name in DEFAULTS}
        self.problems: dict[str, str] = {}
        self.choices: tuple[str, str] | None = None
        """The words for a local time that comes twice."""

    @property
    def namespace(self) -> str:
        return self._text("namespace")

    def add(self, error: DuetimeError) -> None:
        """Put a problem beside its field. The first problem of a field counts."""
        if not isinstance(error, InvalidInput):
            self.problems.setdefault(WHOLE, error.message)
            return
        if isinstance(error, TwiceThere):
            self.choices = error.choices
        field = _FIELDS.get(error.field) or error.field.removeprefix("callback.")
        field, _, part = field.removeprefix("retry_policy.").partition(".")
        problem = f"{part} {error.problem}" if part else error.problem
        if field in DEFAULTS:
            self.problems.setdefault(field, problem)
        else:
            self.problems.setdefault(WHOLE, error.message)

    def read_due(self) -> Instant | Delay | None:
        """None if it is wrong."""
        if self.values["when"] == "at":
            given = LocalTime(self._text("at"), self._text("zone"), self._text("occurrence"))
            return self._read(lambda: parse_local_time(given))
        return self._read(lambda: parse_delay(self._text("in")))

    def read(self, due: Instant | Delay | None, policy: RetryPolicy) -> NewTimer | None:
        """The timer, so far as its fields can be read; None if its callback lacks its place, or
        cannot be read. `policy` is that of the namespace."""
        callback = self._callback()
        metadata = self._read(lambda: self._json("metadata"))
        retry_policy = self._read(lambda: self._policy(policy))
        if callback is None:
            return None
        return NewTimer(
            namespace=self.namespace,
            id=self._text("id") or None,
            execute_at=_PLACEHOLDER if due is None else due,
            callback=callback,
            metadata=None if metadata is None else metadata_of(metadata),
            retry_policy=retry_policy,
        )

    def _callback(self) -> Callback | None:
        typed = self._read(lambda: self._json("payload"))
        payload: Payload = UNSET if typed is None else typed
        timeout_ms = self._read(lambda: self._span_ms("timeout"))
        kind = self.values["kind"]
        if kind == "bus":
            return BusCallback(payload=payload, timeout_ms=timeout_ms)
        if kind not in ("http", "nats"):
            self.problems["kind"] = "must be http, nats or bus"
            return None
        headers = self._read(self._headers)
        place = self._needed("url" if kind == "http" else "topic")
        if place is None:
            return None
        if kind == "http":
            is_answer = self.values["protocol"] == CallbackProtocol.ANSWER.value
            return HttpCallback(
                url=place,
                headers=headers,
                payload=payload,
                timeout_ms=timeout_ms,
                protocol=CallbackProtocol.ANSWER if is_answer else CallbackProtocol.STATUS,
            )
        return NatsCallback(
            topic=place,
            key=self._text("key") or None,
            ack=bool(self.values["ack"]),
            headers=headers,
            payload=payload,
            timeout_ms=timeout_ms,
        )

    def _text(self, name: str) -> str:
        return self.values[name].strip()

    def _needed(self, name: str) -> str | None:
        text = self._text(name)
        if not text:
            self.problems[name] = "is missing"
        return text or None

    def _read(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except InvalidInput as error:
            self.add(error)
            return None

    def _json(self, name: str) -> Raw | None:
        """The JSON exactly as it was typed; None if the field is empty."""
        text = self._text(name)
        if not text:
            return None
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(name, "must be valid Unicode text") from None
        try:
            _decode_json(data, name)
        except InvalidInput as error:
            problem = _BYTE.sub(lambda found: _place(data, int(found[1])), error.problem)
            raise InvalidInput(name, problem) from None
        return Raw(data)

    def _headers(self) -> dict[str, str] | None:
        headers: dict[str, str] = {}
        for number, line in enumerate(self.values["headers"].splitlines(), 1):
            name, colon, value = line.partition(":")
            if not line.strip():
                continue
            if not colon:
                problem = f'must be lines such as "X-Tag: a"; line {number} is not'
                raise InvalidInput("headers", problem)
            if name.strip() in headers:
                raise InvalidInput("headers", f"must not give {name.strip()} twice")
            headers[name.strip()] = value.strip()
        return headers or None

    def _span_ms(self, name: str) -> int | None:
        text = self._text(name)
        return parse_span_ms(name, text) if text else None

    def _policy(self, policy: RetryPolicy) -> RetryPolicy | None:
        """The policy of the namespace with the given members; None if none is given."""
        given = {name: text for name in POLICY_FIELDS if (text := self._text(name))}
        if not given:
            return None
        members: dict[str, object] = {}
        for name, text in given.items():
            if name in ("max_retries", "backoff_multiplier"):
                members[name] = _number(name, text)
            else:
                members[name] = format_duration(parse_span_ms(name, text))
        return retry_policy_of(RetryPolicyBody(**members), policy)  # type: ignore[arg-type]


def policy_texts(policy: RetryPolicy) -> dict[str, str]:
    """A policy as the fields of the form."""
    return {
        "max_retries": str(policy.max_retries),
        "initial_interval": format_duration(policy.initial_interval_ms),
        "backoff_multiplier": f"{policy.backoff_multiplier:g}",
        "max_interval": format_duration(policy.max_interval_ms),
        "max_retry_attempts_duration": format_duration(policy.max_duration_ms),
    }


def fields_of(timer: Timer, policy: RetryPolicy, now: Instant) -> tuple[dict[str, str], bool]:
    """The fields for another timer like this one, and whether secrets are missing in them. An
    instant that has passed is not copied, and neither is the policy of the namespace."""
    callback = shown_callback(timer.callback)
    fields = {"namespace": timer.key.namespace}
    if timer.execute_at > now:
        at = datetime_of(timer.execute_at)
        fields |= {"when": "at", "at": f"{at:%Y-%m-%dT%H:%M:%S}", "zone": "UTC"}
    if callback.payload is not UNSET:
        fields["payload"] = bytes(callback.payload).decode(errors="replace")
    if timer.metadata is not None:
        fields["metadata"] = bytes(timer.metadata).decode(errors="replace")
    if callback.timeout_ms is not None:
        fields["timeout"] = format_duration(callback.timeout_ms)
    if timer.retry_policy is not None and timer.retry_policy != policy:
        fields |= policy_texts(timer.retry_policy)
    match callback:
        case HttpCallback():
            fields |= {"kind": "http", "url": callback.url, "protocol": callback.protocol.value}
        case NatsCallback():
            fields |= {"kind": "nats", "topic": callback.topic, "key": callback.key or ""}
            fields["ack"] = "on" if callback.ack else ""
        case BusCallback():
            return fields | {"kind": "bus"}, False
    headers = callback.headers or {}
    fields["headers"] = "\n".join(f"{name}: {value}" for name, value in headers.items())
    return fields, has_redacted(callback)


def _number(name: str, text: str) -> float:
    try:
        return int(text) if name == "max_retries" else float(text)
    except ValueError:
        kind = "a whole number" if name == "max_retries" else "a number"
        raise InvalidInput(f"retry_policy.{name}", f"must be {kind}") from None


def _line_ends(text: str) -> str:
    """Browsers send the lines of a text with CR LF."""
    return text.replace("\r\n", "\n")


def _place(data: bytes, at: int) -> str:
    """The line and the column of a byte."""
    lines = data[:at].decode(errors="replace").split("\n")
    return f"(line {len(lines)}, column {len(lines[-1]) + 1})"
