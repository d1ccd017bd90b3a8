"""The callback protocol in which the endpoint's answer decides the outcome."""

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from duetime.delivery.http_client import HttpAnswer
from duetime.domain.callback import Payload
from duetime.domain.instants import Instant, format_instant, parse_instant
from duetime.domain.limits import MAX_DELAY_MICROSECONDS, MAX_DELAY_YEARS, MAX_REASON_CHARACTERS
from duetime.domain.outcome import Completed, Failed, Outcome, Rescheduled
from duetime.domain.timer import Claim

_NULL = Raw(b"null")


class CallbackRequest(Struct, frozen=True, rename="camel"):
    """The body of a request. `payload` is the client's JSON byte for byte, or null."""

    namespace: str
    id: str
    execute_at: str
    attempt: int
    payload: Raw


class UnreadableAnswer(ValueError):
    """The answer decides nothing. The text addresses the author of the endpoint."""


class _Answer(Struct, frozen=True, rename="camel", gc=False):
    """The members that Duetime reads. Each value is parsed only when it matters, so the others
    may be anything."""

    ok: Raw | UnsetType = UNSET
    next_execute_at: Raw | UnsetType = UNSET
    message: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_encode_request = msgspec.json.Encoder().encode
_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_text = msgspec.json.Decoder(str).decode


def format_request(claim: Claim, payload: Payload) -> bytes:
    return _encode_request(
        CallbackRequest(
            claim.namespace,
            claim.id,
            format_instant(claim.execute_at),
            claim.attempt,
            _NULL if payload is UNSET else payload,
        )
    )


def read_answer(
    answer: HttpAnswer, *, sent_at: Instant, answered_at: Instant, retry_after_ms: int | None
) -> Outcome:
    """The outcome of an answer with status 200.

    `{"ok": true}` completes the timer, whatever else the answer says. `{"ok": false}` with a
    `nextExecuteAt` reschedules it. An instant in the past means now, so the timer queues behind
    everything that is already due, however often it is answered so. Without `nextExecuteAt`,
    or if the answer is unreadable, the attempt failed, but the endpoint is alive.
    """
    try:
        said = _decode(answer)
        if _is_ok(said):
            return Completed(sent_at=sent_at, answered_at=answered_at)
        next_execute_at = _next_execute_at(said, answered_at)
    except UnreadableAnswer as unreadable:
        return Failed(
            sent_at=sent_at,
            answered_at=answered_at,
            error=f"HTTP 200, but {unreadable}",
            retry_after_ms=retry_after_ms,
            blames_endpoint=False,
        )
    if next_execute_at is not None:
        return Rescheduled(
            sent_at=sent_at, answered_at=answered_at, next_execute_at=next_execute_at
        )
    return Failed(
        sent_at=sent_at,
        answered_at=answered_at,
        error='answered {"ok": false}' + _reason(said),
        retry_after_ms=retry_after_ms,
        blames_endpoint=False,
    )


def _decode(answer: HttpAnswer) -> _Answer:
    if answer.body_truncated:
        raise _no_decision(f"it is longer than {len(answer.body)} bytes")
    if not answer.body:
        raise _no_decision("it is empty")
    try:
        return _decode_answer(answer.body.decode())
    except UnicodeDecodeError:
        raise _no_decision("it is not UTF-8") from None
    except RecursionError:
        raise _no_decision("it is nested too deeply") from None
    except msgspec.ValidationError:
        raise _no_decision("it is not a JSON object") from None
    except msgspec.DecodeError:
        raise _no_decision("it is not JSON") from None


def _is_ok(said: _Answer) -> bool:
    if said.ok is UNSET:
        raise _no_decision("ok is missing")
    text = bytes(said.ok)
    if text not in (b"true", b"false"):
        raise _no_decision("ok is neither true nor false")
    return text == b"true"


def _next_execute_at(said: _Answer, now: Instant) -> Instant | None:
    if said.next_execute_at is UNSET or bytes(said.next_execute_at) == b"null":
        return None
    text = _text(said.next_execute_at)
    if text is None:
        raise UnreadableAnswer("nextExecuteAt must be a string")
    try:
        instant = parse_instant(text)
    except ValueError as error:
        raise UnreadableAnswer(f"nextExecuteAt {error}") from None
    if instant < 0:
        raise UnreadableAnswer("nextExecuteAt must not be before 1970")
    if instant - now > MAX_DELAY_MICROSECONDS:
        raise UnreadableAnswer(
            f"nextExecuteAt is too far in the future: at most {MAX_DELAY_YEARS} years"
        )
    return max(instant, now)


def _reason(said: _Answer) -> str:
    """The endpoint's own words about its refusal, as one short line of printable characters."""
    for member in (said.message, said.error):
        text = None if member is UNSET else _text(member)
        if text and not text.isspace():
            return f": {one_line(text)}"
    return ""


def one_line(text: str) -> str:
    """The beginning of the text as one short line of printable characters."""
    line = "".join(c if c.isprintable() else " " for c in text[:MAX_REASON_CHARACTERS])
    return line.strip() if len(text) <= MAX_REASON_CHARACTERS else f"{line[:-1]}…"


def _text(member: Raw) -> str | None:
    """The member's value; None if it is not a string."""
    try:
        return _decode_text(member)
    except msgspec.DecodeError:
        return None


def _no_decision(problem: str) -> UnreadableAnswer:
    return UnreadableAnswer(f'the answer is not {{"ok": true|false}}: {problem}')
