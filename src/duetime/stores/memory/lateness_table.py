"""Counts of attempts in time and late, in memory."""

from collections.abc import Sequence

from duetime.domain.lateness.objective import LatenessCount


class LatenessTable:
    """Implements the lateness ledger."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], LatenessCount] = {}

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        for each in counts:
            key = (each.namespace, each.hour)
            before = self._counts.get(key, LatenessCount(*key, 0, 0))
            self._counts[key] = LatenessCount(
                *key, before.in_time + each.in_time, before.late + each.late
            )

    async def lateness_since(self, hour: int) -> Sequence[LatenessCount]:
        return [each for each in self._counts.values() if each.hour >= hour]

    async def forget_lateness(self, before_hour: int) -> None:
        self._counts = {key: each for key, each in self._counts.items() if key[1] >= before_hour}
