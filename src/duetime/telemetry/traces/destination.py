"""Attempts with spans, whatever their destination."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol

import structlog

from duetime.domain.callback import Callback
from duetime.domain.errors import LocalShortage
from duetime.domain.instants import Instant
from duetime.domain.outcome import NotSent, Outcome
from duetime.domain.timer import Claim
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination, MaySend
from duetime.telemetry.current_work import CURRENT_WORK, UNSAMPLED_ATTEMPT, CurrentWork

_log = structlog.get_logger()


class AttemptSpan(Protocol):
    @property
    def traceparent(self) -> str: ...

    def end(self, outcome: Outcome) -> None: ...

    def end_without_outcome(self, reason: str) -> None: ...


class AttemptTracer(Protocol):
    @property
    def picks_attempt(self) -> Callable[[str], bool]:
        """Whether to begin a span for an attempt whose create had this traceparent."""
        ...

    @property
    def next_skipped(self) -> Callable[[], int]:
        """The number of other attempts before the next one that gets a span."""
        ...

    def begin_attempt(self, claim: Claim, endpoint: str, now: Instant) -> AttemptSpan: ...


class TracedDestination:
    """A destination whose attempts have spans if they are sampled, and a trace context to send to
    the endpoint in any case. Each attempt needs a task of its own."""

    def __init__(self, destination: Destination, tracer: AttemptTracer, clock: Clock) -> None:
        self._destination = destination
        self._tracer = tracer
        self._to_skip = tracer.next_skipped()
        self._clock = clock

    def check(self, callback: Callback) -> None:
        self._destination.check(callback)

    def endpoint_of(self, claim: Claim) -> str:
        return self._destination.endpoint_of(claim)

    def deliver(self, claim: Claim, may_send: MaySend) -> Coroutine[Any, Any, Outcome]:
        """As the port says, but called in the task that awaits the result."""
        # Most attempts are not sampled, so these have no coroutine of ours, and no call either.
        if claim.callback.traceparent is None and self._to_skip:
            self._to_skip -= 1
        else:
            span = self._begun(claim)
            if span is not None:
                CURRENT_WORK.set(CurrentWork(None, span.traceparent, is_attempt=True))
                return self._deliver_traced(span, claim, may_send)
        if CURRENT_WORK.get() is not UNSAMPLED_ATTEMPT:
            CURRENT_WORK.set(UNSAMPLED_ATTEMPT)
        return self._destination.deliver(claim, may_send)

    def _begun(self, claim: Claim) -> AttemptSpan | None:
        """The span; none if it is not sampled, or cannot be made, which must not keep the attempt
        from being made."""
        try:
            created = claim.callback.traceparent
            if created is None:
                self._to_skip = self._tracer.next_skipped()
            elif not self._tracer.picks_attempt(created):
                return None
            endpoint = self._destination.endpoint_of(claim)
            return self._tracer.begin_attempt(claim, endpoint, self._clock.now())
        except Exception:
            _log.exception("trace.broken", namespace=claim.namespace, id=claim.id)
            return None

    async def _deliver_traced(self, span: AttemptSpan, claim: Claim, may_send: MaySend) -> Outcome:
        end = partial(_end, span, claim)
        try:
            outcome = await self._destination.deliver(claim, may_send)
        except NotSent:
            end("not_sent")
            raise
        except LocalShortage:
            end("postponed")
            raise
        except asyncio.CancelledError:
            end("abandoned")
            raise
        except Exception:
            end("broken")
            raise
        end(outcome)
        return outcome

    async def close(self) -> None:
        await self._destination.close()


def _end(span: AttemptSpan, claim: Claim, outcome: Outcome | str) -> None:
    """End the span with an outcome, or with the reason why there is none. The attempt is over, and
    must be neither failed nor repeated because of its span."""
    try:
        if isinstance(outcome, str):
            span.end_without_outcome(outcome)
        else:
            span.end(outcome)
    except Exception:
        _log.exception("trace.broken", namespace=claim.namespace, id=claim.id)
