"""Counts of timers, in one namespace, in all, and by namespace."""

from bisect import bisect_right
from collections.abc import Collection, Sequence

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus, unfinished_of
from duetime.ports.inspection import DueCount, LiveCounts, NamespaceCounts
from duetime.stores.memory.timer_table import TimerTable


class Census:
    """Implements `CensusStore`, and the counts of `TimerStore`."""

    _timers: TimerTable

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        return self._timers.counts(namespace)

    async def count_unfinished(self, namespace: str, *, exact_up_to: int) -> int:
        return unfinished_of(self._timers.counts(namespace))

    async def count_by_namespace(self, *, most_names: int) -> NamespaceCounts:
        return NamespaceCounts(
            _named(self._timers.by_namespace(TimerStatus.PENDING), most_names),
            _named(self._timers.by_namespace(TimerStatus.FAILED), most_names),
        )

    async def count_live(self, now: Instant, *, most: int) -> LiveCounts:
        executing = self._timers.by_namespace(TimerStatus.EXECUTING)
        return LiveCounts(executing, self._timers.overdue(now), are_all=True)

    async def count_due(
        self, bounds: Sequence[Instant], *, most: int, namespaces: Collection[str] | None = None
    ) -> Sequence[DueCount]:
        counts = [0] * (len(bounds) - 1)
        for due_at in self._timers.pending_due(namespaces):
            if bounds[0] <= due_at < bounds[-1]:
                counts[bisect_right(bounds, due_at) - 1] += 1
        return [DueCount(min(count, most), count <= most) for count in counts]


def _named(counts: dict[str, int], most_names: int) -> dict[str | None, int]:
    """The first counts under their names, and the sum of the others under None."""
    names = list(counts)
    named: dict[str | None, int] = {name: counts[name] for name in names[:most_names]}
    if len(names) > most_names:
        named[None] = sum(counts[name] for name in names[most_names:])
    return named
