"""Announces due timers on the bus with `DueTimeReached` events."""

from msgspec import UNSET

from duetime.bus.messages import (
    DUE_TIME_REACHED,
    DueTimeReached,
    DueTimeReachedEnvelope,
    encode,
    key_of,
)
from duetime.domain.callback import BusCallback, Callback
from duetime.domain.errors import BusUnavailable, LocalShortage
from duetime.domain.instants import MICROSECONDS_PER_MS, format_instant
from duetime.domain.outcome import Completed, Failed, Outcome
from duetime.domain.timer import Claim
from duetime.ports.bus import Bus, Channel, OutgoingMessage
from duetime.ports.clock import Clock
from duetime.ports.destination import MaySend
from duetime.telemetry.current_work import outgoing_traceparent

PAUSE_SECONDS = 0.5
"""Time for which a failed attempt keeps its slot. Slots are few while the broker is away, so this
keeps timers from failing one after the other, thousands a second."""


class EventDestination:
    """Publishes an event. The timer completes only when the broker has stored the event.

    A node that dies in between leaves the event to be published again. The repeat has the same
    id, that of the firing, so the broker or its consumer can drop it.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._endpoint = f"bus {bus.name}"
        self.published = 0
        self.failed = 0

    def check(self, callback: Callback) -> None:
        assert isinstance(callback, BusCallback)

    def endpoint_of(self, claim: Claim) -> str:
        return self._endpoint

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        sent_at = self._clock.now()
        envelope = DueTimeReachedEnvelope(
            id=claim.delivery_id,
            type=DUE_TIME_REACHED,
            tenant_id=claim.namespace,
            aggregate_id=claim.id,
            timestamp_ms=sent_at // MICROSECONDS_PER_MS,
            payload=DueTimeReached(
                tenant_id=claim.namespace,
                service_call_id=claim.id,
                reached_at=format_instant(sent_at),
                payload=claim.callback.payload,
            ),
            correlation_id=UNSET if claim.correlation_id is None else claim.correlation_id,
        )
        message = OutgoingMessage(
            channel=Channel.EVENTS,
            id=envelope.id,
            key=key_of(claim.namespace, claim.id),
            data=encode(envelope),
            traceparent=outgoing_traceparent(),
        )
        try:
            await self._bus.publish(message, may_send)
        except BusUnavailable as error:
            if error.lacks is not None:
                raise LocalShortage(error.lacks) from None
            self.failed += 1
            await self._clock.sleep(PAUSE_SECONDS)
            return Failed(
                sent_at=sent_at,
                answered_at=self._clock.now(),
                error=error.message,
                is_away=True,
            )
        self.published += 1
        return Completed(sent_at=sent_at, answered_at=self._clock.now())

    async def close(self) -> None:
        """Does nothing: `BusRouter` closes the bus."""
