"""An engine without background tasks, for tests that decide when timers fire."""

import asyncio
from typing import Protocol

import uuid_utils

from duetime.domain.instants import Instant
from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim
from duetime.domain.transitions import settlement_of
from duetime.engine.cluster.ownership import take_all_shards
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.leases import LeaseStore
from duetime.ports.store import TimerStore

_CLAIM_LIMIT = 1_000


class Store(TimerStore, LeaseStore, Protocol):
    """The parts of a store that an engine needs."""


class ManualEngine:
    """Fires due timers when the test says so, and at no other time.

    Retries are planned without jitter, so a test knows exactly when they are due.
    """

    def __init__(self, store: Store, destination: Destination, clock: Clock) -> None:
        self._store = store
        self._destination = destination
        self._clock = clock

    async def tick(self) -> list[tuple[Claim, Outcome]]:
        """Fire the timers that are due by the clock."""
        return await self.run_due(self._clock.now())

    async def run_due(self, now: Instant) -> list[tuple[Claim, Outcome]]:
        """Make one attempt for every timer due at `now`, all at the same time, and settle them.

        Returns the attempts in the order of their instants. Retries and reschedules that these
        attempts make due are left for the next run. When the destination raises, nothing is
        settled, and the next run tries again.
        """
        leases = await take_all_shards(self._store, self._store, "manual")
        claims: list[Claim] = []
        while True:
            batch = await self._store.claim_due(
                leases, now=now, until_inclusive=now, limit=_CLAIM_LIMIT
            )
            claims.extend(batch.claims)
            if len(batch.claims) < _CLAIM_LIMIT:
                break
        outcomes = await asyncio.gather(
            *(self._destination.deliver(claim, _always) for claim in claims)
        )
        attempts = list(zip(claims, outcomes, strict=True))
        await self._store.settle(
            [
                settlement_of(claim, outcome, chance=0.0, new_delivery_id=_new_delivery_id)
                for claim, outcome in attempts
            ]
        )
        return attempts


def _always() -> bool:
    return True


def _new_delivery_id() -> str:
    return str(uuid_utils.uuid7())
