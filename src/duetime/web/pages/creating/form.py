"""The form for a new timer: from the typed fields to a timer, and from a timer to the fields."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from msgspec import UNSET, Raw

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
from duetime.domain.security.redaction import REDACTED, has_redacted, is_secret, shown_callback
from duetime.domain.timer import Timer
from duetime.service.create_requests import NewTimer
from duetime.service.validation import check_retry_policy
from duetime.web.errors import words_of
from duetime.web.forms.due import read_span_ms
from duetime.web.forms.json_text import formatted, read_json
from duetime.web.forms.labels import in_words, problem_in_words
from duetime.web.pages.creating.instants import LocalTime
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
MISSING = "is missing"
WHOLE = "form"
"""The place for problems that belong to no field."""

NOT_COPIED = "enter it again, since secrets are not copied"

_PLACEHOLDER = Delay(60_000)
_FIELDS = {"execute_at": "at", "execute_in": "in", "callback.type": "kind"}
T = TypeVar("T")


class TimerForm:
    """The fields of a form that was sent, and what is wrong with them. Every field is read, so that
    all problems are told at once. Fields of kinds that are not chosen do not matter."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.problems: dict[str, str] = {}
        self.says: dict[str, str] = {}
        """Words about fields that are right."""

    @classmethod
    def sent(cls, fields: Fields) -> "TimerForm":
        """Browsers send the lines of a text with CR LF."""
        return cls({name: fields.text(name).replace("\r\n", "\n") for name in DEFAULTS})

    @property
    def namespace(self) -> str:
        return self._text("namespace")

    @property
    def id(self) -> str | None:
        return self._text("id") or None

    @property
    def has_retries(self) -> bool:
        """Whether anything is given that a closed part of the form would hide."""
        return any(self._text(name) for name in (*POLICY_FIELDS, "timeout"))

    @property
    def lacks_only_fields(self) -> bool:
        """Whether nothing is wrong that the user typed."""
        return all(problem == MISSING for problem in self.problems.values())

    def forgive_missing(self) -> None:
        """Nobody is told of a field that they have not come to."""
        self.problems = {name: each for name, each in self.problems.items() if each != MISSING}

    def refusal(self) -> InvalidInput:
        """The first problem, as the error of the whole form."""
        return InvalidInput(*next(iter(self.problems.items())))

    def add(self, error: DuetimeError) -> None:
        """Put a problem beside its field. The first problem of a field counts."""
        if not isinstance(error, InvalidInput):
            self.problems.setdefault(WHOLE, words_of(error))
            return
        field = _FIELDS.get(error.field) or error.field.removeprefix("callback.")
        field, _, part = field.removeprefix("retry_policy.").partition(".")
        words = problem_in_words(error)
        problem = f"{part} {words}" if part else words
        if REDACTED in error.problem:
            problem = f"lacks the value of {part or 'the password'}: {NOT_COPIED}"
        if field in DEFAULTS:
            self.problems.setdefault(field, problem)
        else:
            self.problems.setdefault(WHOLE, in_words(error))

    def read_due(self) -> Instant | Delay | None:
        """None if it is wrong."""
        if self.values["when"] == "at":
            return self._read(self._instant)
        return self._read(self._delay)

    def _delay(self) -> Delay:
        text = self._text("in").lower().removeprefix("in ")
        return Delay(read_span_ms("in", text))

    def _instant(self) -> Instant:
        given = LocalTime(self._text("at"), self._text("zone"))
        first, second = given.instants()
        if second is None:
            return first
        self.says["occurrence"] = (
            f"Clocks in {given.zone} are set back, so this time comes twice: at "
            f"{datetime_of(first):%H:%M} and at {datetime_of(second):%H:%M} UTC."
        )
        match self.values["occurrence"]:
            case "first":
                return first
            case "second":
                return second
        raise InvalidInput("occurrence", "must be chosen")

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
            id=self.id,
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
            self.problems[name] = MISSING
        return text or None

    def _read(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except InvalidInput as error:
            self.add(error)
            return None

    def _json(self, name: str) -> Raw | None:
        """The JSON with its numbers as they were typed; None if the field is empty."""
        text = self._text(name)
        return read_json(name, text) if text else None

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
            if is_secret(name.strip()) and not value.strip():
                raise InvalidInput("headers", f"lacks the value of {name.strip()}: {NOT_COPIED}")
            headers[name.strip()] = value.strip()
        return headers or None

    def _span_ms(self, name: str) -> int | None:
        text = self._text(name)
        return read_span_ms(name, text) if text else None

    def _policy(self, policy: RetryPolicy) -> RetryPolicy | None:
        """The policy of the namespace with the given members; None if none is given."""
        given = {name: text for name in POLICY_FIELDS if (text := self._text(name))}
        if not given:
            return None
        read = {
            name: self._read(partial(_member, name, text, policy)) for name, text in given.items()
        }
        members = {name: value for name, value in read.items() if value is not None}
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
        fields["payload"] = formatted(callback.payload)
    if timer.metadata is not None:
        fields["metadata"] = formatted(timer.metadata)
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
    values = ("" if value == REDACTED else value for value in headers.values())
    fields["headers"] = "\n".join(map("{}: {}".format, headers, values))
    return fields, has_redacted(callback)


def _member(name: str, text: str, policy: RetryPolicy) -> float | str:
    """A member of a retry policy, as the API takes it. Raises `InvalidInput`, also for one that is
    out of its range."""
    value: float | str
    if name in ("max_retries", "backoff_multiplier"):
        value = _number(name, text)
    else:
        value = format_duration(read_span_ms(name, text))
    alone = RetryPolicyBody(**{name: value})  # type: ignore[arg-type]
    check_retry_policy(retry_policy_of(alone, policy))
    return value


def _number(name: str, text: str) -> float:
    try:
        return int(text) if name == "max_retries" else float(text)
    except ValueError:
        kind = "a whole number" if name == "max_retries" else "a number"
        raise InvalidInput(f"retry_policy.{name}", f"must be {kind}") from None
