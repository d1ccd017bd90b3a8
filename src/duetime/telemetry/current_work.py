"""The request or the attempt that is being worked on: for log lines, and for timers it creates."""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from random import getrandbits, randbytes
from re import compile as pattern

from msgspec import Struct
from structlog.types import EventDict, WrappedLogger

REQUEST_ID_HEADER = b"x-request-id"
TRACEPARENT_HEADER = b"traceparent"

TRACE_HEADERS = frozenset({"traceparent", "tracestate"})
"""Headers of callbacks that the context of a traced attempt replaces."""

MAX_REQUEST_ID_CHARACTERS = 128

_AT_ONCE = 256
"""Random trace contexts that are made at once."""

_BLANKS = b" \t"

_SAMPLED = frozenset("13579bdf")
"""The last digits of flags whose lowest bit is set."""

_is_request_id = pattern(rb"[A-Za-z0-9._:+/=@-]{1,%d}" % MAX_REQUEST_ID_CHARACTERS).fullmatch
# W3C Trace Context: a later version may have more fields, and ff is no version.
_is_traceparent = pattern(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<rest>-.*)?"
).fullmatch


class CurrentWork(Struct, gc=False):
    """`traceparent` is that of the span which the work belongs to, or of its caller's span if
    this service does not trace the work. Timers that the work creates keep it. An attempt that is
    not sampled has none."""

    request_id: bytes | None = None
    traceparent: str | None = None
    is_attempt: bool = False
    """Whether the trace context is that of an attempt, to be sent to its endpoint."""
    is_over: bool = False
    """Set at the end, because tasks that were started meanwhile have inherited the work."""


CURRENT_WORK: ContextVar[CurrentWork | None] = ContextVar("current_work", default=None)

UNSAMPLED_ATTEMPT = CurrentWork(is_attempt=True)
"""The work of all attempts without a span, while others are traced. They share it because there are
many: an attempt inherits it from the one that made room for it."""


def request_id_of(given: bytes | None) -> bytes:
    """The id that the client gave the request, if it is well-formed, else a new one."""
    # The server leaves blanks at the end of a header's value.
    if given is not None and _is_request_id(given := given.strip(_BLANKS)):
        return given
    return b"%016x" % getrandbits(64)


def traceparent_of(given: bytes | None) -> str | None:
    """The client's trace context as version 00 has it, in 55 characters; None if it is absent or
    malformed."""
    if given is None:
        return None
    given = given.strip(_BLANKS)
    found = _is_traceparent(given)
    if found is None or (given[:2] == b"00" and found["rest"] is not None):
        return None
    return "00" + given[2:55].decode()


def work_of(headers: Iterable[tuple[bytes, bytes]]) -> CurrentWork:
    """The work for a request with these headers. The first request id counts; trace contexts that
    come twice do not."""
    request_id: bytes | None = None
    traceparents: list[bytes] = []
    for name, value in headers:
        if name == REQUEST_ID_HEADER and request_id is None:
            request_id = value
        elif name == TRACEPARENT_HEADER:
            traceparents.append(value)
    only = traceparents[0] if len(traceparents) == 1 else None
    return CurrentWork(request_id_of(request_id), traceparent_of(only))


_unsampled: list[str] = []
"""Trace contexts for attempts without a span. Many at once take a third of the time that each alone
would."""


def _unsampled_traceparents() -> Iterator[str]:
    # Groups of sixteen digits.
    digits = iter(randbytes(24 * _AT_ONCE).hex("-", 8).split("-"))
    for upper, lower, span_id in zip(digits, digits, digits, strict=True):
        yield f"00-{upper}{lower}-{span_id}-00"


def outgoing_traceparent() -> str | None:
    """The trace context of the current attempt; None unless attempts are traced. That of an attempt
    without a span is new, and asks the endpoint not to trace it either."""
    work = CURRENT_WORK.get()
    if work is None or not work.is_attempt:
        return None
    if work.traceparent is not None:
        return work.traceparent
    if not _unsampled:
        _unsampled.extend(_unsampled_traceparents())
    return _unsampled.pop()


def sampled_trace_id() -> str | None:
    """The trace of the current attempt; None unless it has a span that is exported."""
    work = CURRENT_WORK.get()
    if work is None or (traceparent := work.traceparent) is None or not work.is_attempt:
        return None
    return traceparent[3:35] if traceparent[54] in _SAMPLED else None


def kept_traceparent() -> str | None:
    """The trace context that a timer created by the current request keeps."""
    work = CURRENT_WORK.get()
    return None if work is None else work.traceparent


def add_current_work(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Add the ids of the request and of the span to a line that is logged during the work."""
    work = CURRENT_WORK.get()
    if work is None or work.is_over:
        return event
    if work.request_id is not None:
        event["request_id"] = work.request_id.decode()
    if work.traceparent is not None:
        event["trace_id"] = work.traceparent[3:35]
        event["span_id"] = work.traceparent[36:52]
    return event
