"""A store as one process sees it through a bad line: slow, away, or silent about a write."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from random import Random
from typing import NoReturn, TypeVar

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.clock import Clock
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, NodeFacts
from duetime.ports.store import (
    Capabilities,
    ClaimBatch,
    ClaimStart,
    ConditionalResult,
    CreateRequest,
    CreateResult,
    Leases,
    NamespaceChanges,
    Page,
    PageQuery,
    ScanEntry,
    ScanQuery,
)
from duetime.stores.memory import MemoryStore

T = TypeVar("T")


class Limbo:
    """Keeps the calls of killed processes: they neither return nor raise."""

    def __init__(self) -> None:
        self._never = asyncio.Event()

    async def stay(self) -> NoReturn:
        await self._never.wait()
        raise AssertionError("nobody comes back from here")


CALL_TIMEOUT_SECONDS = 5.0
"""Time that a call waits for a line that is cut before it fails."""


class StoreFaults:
    """The current state of a line, set by the scenario."""

    def __init__(self, usual_delay_seconds: float = 0.0) -> None:
        self._usual_delay_seconds = usual_delay_seconds
        self.lost_before = 0.0
        """Chance that a call fails and nothing was written."""
        self.lost_after = 0.0
        """Chance that a call fails though its write took effect."""
        self.longest_delay_seconds = usual_delay_seconds
        self._whole = asyncio.Event()
        self._whole.set()

    @property
    def is_cut(self) -> bool:
        """Nothing gets through in either direction."""
        return not self._whole.is_set()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        """Calls that still wait get through now."""
        self._whole.set()

    async def wait_until_mended(self, seconds: float) -> None:
        """Raises `TimeoutError` when the line stays cut for too long."""
        async with asyncio.timeout(seconds):
            await self._whole.wait()

    def heal(self) -> None:
        self.lost_before = self.lost_after = 0.0
        self.longest_delay_seconds = self._usual_delay_seconds


class FaultyStore:
    """Implements the store's ports on a memory store that survives the process.

    Once `dead`, no call takes effect or returns any more: its process was killed.
    """

    def __init__(
        self, truth: MemoryStore, faults: StoreFaults, random: Random, clock: Clock, limbo: Limbo
    ) -> None:
        self._limbo = limbo
        self._truth = truth
        self._faults = faults
        self._random = random
        self._clock = clock
        self.dead = False
        self.faults_injected = 0

    @property
    def capabilities(self) -> Capabilities:
        return self._truth.capabilities

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ping(self) -> None:
        await self._call(self._truth.ping)

    async def add_namespace(self, namespace: Namespace, *, in_reserve: bool = False) -> Namespace:
        return await self._truth.add_namespace(namespace, in_reserve=in_reserve)

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        return await self._truth.change_namespace(name, options)

    async def remove_namespace(self, name: str) -> bool:
        return await self._truth.remove_namespace(name)

    async def remove_pending(self, namespace: str, *, limit: int) -> int:
        return await self._truth.remove_pending(namespace, limit=limit)

    async def namespaces(self) -> Sequence[Namespace]:
        return await self._truth.namespaces()

    async def find_namespaces(self, names: Collection[str]) -> Sequence[Namespace]:
        return await self._truth.find_namespaces(names)

    async def namespaces_changed(self, since: str | None) -> NamespaceChanges:
        return await self._truth.namespaces_changed(since)

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        return await self._call(lambda: self._truth.create(requests))

    async def restore(self, timers: Sequence[Timer]) -> list[CreateResult]:
        return await self._call(lambda: self._truth.restore(timers))

    async def get(self, key: TimerKey) -> Timer | None:
        return await self._call(lambda: self._truth.get(key))

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        return await self._call(lambda: self._truth.change_if_pending(key, change))

    async def cancel_if_pending(
        self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        return await self._call(
            lambda: self._truth.cancel_if_pending(key, now, only_updated_at=only_updated_at)
        )

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        return await self._call(lambda: self._truth.remove_if_pending(key))

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        return await self._call(lambda: self._truth.redrive_if_failed(redrives, now))

    async def page(self, query: PageQuery) -> Page:
        return await self._call(lambda: self._truth.page(query))

    async def scan(self, query: ScanQuery) -> list[Timer]:
        return await self._call(lambda: self._truth.scan(query))

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        return await self._call(lambda: self._truth.scan_entries(query))

    async def count_scan(self, query: ScanQuery) -> int:
        return await self._call(lambda: self._truth.count_scan(query))

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        return await self._call(
            lambda: self._truth.claim_due(
                leases, now=now, until_inclusive=until_inclusive, limit=limit, start=start
            )
        )

    async def first_due(
        self, leases: Leases, *, before_exclusive: Instant
    ) -> dict[ShardNumber, Instant]:
        return await self._call(
            lambda: self._truth.first_due(leases, before_exclusive=before_exclusive)
        )

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        return await self._call(lambda: self._truth.executing(leases))

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return await self._call(lambda: self._truth.settle(settlements))

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        return await self._call(lambda: self._truth.recover(leases, limit=limit))

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        return await self._call(
            lambda: self._truth.prune(
                finished_before=finished_before, limit=limit, namespace=namespace
            )
        )

    async def clock_believed_at(self) -> Instant | None:
        return await self._call(self._truth.clock_believed_at)

    async def mark_clock_believed(self, now: Instant) -> None:
        await self._call(lambda: self._truth.mark_clock_believed(now))

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        return await self._call(lambda: self._truth.counts(namespace))

    async def count_unfinished(self, namespace: str, *, exact_up_to: int) -> int:
        return await self._call(
            lambda: self._truth.count_unfinished(namespace, exact_up_to=exact_up_to)
        )

    async def shards(self) -> Sequence[ShardState]:
        return await self._call(self._truth.shards)

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        return await self._call(lambda: self._truth.claim_shards(seen, owner=owner))

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        # A copy: the caller may change it while the call travels.
        leases = dict(leases)
        return await self._call(lambda: self._truth.release_shards(leases))

    async def heartbeat(self, node: str, facts: NodeFacts, *, join: bool) -> ClusterView:
        return await self._call(lambda: self._truth.heartbeat(node, facts, join=join))

    async def hand_over(self, node: str, leases: Leases) -> set[ShardNumber]:
        return await self._call(lambda: self._truth.hand_over(node, leases))

    async def finish(self, node: str, leases: Collection[tuple[ShardNumber, Epoch]]) -> None:
        await self._call(lambda: self._truth.finish(node, leases))

    async def leave(self, node: str) -> None:
        await self._call(lambda: self._truth.leave(node))

    async def forget_member(self, node: str, *, seen_beat: int) -> bool:
        return await self._call(lambda: self._truth.forget_member(node, seen_beat=seen_beat))

    async def _call(self, operation: Callable[[], Awaitable[T]]) -> T:
        await self._travel(self._faults.lost_before)
        result = await operation()
        await self._travel(self._faults.lost_after)
        return result

    async def _travel(self, lost: float) -> None:
        if self._faults.longest_delay_seconds:
            # Most calls are quick; a few take the longest time.
            share = self._random.random() ** 4
            await self._clock.sleep(share * self._faults.longest_delay_seconds)
        if self._faults.is_cut:
            await self._wait_until_mended()
        if self.dead:
            await self._limbo.stay()
        if lost and self._random.random() < lost:
            self._fail("injected")

    async def _wait_until_mended(self) -> None:
        try:
            await self._faults.wait_until_mended(self._random.uniform(0, CALL_TIMEOUT_SECONDS))
        except TimeoutError:
            if not self.dead:
                self._fail("cut off")

    def _fail(self, why: str) -> NoReturn:
        self.faults_injected += 1
        raise StoreUnavailable(why)
