"""Short words for what every test of the suite does."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from msgspec.structs import asdict

from duetime.domain import transitions
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.outcome import Completed, Failed, Interrupted, Outcome, Rescheduled
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Settlement
from duetime.ports.bulk import BulkStore
from duetime.ports.endpoints import PauseStore
from duetime.ports.inspection import CensusStore, OutlookStore
from duetime.ports.leases import LeaseStore
from duetime.ports.namespaces.lateness_ledger import LatenessLedger
from duetime.ports.searching import SearchStore
from duetime.ports.security import SecurityStore
from duetime.ports.store import CreateRequest, CreateResult, Leases, OnExisting, TimerStore
from duetime.testing.virtual_clock import START_AT


class Store(TimerStore, LeaseStore, BulkStore, CensusStore, OutlookStore, Protocol):
    """A store that the suite can test: one storage for timers, leases and bulk operations, and for
    keys, secrets, the audit log, counts of lateness and pauses of endpoints."""

    @property
    def security(self) -> SecurityStore: ...

    @property
    def lateness_ledger(self) -> LatenessLedger: ...

    @property
    def searches(self) -> SearchStore: ...

    @property
    def endpoint_pauses(self) -> PauseStore: ...


Reopen = Callable[[], Awaitable[Store]]

FAR_FUTURE = 10**9
"""Seconds after the start at which everything in the suite is due."""


def at(seconds: float) -> Instant:
    """The instant that many seconds after the start of the suite's time."""
    return Instant(START_AT + round(seconds * MICROSECONDS_PER_SECOND))


async def create(
    store: TimerStore, *timers: Timer, on_existing: OnExisting = OnExisting.KEEP
) -> list[CreateResult]:
    return await store.create([CreateRequest(timer, on_existing) for timer in timers])


async def stored(store: TimerStore, key: TimerKey) -> Timer:
    timer = await store.get(key)
    assert timer is not None, f"{key} is not in the store"
    return timer


async def own_shards(
    store: LeaseStore, shards: Iterable[int] | None = None, *, owner: str = "node-1"
) -> dict[ShardNumber, Epoch]:
    """Take these shards, or all, from their owners."""
    chosen = None if shards is None else set(shards)
    seen = {
        state.shard: state.epoch
        for state in await store.shards()
        if chosen is None or state.shard in chosen
    }
    leases = await store.claim_shards(seen, owner=owner)
    assert leases.keys() == seen.keys()
    return leases


async def claim(
    store: TimerStore,
    leases: Leases,
    *,
    until_inclusive: Instant | None = None,
    now: Instant | None = None,
    limit: int = 10_000,
) -> list[Claim]:
    batch = await store.claim_due(
        leases,
        now=at(0) if now is None else now,
        until_inclusive=at(FAR_FUTURE) if until_inclusive is None else until_inclusive,
        limit=limit,
    )
    return list(batch.claims)


def fields_of(claim: Claim) -> dict[str, object]:
    """The fields of a claim, whichever subclass of `Claim` a store returns."""
    return asdict(claim)


def ids_of(claims: Iterable[Claim]) -> list[str]:
    return [claim.id for claim in claims]


def completion(claim: Claim, *, answered_at: Instant | None = None) -> Settlement:
    answered_at = at(1) if answered_at is None else answered_at
    return _settlement(claim, Completed(sent_at=at(0), answered_at=answered_at))


def failure(
    claim: Claim, *, error: str = "HTTP 500", answered_at: Instant | None = None
) -> Settlement:
    """Final without a retry policy, else a retry as long as the policy allows."""
    answered_at = at(1) if answered_at is None else answered_at
    return _settlement(claim, Failed(sent_at=at(0), answered_at=answered_at, error=error))


def reschedule(claim: Claim, next_execute_at: Instant | None = None) -> Settlement:
    next_execute_at = at(60) if next_execute_at is None else next_execute_at
    return _settlement(
        claim, Rescheduled(sent_at=at(0), answered_at=at(1), next_execute_at=next_execute_at)
    )


def interruption(claim: Claim, *, error: str = "connection reset") -> Settlement:
    return _settlement(claim, Interrupted(sent_at=at(0), answered_at=at(1), error=error))


def hand_back(claim: Claim, *, due_at: Instant | None = None) -> Settlement:
    return transitions.hand_back(
        claim, due_at=claim.due_at if due_at is None else due_at, now=at(1)
    )


async def brought_to(store: TimerStore, leases: Leases, timer: Timer, status: TimerStatus) -> Timer:
    """Create the timer and lead it to the status. No other pending timer may be due before."""
    await create(store, timer)
    match status:
        case TimerStatus.PENDING:
            pass
        case TimerStatus.CANCELED:
            await store.cancel_if_pending(timer.key, at(1))
        case _:
            (claimed,) = await claim(store, leases, until_inclusive=timer.due_at, limit=1)
            assert (claimed.namespace, claimed.id) == timer.key
            if status is TimerStatus.COMPLETED:
                assert await store.settle([completion(claimed)]) == [True]
            elif status is TimerStatus.FAILED:
                assert await store.settle([failure(claimed)]) == [True]
    result = await stored(store, timer.key)
    assert result.status is status
    return result


def _settlement(claim: Claim, outcome: Outcome) -> Settlement:
    return transitions.settlement_of(
        claim,
        outcome,
        chance=0.0,
        new_delivery_id=lambda: f"{claim.delivery_id}-next",
    )
