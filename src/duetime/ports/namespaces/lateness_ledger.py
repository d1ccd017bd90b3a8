"""The lasting counts of attempts that were in time or late."""

from collections.abc import Sequence
from typing import Protocol

from duetime.domain.lateness.objective import LatenessCount


class LatenessLedger(Protocol):
    """Counts by namespace and hour, of all nodes together. Methods raise `StoreUnavailable`."""

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        """Add to the counts of their namespaces and hours, each of which is named once."""
        ...

    async def lateness_since(self, hour: int) -> Sequence[LatenessCount]:
        """The counts of that hour and of later ones, in no particular order."""
        ...

    async def forget_lateness(self, before_hour: int) -> None:
        """Forget the counts of earlier hours."""
        ...
