"""Several engines on one memory store and virtual time, each with a line that can fail it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from duetime.domain.callback import Callback, HttpCallback
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.outcome import Outcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Settlement
from duetime.engine import Cluster, Engine
from duetime.ports.destination import MaySend
from duetime.ports.membership import ClusterView, NodeFacts
from duetime.ports.store import ClaimBatch, ClaimStart, CreateRequest, Leases, OnExisting
from duetime.testing import LoopClock, RecordingDestination, engine_options, make_timer
from duetime.testing.recording_destination import RecordedAttempt
from tests.simulation.audited_store import AuditedStore
from tests.simulation.faulty_store import FaultyStore, Limbo, StoreFaults
from tests.simulation.invariants import Broken
from tests.simulation.memory_signals import MemorySignals, SignalHub
from tests.unit.engine.engine_bench import GOOD

T = TypeVar("T")

# The promised numbers, not those of the engine: tests that used its own numbers would agree
# with whatever they are.
LEASE_SECONDS = 10.0
STEP_DOWN_SECONDS = 5.0
BEAT_SECONDS = 1.0
POLL_SECONDS = 5.0


class ClusterBench:
    """The store, the signals and the receivers that all nodes share."""

    def __init__(self, *, same_machine: bool = False, **options: Any) -> None:
        self.same_machine = same_machine
        """Nodes see which processes of others exist."""
        self.clock = LoopClock()
        self.store = BenchStore(self.clock)
        self.hub = SignalHub()
        self.limbo = Limbo()
        self.destination = RecordingDestination(self.clock)
        self.options = {"poll_seconds": POLL_SECONDS, "lease_seconds": LEASE_SECONDS, **options}
        self.nodes: list[BenchNode] = []
        self.killed: set[str] = set()
        self.senders: dict[str, list[str]] = {}
        """Which nodes sent each timer, in order."""
        self.broken: list[Broken] = []

    async def start(self, *names: str, lets_finish: bool = True) -> "list[BenchNode]":
        nodes = [BenchNode(self, name) for name in names]
        self.nodes += nodes
        for node in nodes:
            node.store.lets_finish = lets_finish
        await self.store.add_namespace(Namespace("default"))
        for node in nodes:
            await node.engine.start()
        return nodes

    async def start_spread(self, *names: str) -> "list[BenchNode]":
        """Start these nodes and let them share the shards among themselves."""
        nodes = await self.start(*names)
        await self.run(0.5)
        return nodes

    async def run(self, seconds: float) -> None:
        """Let time pass. Raises when a node sent a timer of a shard that it did not own."""
        await self.clock.sleep(seconds)
        for broken in [*self.broken, *self.store.broken]:
            raise broken

    async def shares(self) -> dict[str | None, int]:
        """The number of shards that each node owns, according to the store."""
        return dict(Counter(state.owner for state in await self.store.shards()))

    async def epochs(self) -> list[int]:
        return [state.epoch for state in await self.store.shards()]

    async def members(self) -> dict[str, int]:
        """The members and their beats."""
        view = await self.store.heartbeat("nobody", NodeFacts(), join=False)
        return {member.node: member.beat for member in view.members}

    async def shards_of(self, node: "BenchNode") -> list[ShardNumber]:
        return [state.shard for state in await self.store.shards() if state.owner == node.name]

    async def ids_of(self, node: "BenchNode", count: int, prefix: str = "t") -> list[str]:
        """Ids of timers whose shards the node owns now."""
        shards = set(await self.shards_of(node))
        assert shards
        ids = (f"{prefix}-{number}" for number in range(100_000))
        return [id for id in ids if make_timer(id).shard in shards][:count]

    async def create(
        self,
        timer_id: str,
        in_seconds: float,
        *,
        through: "BenchNode | None" = None,
        url: str = GOOD,
        retry_policy: RetryPolicy | None = None,
    ) -> Timer:
        """Create a timer, announced by the node `through` if there is one."""
        timer = make_timer(
            timer_id,
            execute_at=plus_ms(self.clock.now(), in_seconds * 1_000),
            callback=HttpCallback(url=url, timeout_ms=30_000),
            retry_policy=retry_policy,
        )
        await self.store.create([CreateRequest(timer, OnExisting.KEEP)])
        if through is not None:
            through.engine.announce(timer.shard, timer.due_at)
        return timer

    async def timer(self, timer_id: str) -> Timer:
        timer = await self.store.get(TimerKey("default", timer_id))
        assert timer is not None
        return timer

    async def status(self, timer_id: str) -> TimerStatus:
        return (await self.timer(timer_id)).status

    async def count(self, status: TimerStatus) -> int:
        return (await self.store.counts())[status]

    def latenesses_ms(self, endpoint_or_id: str = GOOD) -> list[float]:
        return [attempt.lateness_ms for attempt in self.destination.attempts_of(endpoint_or_id)]

    def sent_seconds(self, attempt: RecordedAttempt) -> float:
        """When it was sent, by the loop's time."""
        return self.clock.monotonic() - (self.clock.now() - attempt.sent_at) / 1_000_000

    def sent_since(self, seconds: float) -> list[str]:
        """The ids that were sent at or after this moment of the loop's time."""
        return [
            attempt.claim.id
            for attempt in self.destination.attempts
            if self.sent_seconds(attempt) >= seconds
        ]


