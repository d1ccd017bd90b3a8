"""A store in its plainest form: one dict and linear scans.

The answers of real stores are compared with those of the model. The model is slow and obviously
right, and shares only the pure functions of `domain.transitions` with any store.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.leases import ShardState
from duetime.ports.store import (
    ClaimBatch,
    ConditionalResult,
    CreateRequest,
    CreateResult,
    Existence,
    Leases,
    OnExisting,
    Page,
    PageQuery,
    ScanQuery,
    SortField,
)


class StoreModel:
    def __init__(self) -> None:
        self.timers: dict[TimerKey, Timer] = {}
        self.known_namespaces: dict[str, Namespace] = {}
        self.epochs: dict[ShardNumber, Epoch] = {}
        self.owners: dict[ShardNumber, str | None] = {}

    def add_namespace(self, namespace: Namespace) -> Namespace:
        if namespace.name not in self.known_namespaces:
            self.known_namespaces[namespace.name] = namespace
            for number in range(namespace.num_shards):
                self.epochs.setdefault(ShardNumber(number), Epoch(0))
                self.owners.setdefault(ShardNumber(number), None)
        return self.known_namespaces[namespace.name]

    def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        if name not in self.known_namespaces:
            return None
        self.known_namespaces[name] = replace(self.known_namespaces[name], options=options)
        return self.known_namespaces[name]

    def namespaces(self) -> list[Namespace]:
        return [self.known_namespaces[name] for name in sorted(self.known_namespaces)]

    def find_namespaces(self, names: Collection[str]) -> list[Namespace]:
        return [each for name, each in self.known_namespaces.items() if name in names]

    def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        results = []
        for request in requests:
            key = request.timer.key
            existing = self.timers.get(key)
            if existing is None:
                self.timers[key] = request.timer
                existence = Existence.CREATED
            elif (
                request.on_existing is OnExisting.REPLACE and existing.status is TimerStatus.PENDING
            ):
                self.timers[key] = transitions.replaced(existing, request.timer)
                existence = Existence.REPLACED
            else:
                existence = Existence.EXISTING
            results.append(CreateResult(existence, self.timers[key]))
        return results

    def restore(self, timers: Sequence[Timer]) -> list[CreateResult]:
        return self.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])

    def get(self, key: TimerKey) -> Timer | None:
        return self.timers.get(key)

    def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        timer = self.timers.get(key)
        if timer is None:
            return None
        if not transitions.applies(change, timer):
            return ConditionalResult(applied=False, timer=timer)
        self.timers[key] = transitions.changed(timer, change)
        return ConditionalResult(applied=True, timer=self.timers[key])

    def cancel_if_pending(
        self, key: TimerKey, now: Instant, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        timer = self.timers.get(key)
        if timer is None:
            return None
        if not transitions.may_cancel(timer, only_updated_at):
            return ConditionalResult(applied=False, timer=timer)
        self.timers[key] = transitions.canceled(timer, now)
        return ConditionalResult(applied=True, timer=self.timers[key])

    def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        timer = self.timers.get(key)
        if timer is None:
            return None
        if timer.status is not TimerStatus.PENDING:
            return ConditionalResult(applied=False, timer=timer)
        del self.timers[key]
        return ConditionalResult(applied=True, timer=timer)

    def redrive_if_failed(self, redrives: Sequence[Redrive], now: Instant) -> list[Timer | None]:
        answers: list[Timer | None] = []
        for redrive in redrives:
            timer = self.timers.get(redrive.key)
            if timer is None or timer.status is not TimerStatus.FAILED:
                answers.append(None)
                continue
            self.timers[redrive.key] = transitions.redriven(timer, redrive, now)
            answers.append(self.timers[redrive.key])
        return answers

    def page(self, query: PageQuery) -> Page:
        def position(timer: Timer) -> tuple[Instant, bytes]:
            by_creation = query.sort is SortField.CREATED_AT
            return timer.created_at if by_creation else timer.execute_at, timer.timer_uuid

        matching = [
            timer
            for timer in self.timers.values()
            if timer.key.namespace == query.namespace and query.status in (None, timer.status)
        ]
        matching.sort(key=position, reverse=query.descending)
        return Page(matching[query.offset : query.offset + query.limit], len(matching))

    def scan(self, query: ScanQuery) -> list[Timer]:
        def place(timer: Timer) -> tuple[Instant, bytes]:
            return timer.execute_at, timer.timer_uuid

        matching = sorted(self._in_range(query), key=place, reverse=query.descending)
        after = query.after_exclusive
        if after is not None:
            here = (after.execute_at, after.timer_uuid)
            matching = [
                timer
                for timer in matching
                if (place(timer) < here if query.descending else place(timer) > here)
            ]
        return matching[: query.limit]

    def count_scan(self, query: ScanQuery) -> int:
        return len(self._in_range(query))

    def claim_due(
        self, leases: Leases, *, now: Instant, until_inclusive: Instant, limit: int
    ) -> ClaimBatch:
        due = [timer for timer in self._pending(leases) if timer.due_at <= until_inclusive]
        claims: list[Claim] = []
        for timer in due[:limit]:
            claimed = transitions.claimed(timer, epoch=self.epochs[timer.shard], now=now)
            self.timers[timer.key] = claimed
            claims.append(transitions.claim_of(claimed))
        left = self._pending(leases)
        return ClaimBatch(claims=claims, next_due_at=left[0].due_at if left else None)

    def first_due(
        self, shards: Iterable[ShardNumber], *, before_exclusive: Instant
    ) -> Instant | None:
        """The earliest due instant before the given one in any of the shards."""
        of_shards = set(shards)
        return min(
            (
                timer.due_at
                for timer in self.timers.values()
                if timer.status is TimerStatus.PENDING
                and timer.shard in of_shards
                and timer.due_at < before_exclusive
            ),
            default=None,
        )

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        answers = []
        for settlement in settlements:
            key = TimerKey(settlement.namespace, settlement.id)
            timer = self.timers.get(key)
            applies = (
                timer is not None
                and timer.status is TimerStatus.EXECUTING
                and timer.created_at == settlement.created_at
                and timer.claim_number == settlement.claim_number
                and timer.epoch == settlement.epoch == self.epochs[timer.shard]
            )
            if applies and timer is not None:
                self.timers[key] = transitions.settled(timer, settlement)
            answers.append(applies)
        return answers

    def executing(self, leases: Leases) -> list[Claim]:
        return [
            transitions.claim_of(timer)
            for timer in self.timers.values()
            if timer.status is TimerStatus.EXECUTING and leases.get(timer.shard) == timer.epoch
        ]

    def recover(self, leases: Leases) -> list[Instant]:
        left_behind = [
            timer
            for timer in self.timers.values()
            if timer.status is TimerStatus.EXECUTING
            and self._holds(leases, timer.shard)
            and timer.epoch < leases[timer.shard]
        ]
        for timer in left_behind:
            self.timers[timer.key] = transitions.recovered(timer)
        return [timer.due_at for timer in left_behind]

    def prunable(self, *, finished_before: Instant, namespace: str | None = None) -> list[Timer]:
        """Timers that a prune may forget, oldest first. Equally old ones go in any order."""
        finished = [
            timer
            for timer in self.timers.values()
            if timer.status.is_finished
            and timer.updated_at < finished_before
            and namespace in (None, timer.key.namespace)
        ]
        return sorted(finished, key=lambda timer: timer.updated_at)

    def forget(self, keys: Collection[TimerKey]) -> None:
        for key in keys:
            del self.timers[key]

    def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        statuses = [
            timer.status
            for timer in self.timers.values()
            if namespace is None or timer.key.namespace == namespace
        ]
        return {status: statuses.count(status) for status in TimerStatus}

    def overdue(self, now: Instant) -> int:
        pending = (each for each in self.timers.values() if each.status is TimerStatus.PENDING)
        return sum(timer.due_at < now for timer in pending)

    def shards(self) -> list[ShardState]:
        return [
            ShardState(shard, epoch, self.owners[shard])
            for shard, epoch in sorted(self.epochs.items())
        ]

    def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        taken = {shard: Epoch(epoch + 1) for shard, epoch in seen.items() if self._is(shard, epoch)}
        self.epochs |= taken
        self.owners |= dict.fromkeys(taken, owner)
        return taken

    def release_shards(self, leases: Leases) -> set[ShardNumber]:
        released = {shard for shard, epoch in leases.items() if self._is(shard, epoch)}
        self.owners |= dict.fromkeys(released, None)
        return released

    def _is(self, shard: ShardNumber, epoch: Epoch) -> bool:
        return self.epochs[shard] == epoch

    def _holds(self, leases: Leases, shard: ShardNumber) -> bool:
        return shard in leases and leases[shard] == self.epochs[shard]

    def _in_range(self, query: ScanQuery) -> list[Timer]:
        first, end = query.execute_from_inclusive, query.execute_until_exclusive
        return [
            timer
            for timer in self.timers.values()
            if timer.key.namespace == query.namespace
            and timer.status in query.statuses
            and (first is None or timer.execute_at >= first)
            and (end is None or timer.execute_at < end)
        ]

    def _pending(self, leases: Leases) -> list[Timer]:
        pending = [
            timer
            for timer in self.timers.values()
            if timer.status is TimerStatus.PENDING and self._holds(leases, timer.shard)
        ]
        return sorted(pending, key=lambda timer: (timer.due_at, timer.timer_uuid))
