"""The store and lease ports on plain Python structures."""

from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heappop, heapreplace, nlargest, nsmallest
from itertools import islice

from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, NodeFacts
from duetime.ports.store import (
    Capabilities,
    ClaimBatch,
    ClaimStart,
    ConditionalResult,
    CreateRequest,
    CreateResult,
    DuePosition,
    Existence,
    Leases,
    NamespaceChanges,
    OnExisting,
    Page,
    PageQuery,
    ScanEntry,
    ScanQuery,
    SortField,
)
from duetime.stores.memory.census import Census
from duetime.stores.memory.lateness_table import LatenessTable
from duetime.stores.memory.member_table import MemberTable
from duetime.stores.memory.operation_table import OperationTable
from duetime.stores.memory.pause_table import PauseTable
from duetime.stores.memory.searches import Searches
from duetime.stores.memory.security_table import SecurityTable
from duetime.stores.memory.timer_queue import QueueEntry, TimerQueue
from duetime.stores.memory.timer_table import Shard, TimerTable
from duetime.stores.namespace_changes import ChangeLog


class MemoryStore(OperationTable, Census):
    """Implements `TimerStore`, `LeaseStore` and `MemberStore`.

    Every method is atomic because none awaits: nothing else runs on the event loop meanwhile.
    Closing forgets nothing; the timers live as long as this object.
    """

    def __init__(self) -> None:
        super().__init__()
        self.security = SecurityTable()
        self.lateness_ledger = LatenessTable()
        self.endpoint_pauses = PauseTable()
        self._timers = TimerTable()
        self.searches = Searches(self._timers)
        self._namespaces: dict[str, Namespace] = {}
        self._namespace_changes = ChangeLog()
        self._num_shards = 0
        self._members = MemberTable()
        self._clock_believed_at: Instant | None = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(durable=False, shared_by_nodes=False)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ping(self) -> None:
        pass

    async def add_namespace(self, namespace: Namespace, *, in_reserve: bool = False) -> Namespace:
        kept = self._namespaces.setdefault(namespace.name, namespace)
        self._namespace_changes.note(namespace.name)
        self._num_shards = max(self._num_shards, kept.num_shards)
        return kept

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        namespace = self._namespaces.get(name)
        if namespace is None:
            return None
        changed = self._namespaces[name] = replace(namespace, options=options)
        self._namespace_changes.note(name)
        return changed

    async def remove_namespace(self, name: str) -> bool:
        if name not in self._namespaces:
            return True
        if not self._is_deleting(name) or any(True for _ in self._timers.of_namespace(name)):
            return False
        del self._namespaces[name]
        self._timers.forget_counts(name)
        self.lateness_ledger.remove_namespace(name)
        return True

    async def remove_pending(self, namespace: str, *, limit: int) -> int:
        if not self._is_deleting(namespace):
            return 0
        pending = ScanQuery(namespace=namespace, status=TimerStatus.PENDING)
        doomed = list(islice(self._timers.in_range(pending), limit))
        for timer in doomed:
            self._timers.remove(timer.key)
        return len(doomed)

    async def namespaces(self) -> Sequence[Namespace]:
        return [self._namespaces[name] for name in sorted(self._namespaces)]

    async def find_namespaces(self, names: Collection[str]) -> Sequence[Namespace]:
        return [self._namespaces[name] for name in set(names) if name in self._namespaces]

    async def namespaces_changed(self, since: str | None) -> NamespaceChanges:
        return await self._namespace_changes.answer(self, since)

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        return [self._create(request) for request in requests]

    async def restore(self, timers: Sequence[Timer]) -> list[CreateResult]:
        return await self.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])

    async def get(self, key: TimerKey) -> Timer | None:
        return self._timers.get(key)

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        timer = self._timers.get(key)
        if timer is None or not transitions.applies(change, timer):
            return _refused(timer)
        changed = transitions.changed(timer, change)
        self._timers.put(changed)
        return ConditionalResult(applied=True, timer=changed)

    async def cancel_if_pending(
        self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        timer = self._timers.get(key)
        if timer is None or not transitions.may_cancel(timer, only_updated_at):
            return _refused(timer)
        canceled = transitions.canceled(timer, now)
        self._timers.put(canceled)
        return ConditionalResult(applied=True, timer=canceled)

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        timer = self._timers.get(key)
        if timer is None or timer.status is not TimerStatus.PENDING:
            return _refused(timer)
        self._timers.remove(key)
        return ConditionalResult(applied=True, timer=timer)

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        return [self._redrive(redrive, now) for redrive in redrives]

    async def page(self, query: PageQuery) -> Page:
        matching = [
            timer
            for timer in self._timers.of_namespace(query.namespace)
            if query.status is None or timer.status is query.status
        ]
        if query.sort is SortField.CREATED_AT:
            matching.sort(key=lambda timer: (timer.created_at, timer.timer_uuid))
        else:
            matching.sort(key=lambda timer: (timer.execute_at, timer.timer_uuid))
        if query.descending:
            matching.reverse()
        timers = matching[query.offset : query.offset + query.limit]
        return Page(timers=timers, total=len(matching))

    async def scan(self, query: ScanQuery) -> list[Timer]:
        after = query.after_exclusive
        timers = iter(self._timers.in_range(query))
        if after is not None:
            here = (after.execute_at, after.timer_uuid)
            if query.descending:
                timers = (timer for timer in timers if _position(timer) < here)
            else:
                timers = (timer for timer in timers if _position(timer) > here)
        first = nlargest if query.descending else nsmallest
        return first(query.limit, timers, key=_position)

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        return list(await self.scan(query))

    async def count_scan(self, query: ScanQuery) -> int:
        return sum(1 for _ in self._timers.in_range(query))

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        """Leaves out what is before the start, so that tests show whether anything gets there."""
        before = self._set_aside(leases, start)
        try:
            return self._claim_first(leases, now, until_inclusive, limit)
        finally:
            for queue, entries in before:
                queue.put_back(entries)

    def _claim_first(
        self, leases: Leases, now: Instant, until_inclusive: Instant, limit: int
    ) -> ClaimBatch:
        last: DuePosition | None = None
        heads = [
            (entry, number)
            for number, shard in self._leased(leases)
            if (entry := shard.pending.first()) is not None
        ]
        heapify(heads)
        claims: list[Claim] = []
        while heads and len(claims) < limit:
            entry, number = heads[0]
            if entry.at > until_inclusive:
                break
            claims.append(self._claim(entry, leases[number], now))
            last = DuePosition(entry.at, entry.timer_uuid)
            following = self._timers.shards[number].pending.first()
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following, number))
        return ClaimBatch(claims, heads[0][0].at if heads else None, last)

    def _set_aside(
        self, leases: Leases, start: ClaimStart | None
    ) -> list[tuple[TimerQueue, list[QueueEntry]]]:
        aside = []
        if start is not None:
            after = start.after_exclusive
            for number, shard in self._leased(leases):
                begin = start.from_inclusive.get(number, after.due_at)
                if begin is not None:
                    uuid = b"" if number in start.from_inclusive else after.timer_uuid
                    aside.append((shard.pending, shard.pending.set_aside((begin, uuid))))
        return aside

    async def first_due(
        self, leases: Leases, *, before_exclusive: Instant
    ) -> dict[ShardNumber, Instant]:
        return {
            number: entry.at
            for number in leases
            if number in self._timers.shards
            and (entry := self._timers.shards[number].pending.first()) is not None
            and entry.at < before_exclusive
        }

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return [self._settle(settlement) for settlement in settlements]

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        return [
            transitions.claim_of(timer)
            for number, epoch in leases.items()
            if number in self._timers.shards
            for key in self._timers.shards[number].executing
            if (timer := self._timers.executing(key)) is not None and timer.epoch == epoch
        ]

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        left_behind = [
            timer
            for _, shard in self._leased(leases)
            for key in shard.executing
            if (timer := self._timers.executing(key)) is not None
            and timer.epoch < shard.epoch
            and not self._members.is_unfinished(timer.shard, timer.epoch)
        ]
        del left_behind[limit:]
        for timer in left_behind:
            self._timers.put(transitions.recovered(timer))
        return [timer.due_at for timer in left_behind]

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        return self._timers.prune(finished_before, limit, namespace)

    async def clock_believed_at(self) -> Instant | None:
        return self._clock_believed_at

    async def mark_clock_believed(self, now: Instant) -> None:
        self._clock_believed_at = now

    async def shards(self) -> Sequence[ShardState]:
        numbers = [ShardNumber(number) for number in range(self._num_shards)]
        shards = self._timers.shards
        return [
            ShardState(number, shards[number].epoch, shards[number].owner) for number in numbers
        ]

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        taken = {}
        for number, seen_epoch in seen.items():
            shard = self._timers.shards[number]
            if shard.epoch == seen_epoch:
                shard.epoch = taken[number] = Epoch(seen_epoch + 1)
                shard.owner = owner
        return taken

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        released = dict(self._leased(leases))
        for shard in released.values():
            shard.owner = None
        return set(released)

    async def heartbeat(self, node: str, facts: NodeFacts, *, join: bool) -> ClusterView:
        self._members.beat(node, facts, join=join)
        return ClusterView(
            self._members.members, await self.shards(), unfinished=self._members.unfinished
        )

    async def hand_over(self, node: str, leases: Leases) -> set[ShardNumber]:
        released = await self.release_shards(leases) if node in self._members else set()
        for shard in released:
            self._members.begin_unfinished(node, shard, leases[shard])
        return released

    async def finish(self, node: str, leases: Collection[tuple[ShardNumber, Epoch]]) -> None:
        self._members.finish(node, leases)

    async def leave(self, node: str) -> None:
        self._members.remove(node)

    async def forget_member(self, node: str, *, seen_beat: int) -> bool:
        return self._members.remove(node, seen_beat=seen_beat)

    def _is_deleting(self, name: str) -> bool:
        return name in self._namespaces and self._namespaces[name].options.deleting

    def _create(self, request: CreateRequest) -> CreateResult:
        timer = request.timer
        existing = self._timers.get(timer.key)
        if existing is None:
            self._timers.put(timer)
            return CreateResult(Existence.CREATED, timer)
        if request.on_existing is OnExisting.KEEP or existing.status is not TimerStatus.PENDING:
            return CreateResult(Existence.EXISTING, existing)
        replacement = transitions.replaced(existing, timer)
        self._timers.put(replacement)
        return CreateResult(Existence.REPLACED, replacement)

    def _redrive(self, redrive: Redrive, now: Instant) -> Timer | None:
        timer = self._timers.get(redrive.key)
        if timer is None or timer.status is not TimerStatus.FAILED:
            return None
        redriven = transitions.redriven(timer, redrive, now)
        self._timers.reopen(redriven)
        return redriven

    def _leased(self, leases: Leases) -> list[tuple[ShardNumber, Shard]]:
        """The leased shards whose epoch is still the leased one."""
        return [
            (number, shard)
            for number, epoch in leases.items()
            if (shard := self._timers.shards[number]).epoch == epoch
        ]

    def _claim(self, entry: QueueEntry, epoch: Epoch, now: Instant) -> Claim:
        timer = self._timers.get(entry.key)
        assert timer is not None
        claimed = transitions.claimed(timer, epoch=epoch, now=now)
        self._timers.put(claimed)
        return transitions.claim_of(claimed)

    def _settle(self, settlement: Settlement) -> bool:
        timer = self._timers.executing(TimerKey(settlement.namespace, settlement.id))
        if (
            timer is None
            or timer.created_at != settlement.created_at
            or timer.claim_number != settlement.claim_number
            or timer.epoch != settlement.epoch
            or (
                self._timers.shards[timer.shard].epoch != settlement.epoch
                and not self._members.is_unfinished(timer.shard, timer.epoch)
            )
        ):
            return False
        self._timers.put(transitions.settled(timer, settlement))
        return True


def _position(timer: Timer) -> tuple[Instant, bytes]:
    return timer.execute_at, timer.timer_uuid


def _refused(timer: Timer | None) -> ConditionalResult | None:
    return None if timer is None else ConditionalResult(applied=False, timer=timer)
