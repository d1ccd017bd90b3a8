"""Counts of attempts in time and late, in memory."""

from collections.abc import Mapping, Sequence
from itertools import islice

from duetime.domain.lateness.objective import InTimeOrLate, LatenessCount
from duetime.event_loop import next_turn


class LatenessTable:
    """Implements the lateness ledger."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, InTimeOrLate]] = {}
        """For each namespace its counts by hour."""

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        for each in counts:
            hours = self._counts.setdefault(each.namespace, {})
            hours.setdefault(each.hour, InTimeOrLate()).add(each)

    async def sum_lateness(
        self, since: Mapping[str, int], *, until_exclusive: int
    ) -> Mapping[str, InTimeOrLate]:
        sums = {}
        for name, first in since.items():
            counts = [
                count
                for hour, count in self._counts.get(name, {}).items()
                if first <= hour < until_exclusive
            ]
            if counts:
                sums[name] = InTimeOrLate(
                    sum(each.in_time for each in counts), sum(each.late for each in counts)
                )
            await next_turn()
        return sums

    async def forget_lateness(self, before_hour: int, *, limit: int) -> int:
        old = (
            (name, hour)
            for name, hours in self._counts.items()
            for hour in hours
            if hour < before_hour
        )
        doomed = list(islice(old, limit))
        for name, hour in doomed:
            del self._counts[name][hour]
        return len(doomed)

    def remove_namespace(self, name: str) -> None:
        self._counts.pop(name, None)