class BenchStore(AuditedStore):
    """An audited store, with a clock of its own if a test sets one."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self._clock = clock
        self.ahead_ms: float | None = None

    async def heartbeat(self, node: str, facts: NodeFacts, *, join: bool) -> ClusterView:
        view = await super().heartbeat(node, facts, join=join)
        if self.ahead_ms is None:
            return view
        return replace(view, store_now=plus_ms(self._clock.now(), self.ahead_ms))


class BenchLine(FaultyStore):
    """A line to the store on which a single call can be made to fail."""

    def __init__(self, bench: ClusterBench, faults: StoreFaults, name: str) -> None:
        super().__init__(bench.store, faults, Random(name), bench.clock, bench.limbo)
        self._bench_clock = bench.clock
        self.loses: set[str] = set()
        """Calls of which one answer each gets lost."""
        self.heartbeat_answer_seconds = 0.0
        self.claim_answer_seconds = 0.0
        self.settle_request_seconds = 0.0
        self.forget_request_seconds = 0.0
        self.lets_finish = True
        """False for a node of a release that does not know unfinished leases."""
        self.recover_request_seconds = 0.0
        """For each thousand timers that are asked for."""
        self.last_beat_seconds = 0.0
        """When the last heartbeat was asked for that took place."""

    async def heartbeat(self, node: str, facts: NodeFacts, *, join: bool) -> ClusterView:
        asked_seconds = self._bench_clock.monotonic()
        facts = replace(facts, lets_finish=self.lets_finish)
        view = await super().heartbeat(node, facts, join=join)
        self.last_beat_seconds = asked_seconds
        if self.heartbeat_answer_seconds:
            await self._bench_clock.sleep(self.heartbeat_answer_seconds)
        return view

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        if self.settle_request_seconds:
            await self._bench_clock.sleep(self.settle_request_seconds)
        return await super().settle(settlements)

    async def forget_member(self, node: str, *, seen_beat: int) -> bool:
        if self.forget_request_seconds:
            await self._bench_clock.sleep(self.forget_request_seconds)
        return await super().forget_member(node, seen_beat=seen_beat)

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        if self.recover_request_seconds:
            await self._bench_clock.sleep(self.recover_request_seconds * limit / 1_000)
        return await super().recover(leases, limit=limit)

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        return self._answer("claim_shards", await super().claim_shards(seen, owner=owner))

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        return self._answer("release_shards", await super().release_shards(leases))

    async def hand_over(self, node: str, leases: Leases) -> set[ShardNumber]:
        if "hand_over request" in self.loses:
            self.loses.remove("hand_over request")
            raise StoreUnavailable("the request got lost")
        return self._answer("hand_over", await super().hand_over(node, leases))

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        batch = await super().claim_due(
            leases, now=now, until_inclusive=until_inclusive, limit=limit, start=start
        )
        if self.claim_answer_seconds:
            await self._bench_clock.sleep(self.claim_answer_seconds)
        return self._answer("claim_due", batch)

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        return self._answer("executing", await super().executing(leases))

    def _answer(self, call: str, answer: T) -> T:
        if call in self.loses:
            self.loses.remove(call)
            raise StoreUnavailable("the answer got lost")
        return answer


class BenchNode:
    """One node: its engine, and the line to the store that it alone has."""

    def __init__(self, bench: ClusterBench, name: str) -> None:
        self._bench = bench
        self.name = name
        self.faults = StoreFaults()
        self.store = BenchLine(bench, self.faults, name)
        self.signals = MemorySignals(bench.hub, lambda: self.faults.is_cut or self.store.dead)
        self.engine = self._new_engine()

    def kill(self) -> None:
        """Stop the node: it sends, writes and answers nothing more."""
        self.store.dead = True
        self._bench.killed.add(self.name)

    def cut_off(self) -> None:
        self.faults.cut()

    def mend(self) -> None:
        self.faults.mend()
        self.signals.reconnected()

    def sent(self) -> list[str]:
        return [id for id, senders in self._bench.senders.items() if self.name in senders]

    def _is_gone(self, facts: NodeFacts) -> bool:
        return self._bench.same_machine and facts.process in self._bench.killed

    def _new_engine(self) -> Engine:
        return Engine(
            self.store,
            self.store,
            _NodeDestination(self._bench, self),
            self._bench.clock,
            engine_options(
                owner=self.name, facts=NodeFacts(process=self.name), **self._bench.options
            ),
            Cluster(
                members=self.store,
                signals=self.signals,
                is_gone=self._is_gone,
            ),
        )


class _NodeDestination:
    """Checks the attempts of one node and passes them to the destination that records all."""

    def __init__(self, bench: ClusterBench, node: BenchNode) -> None:
        self._bench = bench
        self._node = node

    def check(self, callback: Callback) -> None:
        pass

    def endpoint_of(self, claim: Claim) -> str:
        return self._bench.destination.endpoint_of(claim)

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        await self._end_if_dead()
        try:
            await self._bench.store.check_owned(claim)
        except Broken as broken:
            self._bench.broken.append(broken)
            raise
        self._bench.senders.setdefault(claim.id, []).append(self._node.name)
        outcome = await self._bench.destination.deliver(claim, may_send)
        await self._end_if_dead()
        return outcome

    async def close(self) -> None:
        pass

    async def _end_if_dead(self) -> None:
        if self._node.store.dead:
            await self._bench.limbo.stay()
