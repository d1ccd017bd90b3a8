"""The spans of requests and attempts."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from random import getrandbits
from typing import Final
from urllib.parse import urlsplit

import structlog
from opentelemetry import trace
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode

from duetime.clock import SystemClock
from duetime.domain.callback import BusCallback, HttpCallback, NatsCallback
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.outcome import Failed, Outcome
from duetime.domain.timer import Claim
from duetime.domain.transitions import was_due_at
from duetime.ports.bus import Channel
from duetime.telemetry.current_work import CurrentWork
from duetime.telemetry.traces.exporting import LAST_EXPORT_SECONDS, Exporting
from duetime.telemetry.traces.sampling import Sampling

REQUEST = "request"
ATTEMPT = "timer.attempt"

STOP_LOOK_SECONDS = 0.02

_STATUS = re.compile(r"HTTP (\d{3})\b")
_SERVER_ERRORS: Final = 500

_log = structlog.get_logger()


class Spans:
    """Begins the spans that are sampled, and exports them."""

    def __init__(self, exporting: Exporting, sampling: Sampling) -> None:
        self._exporting = exporting
        self._tracer = exporting.tracer
        self._sampling = sampling
        self._faults = _RequestFaults()

    def begin_request(self, work: CurrentWork, method: str) -> "RequestSpan | None":
        """A span whose parent is the caller's, if it has one. The work belongs to the new span."""
        try:
            return self._begin_request(work, method)
        except Exception:
            self._faults.tell()
            return None

    def _begin_request(self, work: CurrentWork, method: str) -> "RequestSpan | None":
        parent = work.traceparent
        if not self._sampling.picks(parent, is_root=parent is None):
            return None
        span = self._tracer.start_span(
            REQUEST,
            None if parent is None else trace.set_span_in_context(_remote(parent)),
            SpanKind.SERVER,
            {"http.request.method": method},
        )
        if not span.is_recording():
            return None
        work.traceparent = _traceparent_of(span)
        return RequestSpan(span, work, self._faults)

    def picks_attempt(self, claim: Claim) -> bool:
        """Whether to begin a span for the attempt. One whose create was traced is traced, too."""
        created = claim.callback.traceparent
        return self._sampling.picks(created, is_root=True)

    def begin_attempt(self, claim: Claim, endpoint: str, now: Instant) -> "AttemptSpan | None":
        """A span of a new trace that links to the span of the create, which may be months old. None
        if the SDK's own sampler refuses."""
        created = claim.callback.traceparent
        late = now - max(was_due_at(claim), claim.created_at)
        callback = claim.callback
        span = self._tracer.start_span(
            ATTEMPT,
            trace.set_span_in_context(trace.INVALID_SPAN),
            SpanKind.CLIENT if isinstance(callback, HttpCallback) else SpanKind.PRODUCER,
            {
                "duetime.namespace": claim.namespace,
                "duetime.timer.id": claim.id,
                "duetime.attempt": claim.attempt,
                "duetime.delivery_id": claim.delivery_id,
                "duetime.lateness_seconds": max(late, 0) / MICROSECONDS_PER_SECOND,
                **_attributes_of(callback, endpoint),
            },
            None if created is None else [Link(_remote(created).get_span_context())],
        )
        return AttemptSpan(span) if span.is_recording() else None

    def unsampled_traceparent(self) -> str:
        """The trace context of an attempt without a span: endpoints do not trace it either."""
        ids = getrandbits(192).to_bytes(24, "big").hex()
        return f"00-{ids[:32]}-{ids[32:]}-00"

    async def stop(self) -> None:
        """Export what is left, for a moment at most."""
        last, clock = self._exporting.stop(), SystemClock()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EXPORT_SECONDS):
                while last.is_alive():
                    await clock.sleep(STOP_LOOK_SECONDS)


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

    def __init__(self, span: Span, work: CurrentWork, faults: _RequestFaults) -> None:
        self._span = span
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
        span = self._span
        if operation is not None and route is not None:
            span.update_name(operation)
            span.set_attribute("http.route", route)
        if namespace is not None:
            span.set_attribute("duetime.namespace", namespace)
        if self._work.request_id is not None:
            span.set_attribute("duetime.request_id", self._work.request_id.decode())
        if status is not None:
            span.set_attribute("http.response.status_code", status)
            if status >= _SERVER_ERRORS:
                span.set_attribute("error.type", str(status))
                span.set_status(StatusCode.ERROR)
        span.end()


class AttemptSpan:
    """The span of one attempt. Neither its attributes nor its status have words of the answer."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.traceparent = _traceparent_of(span)

    def end(self, outcome: Outcome) -> None:
        self._span.set_attribute("duetime.outcome", outcome.kind.value)
        if isinstance(outcome, Failed):
            status = _STATUS.match(outcome.error)
            if status is not None:
                self._span.set_attribute("http.response.status_code", int(status[1]))
            self._span.set_attribute("error.type", status[1] if status else "failed")
            self._span.set_status(StatusCode.ERROR)
        self._span.end()

    def end_without_outcome(self, reason: str) -> None:
        self._span.set_attribute("duetime.outcome", reason)
        self._span.end()


def _traceparent_of(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _remote(traceparent: str) -> NonRecordingSpan:
    return NonRecordingSpan(
        SpanContext(
            trace_id=int(traceparent[3:35], 16),
            span_id=int(traceparent[36:52], 16),
            is_remote=True,
            trace_flags=trace.TraceFlags(int(traceparent[53:55], 16)),
        )
    )


def _attributes_of(
    callback: HttpCallback | NatsCallback | BusCallback, endpoint: str
) -> Mapping[str, str | int]:
    """The destination, without anything that may be secret: no path, query, key or header."""
    match callback:
        case HttpCallback():
            origin = urlsplit(endpoint)
            return {
                "duetime.callback.type": "http",
                "http.request.method": "POST",
                "server.address": origin.hostname or "",
                "server.port": origin.port or 0,
                "url.scheme": origin.scheme,
            }
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
