"""The spans of requests and attempts."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from random import getrandbits
from typing import Final
from urllib.parse import urlsplit

import structlog
from opentelemetry.trace import SpanKind

from duetime.domain.callback import BusCallback, HttpCallback, NatsCallback
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.outcome import Failed, Outcome
from duetime.domain.timer import Claim
from duetime.domain.transitions import was_due_at
from duetime.ports.bus import Channel
from duetime.ports.clock import Clock
from duetime.telemetry.current_work import CurrentWork
from duetime.telemetry.traces.exporting import LAST_EXPORT_SECONDS, Exporting
from duetime.telemetry.traces.sampling import Sampling
from duetime.telemetry.traces.span_record import Attributes, SpanRecord, context_of

REQUEST = "request"
ATTEMPT = "timer.attempt"

STOP_LOOK_SECONDS = 0.02

_STATUS = re.compile(r"HTTP (\d{3})\b")
_SERVER_ERRORS: Final = 500
_ENDPOINTS_REMEMBERED: Final = 256

EndSpan = Callable[[SpanRecord], None]

_log = structlog.get_logger()


class Spans:
    """Begins the spans that are sampled, and exports them."""

    def __init__(self, exporting: Exporting, sampling: Sampling, clock: Clock) -> None:
        self._clock = clock
        self._exporting = exporting
        self._picks = sampling.picks
        self._new_trace_id = sampling.sampled_trace_id
        self.picks_attempt = sampling.picks_attempt
        self.next_skipped = sampling.next_skipped
        self._faults = _RequestFaults()

    def begin_request(self, work: CurrentWork, method: str) -> "RequestSpan | None":
        """A span whose parent is the caller's, if it has one. The work belongs to the new span."""
        try:
            return self._begin_request(work, method)
        except Exception:
            self._faults.tell()
            return None

    def _begin_request(self, work: CurrentWork, method: str) -> "RequestSpan | None":
        given = work.traceparent
        if not self._picks(given):
            return None
        parent = None if given is None else context_of(given)
        span = SpanRecord(
            name=REQUEST,
            kind=SpanKind.SERVER,
            trace_id=self._new_trace_id() if parent is None else parent.trace_id,
            span_id=_new_span_id(),
            began_at=self._clock.now(),
            attributes={"http.request.method": method},
            parent=parent,
        )
        work.traceparent = span.traceparent
        return RequestSpan(span, self._end_span, work, self._faults)

    def begin_attempt(self, claim: Claim, endpoint: str, now: Instant) -> "AttemptSpan":
        """A span of a new trace that links to the span of the create, which may be months old."""
        late = now - max(was_due_at(claim), claim.created_at)
        callback = claim.callback
        span = SpanRecord(
            name=ATTEMPT,
            kind=SpanKind.CLIENT if isinstance(callback, HttpCallback) else SpanKind.PRODUCER,
            trace_id=self._new_trace_id(),
            span_id=_new_span_id(),
            began_at=now,
            attributes={
                "duetime.namespace": claim.namespace,
                "duetime.timer.id": claim.id,
                "duetime.attempt": claim.attempt,
                "duetime.delivery_id": claim.delivery_id,
                "duetime.lateness_seconds": max(late, 0) / MICROSECONDS_PER_SECOND,
                **_attributes_of(callback, endpoint),
            },
            link=None if callback.traceparent is None else context_of(callback.traceparent),
        )
        return AttemptSpan(span, self._end_span)

    def _end_span(self, span: SpanRecord) -> None:
        # The wall clock may have been set back.
        span.ended_at = max(span.began_at, self._clock.now())
        self._exporting.export(span)

    async def stop(self) -> None:
        """Export what is left, for a moment at most."""
        last = self._exporting.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EXPORT_SECONDS):
                while last.is_alive():
                    await self._clock.sleep(STOP_LOOK_SECONDS)


class _RequestFaults:
    """Tells the first fault of spans of requests, because each request may have one. No request
    fails because of it."""

    def __init__(self) -> None:
        self._is_told = False

    def tell(self) -> None:
        """Called in the handler of the exception."""
        if not self._is_told:
            self._is_told = True
            _log.exception("trace.request_broken")


class RequestSpan:
    """The span of one request."""

    def __init__(
        self, span: SpanRecord, end: EndSpan, work: CurrentWork, faults: _RequestFaults
    ) -> None:
        self._span = span
        self._end_span = end
        self._work = work
        self._faults = faults

    def end(
        self, operation: str | None, route: str | None, namespace: str | None, status: int | None
    ) -> None:
        """`operation` is absent for a path that does not exist, and `status` if nobody was there to
        be answered."""
        try:
            self._end(operation, route, namespace, status)
        except Exception:
            self._faults.tell()

    def _end(
        self, operation: str | None, route: str | None, namespace: str | None, status: int | None
    ) -> None:
        span, attributes = self._span, self._span.attributes
        if operation is not None and route is not None:
            span.name = operation
            attributes["http.route"] = route
        if namespace is not None:
            attributes["duetime.namespace"] = namespace
        if self._work.request_id is not None:
            attributes["duetime.request_id"] = self._work.request_id.decode()
        if status is not None:
            attributes["http.response.status_code"] = status
            if status >= _SERVER_ERRORS:
                attributes["error.type"] = str(status)
                span.is_error = True
        self._end_span(span)


class AttemptSpan:
    """The span of one attempt. Neither its attributes nor its status have words of the answer."""

    def __init__(self, span: SpanRecord, end: EndSpan) -> None:
        self._span = span
        self._end_span = end
        self.traceparent = span.traceparent

    def end(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            status = _STATUS.match(outcome.error)
            if status is not None:
                self._span.attributes["http.response.status_code"] = int(status[1])
            self._span.attributes["error.type"] = status[1] if status else "failed"
            self._span.is_error = True
        self.end_without_outcome(outcome.kind.value)

    def end_without_outcome(self, reason: str) -> None:
        self._span.attributes["duetime.outcome"] = reason
        self._end_span(self._span)


def _new_span_id() -> int:
    return getrandbits(63) + 1


def _attributes_of(
    callback: HttpCallback | NatsCallback | BusCallback, endpoint: str
) -> Attributes:
    """The destination, without anything that may be secret: no path, query, key or header."""
    match callback:
        case HttpCallback():
            return _http_attributes(endpoint)
        case NatsCallback():
            return {
                "duetime.callback.type": "nats",
                "messaging.system": "nats",
                "messaging.destination.name": callback.topic,
            }
        case BusCallback():
            return {
                "duetime.callback.type": "bus",
                "messaging.destination.name": Channel.EVENTS.value,
            }


@lru_cache(_ENDPOINTS_REMEMBERED)
def _http_attributes(endpoint: str) -> Attributes:
    origin = urlsplit(endpoint)
    return {
        "duetime.callback.type": "http",
        "http.request.method": "POST",
        "server.address": origin.hostname or "",
        "server.port": origin.port or 0,
        "url.scheme": origin.scheme,
    }
