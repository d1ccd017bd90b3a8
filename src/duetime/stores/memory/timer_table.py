"""All timers of the process, live and finished apart, with the indexes that find them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heapreplace

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import ScanQuery
from duetime.stores.memory.timer_queue import TimerQueue


class Shard:
    """A lease and live timers: `pending` and `executing` together hold the keys of all of them."""

    __slots__ = ("epoch", "executing", "owner", "pending")

    def __init__(self) -> None:
        self.epoch = Epoch(0)
        self.owner: str | None = None
        self.pending = TimerQueue()
        self.executing: set[TimerKey] = set()


class TimerTable:
    """Timers by key. `put` and `remove` keep shards, counts and the retention order in step."""

    def __init__(self) -> None:
        self.shards: defaultdict[ShardNumber, Shard] = defaultdict(Shard)
        self._live: dict[TimerKey, Timer] = {}
        self._finished: dict[TimerKey, Timer] = {}
        self._history: defaultdict[str, TimerQueue] = defaultdict(TimerQueue)
        self._counts: defaultdict[str, Counter[TimerStatus]] = defaultdict(Counter)

    def get(self, key: TimerKey) -> Timer | None:
        return self._live.get(key) or self._finished.get(key)

    def executing(self, key: TimerKey) -> Timer | None:
        timer = self._live.get(key)
        return timer if timer is not None and timer.status is TimerStatus.EXECUTING else None

    def put(self, timer: Timer) -> None:
        """Hold the timer under its key, instead of the live one that was there."""
        self.remove(timer.key)
        self._counts[timer.key.namespace][timer.status] += 1
        if timer.status.is_finished:
            self._finished[timer.key] = timer
            self._history[timer.key.namespace].put(timer, timer.updated_at)
            return
        self._live[timer.key] = timer
        shard = self.shards[timer.shard]
        if timer.status is TimerStatus.PENDING:
            shard.pending.put(timer, timer.due_at)
        else:
            shard.executing.add(timer.key)

    def remove(self, key: TimerKey) -> None:
        """Forget the live timer of this key, if there is one. Finished ones are only pruned or
        redriven."""
        assert key not in self._finished, "a finished timer never changes by itself"
        timer = self._live.pop(key, None)
        if timer is None:
            return
        self._counts[key.namespace][timer.status] -= 1
        shard = self.shards[timer.shard]
        if timer.status is TimerStatus.PENDING:
            shard.pending.discard(key)
        else:
            shard.executing.discard(key)

    def reopen(self, timer: Timer) -> None:
        """Hold a live timer instead of the finished one of its key."""
        finished = self._finished.pop(timer.key)
        self._counts[timer.key.namespace][finished.status] -= 1
        self._history[timer.key.namespace].discard(timer.key)
        self.put(timer)

    def prune(self, finished_before: Instant, limit: int, namespace: str | None) -> int:
        names = list(self._history) if namespace is None else [namespace]
        heads = [
            (entry, name)
            for name in names
            if name in self._history and (entry := self._history[name].first()) is not None
        ]
        heapify(heads)
        pruned = 0
        while heads and pruned < limit and heads[0][0].at < finished_before:
            entry, name = heads[0]
            self._forget(entry.key)
            pruned += 1
            following = self._history[name].first()
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following, name))
        return pruned

    def _forget(self, key: TimerKey) -> None:
        timer = self._finished.pop(key)
        self._history[key.namespace].discard(key)
        self._counts[key.namespace][timer.status] -= 1

    def of_namespace(self, namespace: str) -> Iterator[Timer]:
        for timers in (self._live, self._finished):
            for key, timer in timers.items():
                if key.namespace == namespace:
                    yield timer

    def in_range(self, query: ScanQuery) -> Iterator[Timer]:
        """The timers that match the query in no particular order, whatever its position and
        limit."""
        first, end = query.execute_from_inclusive, query.execute_until_exclusive
        statuses = query.statuses
        for timer in self.of_namespace(query.namespace):
            if (
                timer.status in statuses
                and (first is None or timer.execute_at >= first)
                and (end is None or timer.execute_at < end)
            ):
                yield timer

    def by_namespace(self, status: TimerStatus) -> dict[str, int]:
        """The number of timers with the status in each namespace, in the order of the names."""
        return {name: self._counts[name][status] for name in sorted(self._counts)}

    def forget_counts(self, namespace: str) -> None:
        """For a namespace that has no timers and is gone."""
        self._counts.pop(namespace, None)

    def overdue(self, now: Instant) -> Counter[str]:
        return Counter(
            key.namespace
            for key, timer in self._live.items()
            if timer.status is TimerStatus.PENDING and timer.due_at < now
        )

    def pending_due(self, namespaces: Collection[str] | None) -> Iterator[Instant]:
        """The instants at which pending timers are due; None stands for all namespaces."""
        for key, timer in self._live.items():
            if timer.status is TimerStatus.PENDING and (
                namespaces is None or key.namespace in namespaces
            ):
                yield timer.due_at

    def counts(self, namespace: str | None) -> dict[TimerStatus, int]:
        if namespace is None:
            counted = list(self._counts.values())
        else:
            counted = [self._counts[namespace]] if namespace in self._counts else []
        return {status: sum(counts[status] for counts in counted) for status in TimerStatus}
