"""The whole engine on a memory store and virtual time, with everything around it in reach."""

import asyncio
from collections.abc import Sequence
from typing import Any

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import (
    DEFAULT_NAMESPACE,
    DEFAULT_SHARDS,
    Namespace,
    NamespaceOptions,
)
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Settlement
from duetime.engine import Engine
from duetime.ports.store import ClaimBatch, ClaimStart, CreateRequest, Leases, OnExisting
from duetime.stores.memory import MemoryStore
from duetime.testing import (
    LoopClock,
    RecordingDestination,
    VirtualTimeLoop,
    engine_options,
    make_timer,
)

GOOD = "https://good.example"
HANGING = "https://hanging.example"
SLOW = "https://slow.example"


class WatchedStore(MemoryStore):
    """A memory store that can be away or slow, and that records its calls."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self._clock = clock
        self.away = False
        self.claim_seconds = 0.0
        self.search_seconds = 0.0
        """Time that the search for lost claims takes."""
        self.settle_seconds = 0.0
        self.refuses: Exception | None = None
        """Raised for every settlement."""
        self.claims: list[tuple[Instant, Instant, int, int]] = []
        """For each claim: now, until, limit, and the number of claims."""
        self.settlements: list[Settlement] = []
        self.pruned: list[tuple[float, str | None, int]] = []
        """For each pruning: the time, the namespace and the number."""
        self.reads_of_all_namespaces = 0

    async def namespaces(self) -> Sequence[Namespace]:
        self.reads_of_all_namespaces += 1
        return await super().namespaces()

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        await self._take(self.claim_seconds)
        batch = await super().claim_due(
            leases, now=now, until_inclusive=until_inclusive, limit=limit, start=start
        )
        self.claims.append((now, until_inclusive, limit, len(batch.claims)))
        return batch

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        await self._take(self.search_seconds)
        return await super().executing(leases)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        await self._take(self.settle_seconds)
        if self.refuses is not None:
            raise self.refuses
        self.settlements.extend(settlements)
        return await super().settle(settlements)

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        await self._take(0.0)
        pruned = await super().prune(
            finished_before=finished_before, limit=limit, namespace=namespace
        )
        self.pruned.append((self._clock.monotonic(), namespace, pruned))
        return pruned

    async def _take(self, seconds: float) -> None:
        if seconds:
            await self._clock.sleep(seconds)
        if self.away:
            raise StoreUnavailable("away for a test")


class KnownNamespaces:
    """Implements the namespace view port with the namespaces that a test sets."""

    def __init__(self) -> None:
        self._by_name: dict[str, Namespace] = {}
        self.with_objective: set[str] = set()

    def known(self, name: str) -> Namespace | None:
        return self._by_name.get(name)

    def limit(self, name: str, concurrency: int | None) -> None:
        options = NamespaceOptions(concurrency=concurrency)
        self._by_name[name] = Namespace(name, options=options)


class EngineBench:
    def __init__(self, **options: Any) -> None:
        self.clock = LoopClock()
        self.store = self.new_store()
        self.destination = RecordingDestination(self.clock)
        self.options = engine_options(**options)
        self.namespaces = KnownNamespaces()
        self.engine = self.new_engine()

    def new_store(self) -> WatchedStore:
        return WatchedStore(self.clock)

    def new_engine(self) -> Engine:
        return Engine(
            self.store,
            self.store,
            self.destination,
            self.clock,
            self.options,
            namespaces=self.namespaces,
        )

    async def start(self) -> None:
        await self.store.add_namespace(Namespace("default"))
        await self.engine.start()

    async def restart(self) -> None:
        """Start a new process in place of the old one."""
        self.engine = self.new_engine()
        await self.engine.start()

    def suspend(self, seconds: float) -> None:
        """Let time pass while nothing of this process runs."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.skip(seconds)

    def at(self, seconds: float) -> Instant:
        """The instant `seconds` from now."""
        return plus_ms(self.clock.now(), seconds * 1_000)

    async def create(
        self,
        timer_id: str,
        in_seconds: float,
        *,
        url: str = GOOD,
        timeout_ms: int = 30_000,
        retry_policy: RetryPolicy | None = None,
        announced: bool = True,
    ) -> Timer:
        timer = make_timer(
            timer_id,
            execute_at=self.at(in_seconds),
            callback=HttpCallback(url=url, timeout_ms=timeout_ms),
            retry_policy=retry_policy,
        )
        await self.store.create([CreateRequest(timer, OnExisting.KEEP)])
        if announced:
            self.engine.announce(timer.shard, timer.due_at)
        return timer

    async def create_many(
        self,
        prefix: str,
        instants: Sequence[Instant],
        url: str = GOOD,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        num_shards: int = DEFAULT_SHARDS,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        callback = HttpCallback(url=url)
        timers = [
            make_timer(
                f"{prefix}-{number}",
                namespace=namespace,
                num_shards=num_shards,
                execute_at=instant,
                callback=callback,
                retry_policy=retry_policy,
            )
            for number, instant in enumerate(instants)
        ]
        await self.store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])
        for timer in timers:
            self.engine.announce(timer.shard, timer.due_at)

    async def timer(self, timer_id: str) -> Timer:
        timer = await self.store.get(TimerKey("default", timer_id))
        assert timer is not None
        return timer

    async def status(self, timer_id: str) -> TimerStatus:
        return (await self.timer(timer_id)).status

    async def count(self, status: TimerStatus) -> int:
        return (await self.store.counts())[status]

    def latenesses_ms(self, endpoint_or_id: str) -> list[float]:
        return [attempt.lateness_ms for attempt in self.destination.attempts_of(endpoint_or_id)]
