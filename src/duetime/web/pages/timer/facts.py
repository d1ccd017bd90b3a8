"""Everything known of a timer, as names and words."""

from collections.abc import Iterator, Sequence

from msgspec import UNSET, Raw, Struct

from duetime.domain.callback import BusCallback, Callback, CallbackProtocol, HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.retry import UNTIL_DELIVERED, RetryPolicy
from duetime.domain.security.redaction import shown_callback
from duetime.domain.timer import Attempt, Timer
from duetime.domain.wording import counted, span
from duetime.service.explaining import Explanation, length_text
from duetime.web.forms.json_text import formatted

SHOWN_LINES = 30
SHOWN_CHARACTERS = 4_000
MAX_SHOWN_BYTES = 65_536
"""Bytes of JSON that a page formats, shows or lets somebody edit: more would keep timers waiting,
on a thread, too. If the JSON is longer, its beginning is shown as it was written."""

MAX_LIVE_BYTES = 16_384
"""Bytes of JSON that is made anew again and again while the page is open."""


class Fact(Struct, frozen=True):
    """Technical words are shown in a font for them; `copies` adds a button."""

    name: str
    words: str | Instant | None
    is_technical: bool = False
    is_instant: bool = False
    copies: bool = False


class Contents(Struct, frozen=True):
    """JSON to be shown. `hidden` tells how much of it is not, if it was cut, and `has_more` that a
    page can show more."""

    text: str
    hidden: str | None = None
    has_more: bool = False


class AttemptRow(Struct, frozen=True, kw_only=True):
    """An attempt in the table. `firing` is False for those of an earlier firing."""

    attempt: Attempt
    late: str | None
    took: str | None
    is_current: bool


def contents_of(raw: Raw, *, in_full: bool) -> Contents:
    """The JSON, cut unless it is wanted in full."""
    size = len(raw)
    if size > MAX_SHOWN_BYTES:
        shown = MAX_SHOWN_BYTES if in_full else SHOWN_CHARACTERS
        text = bytes(raw)[:shown].decode(errors="ignore")
        return Contents(text, f"{counted(size, 'byte')} in all", not in_full)
    text = formatted(raw)
    lines = text.count("\n") + 1
    if in_full or (lines <= SHOWN_LINES and len(text) <= SHOWN_CHARACTERS):
        return Contents(text)
    shown_text = "\n".join(text[:SHOWN_CHARACTERS].split("\n")[:SHOWN_LINES])
    hidden = f"{counted(lines, 'line')}, {counted(size, 'byte')} in all"
    return Contents(shown_text, hidden, has_more=True)


def kind_of(callback: Callback) -> str:
    if isinstance(callback, HttpCallback):
        return "HTTP POST"
    return "Event on the bus" if isinstance(callback, BusCallback) else "NATS message"


def facts_of(timer: Timer, explanation: Explanation, default_timeout_ms: int) -> Iterator[Fact]:
    callback = shown_callback(timer.callback)
    yield Fact("Callback", kind_of(callback))
    yield from _callback_facts(callback)
    own = callback.timeout_ms
    timeout = span(default_timeout_ms if own is None else own)
    yield Fact("Timeout", timeout if own is not None else f"{timeout} (the service's own)")
    yield Fact("Retries", policy_words(timer.retry_policy))
    yield Fact("Created", timer.created_at, is_instant=True)
    if timer.updated_at != timer.created_at:
        name = "Finished" if timer.status.is_finished else "Updated"
        yield Fact(name, timer.updated_at, is_instant=True)
    if timer.executed_at is not None and timer.executed_at != timer.updated_at:
        yield Fact("Executed", timer.executed_at, is_instant=True)
    yield Fact("Shard", _shard_words(timer, explanation))
    if timer.correlation_id is not None:
        yield Fact("Correlation id", timer.correlation_id, is_technical=True, copies=True)
    yield Fact("Delivery id", timer.delivery_id, is_technical=True, copies=True)


def headers_of(callback: Callback) -> Sequence[tuple[str, str]]:
    """The user's headers; secrets are redacted as the API does."""
    if isinstance(callback, BusCallback):
        return ()
    return tuple((getattr(shown_callback(callback), "headers", None) or {}).items())


def are_long(timer: Timer) -> bool:
    """Whether the payload and the metadata are too long to be made anew again and again."""
    return len(payload_of(timer.callback) or b"") + len(timer.metadata or b"") > MAX_LIVE_BYTES


def payload_of(callback: Callback) -> Raw | None:
    return None if callback.payload is UNSET else callback.payload


def policy_words(policy: RetryPolicy | None) -> str:
    """A retry policy in a sentence."""
    if policy is None or policy.max_retries == 0:
        return "No retries."
    if policy == UNTIL_DELIVERED:
        return "Retried until the bus has the event."
    retries = "Up to " + ("1 retry" if policy.max_retries == 1 else f"{policy.max_retries} retries")
    first, longest = span(policy.initial_interval_ms), span(policy.max_interval_ms)
    within = f" None is later than {span(policy.max_duration_ms)} after the first attempt."
    if policy.max_retries == 1:
        return f"{retries}, after {first}.{within}"
    if policy.backoff_multiplier == 1 or policy.initial_interval_ms >= policy.max_interval_ms:
        return f"{retries}, {first} apart.{within}"
    grows = f"then {policy.backoff_multiplier:g} times as long each time"
    return f"{retries}: after {first}, {grows}, up to {longest}.{within}"


def attempt_rows(timer: Timer, explanation: Explanation) -> list[AttemptRow]:
    """The remembered attempts, the latest first."""
    current = len(timer.attempts) - len(explanation.attempts)
    rows = []
    for position, attempt in enumerate(timer.attempts):
        is_current = position >= current
        late = took = None
        if is_current:
            late = explanation.attempts[position - current].late
        elif attempt.sent_at is not None:
            late = max(0, attempt.sent_at - attempt.due_at)
        if attempt.sent_at is not None and attempt.answered_at is not None:
            took = max(0, attempt.answered_at - attempt.sent_at)
        rows.append(
            AttemptRow(
                attempt=attempt,
                late=None if late is None else length_text(late),
                took=None if took is None else length_text(took),
                is_current=is_current,
            )
        )
    return rows[::-1]


def _callback_facts(callback: Callback) -> Iterator[Fact]:
    if isinstance(callback, HttpCallback):
        yield Fact("Target", callback.url, is_technical=True, copies=True)
        if callback.protocol is CallbackProtocol.ANSWER:
            yield Fact("Answer", 'Completed by 200 with {"ok": true}')
        else:
            yield Fact("Answer", "Completed by any 2xx")
    elif not isinstance(callback, BusCallback):
        yield Fact("Subject", callback.subject, is_technical=True, copies=True)
        if callback.ack:
            yield Fact("Answer", "Completed once a stream has stored it")
    if callback.traceparent is not None:
        yield Fact("Trace", callback.traceparent, is_technical=True, copies=True)


def _shard_words(timer: Timer, explanation: Explanation) -> str:
    if timer.status.is_finished:
        return str(timer.shard)
    if explanation.owner is None:
        return f"{timer.shard}, which no living node owns"
    return f"{timer.shard}, owned by {explanation.owner}"
