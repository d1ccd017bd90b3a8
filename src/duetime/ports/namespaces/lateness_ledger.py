"""The lasting counts of attempts that were in time or late."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from duetime.domain.lateness.objective import InTimeOrLate, LatenessCount


class LatenessLedger(Protocol):
    """Counts by namespace and hour, of all nodes together. Methods raise `StoreUnavailable`.

    The counts of a namespace go with it: see `TimerStore.remove_namespace`.
    """

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        """Add to the counts of their namespaces and hours, each of which is named once."""
        ...

    async def sum_lateness(
        self, since: Mapping[str, int], *, until_exclusive: int
    ) -> Mapping[str, InTimeOrLate]:
        """The sums of these namespaces, each since an hour of its own, inclusive. A namespace
        without counts in its hours is left out."""
        ...

    async def forget_lateness(self, before_hour: int, *, limit: int) -> int:
        """Forget up to `limit` counts of earlier hours; returns their number."""
        ...
