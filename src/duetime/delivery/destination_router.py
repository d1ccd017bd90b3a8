"""Routes each callback to the destination of its type."""

from collections.abc import Coroutine, Mapping
from typing import Any

from duetime.domain.callback import Callback
from duetime.domain.errors import InvalidInput
from duetime.domain.outcome import Failed, Outcome
from duetime.domain.timer import Claim
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination, MaySend
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer


class DestinationRouter:
    """Implements the destination port over the configured destinations.

    For each type without a destination, `unavailable` says why and what to do. Claims with sealed
    contents are unsealed here, just before the delivery.
    """

    def __init__(
        self,
        destinations: Mapping[type[Callback], Destination],
        unavailable: Mapping[type[Callback], str],
        clock: Clock,
        sealer: CallbackSealer | None = None,
    ) -> None:
        self._destinations = destinations
        self._unavailable = unavailable
        self._clock = clock
        self._sealer = CallbackSealer(Sealer()) if sealer is None else sealer

    def check(self, callback: Callback) -> None:
        destination = self._destinations.get(type(callback))
        if destination is None:
            raise InvalidInput("callback.type", self._unavailable[type(callback)])
        destination.check(callback)

    def endpoint_of(self, claim: Claim) -> str:
        destination = self._destinations.get(type(claim.callback))
        return "unavailable" if destination is None else destination.endpoint_of(claim)

    def deliver(self, claim: Claim, may_send: MaySend) -> Coroutine[Any, Any, Outcome]:
        # No coroutine of its own: each one on the way costs every attempt.
        destination = self._destinations.get(type(claim.callback))
        if destination is None:
            return self._fail(claim)
        if claim.callback.sealed is not None:
            return self._deliver_unsealed(destination, claim, may_send)
        return destination.deliver(claim, may_send)

    async def _deliver_unsealed(
        self, destination: Destination, claim: Claim, may_send: MaySend
    ) -> Outcome:
        return await destination.deliver(self._sealer.unsealed_claim(claim), may_send)

    async def _fail(self, claim: Claim) -> Outcome:
        """The timer was created while this type was configured."""
        now = self._clock.now()
        error = f"callback.type {self._unavailable[type(claim.callback)]}"
        return Failed(sent_at=now, answered_at=now, error=error)

    async def close(self) -> None:
        for destination in self._destinations.values():
            await destination.close()
