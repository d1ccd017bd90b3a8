"""All timers of the process, live and finished apart, with the indexes that find them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.stores.memory.shard import Shard


class TimerTable:
    """Timers by key. `put` and `remove` keep shards, counts and the retention order in step."""

    def __init__(self) -> None:
        self.shards: defaultdict[ShardNumber, Shard] = defaultdict(Shard)
        self._live: dict[TimerKey, Timer] = {}
        self._finished: dict[TimerKey, Timer] = {}
        self._finished_order: list[tuple[Instant, bytes, TimerKey]] = []
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
            heappush(self._finished_order, (timer.updated_at, timer.timer_uuid, timer.key))
            return
        self._live[timer.key] = timer
        shard = self.shards[timer.shard]
        if timer.status is TimerStatus.PENDING:
            shard.pending.put(timer)
        else:
            shard.executing.add(timer.key)

    def remove(self, key: TimerKey) -> None:
        """Forget the live timer of this key, if there is one. Finished ones are only pruned."""
        assert key not in self._finished, "a finished timer never changes again"
        timer = self._live.pop(key, None)
        if timer is None:
            return
        self._counts[key.namespace][timer.status] -= 1
        shard = self.shards[timer.shard]
        if timer.status is TimerStatus.PENDING:
            shard.pending.discard(key)
        else:
            shard.executing.discard(key)

    def prune(self, finished_before: Instant, limit: int) -> int:
        pruned = 0
        while (
            pruned < limit and self._finished_order and self._finished_order[0][0] < finished_before
        ):
            key = heappop(self._finished_order)[2]
            timer = self._finished.pop(key)
            self._counts[key.namespace][timer.status] -= 1
            pruned += 1
        return pruned

    def of_namespace(self, namespace: str) -> Iterator[Timer]:
        for timers in (self._live, self._finished):
            for key, timer in timers.items():
                if key.namespace == namespace:
                    yield timer

    def counts(self, namespace: str | None) -> dict[TimerStatus, int]:
        if namespace is None:
            counted = list(self._counts.values())
        else:
            counted = [self._counts[namespace]] if namespace in self._counts else []
        return {status: sum(counts[status] for counts in counted) for status in TimerStatus}
