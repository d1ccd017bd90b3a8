"""Pruning: finished timers that are forgotten, by a clock that may be believed."""

from typing import Protocol

from duetime.domain.instants import Instant


class PruningStore(Protocol):
    """The part of `TimerStore` that forgets finished timers. All its methods are atomic and raise
    `StoreUnavailable`, as that port says."""

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        """Forget up to `limit` timers that finished before the instant, of one namespace or of
        all; returns their number. Without a namespace the earliest go first.

        Without a namespace, and when the instant is a multiple of a `capabilities.history_step`
        larger than one, whole steps are forgotten at once, however many timers they contain.
        """
        ...

    async def clock_believed_at(self) -> Instant | None:
        """The instant of the last `mark_clock_believed`; None before the first."""
        ...

    async def mark_clock_believed(self, now: Instant) -> None:
        """Keep an instant at which a node had reason to believe its clock, in place of the one
        before, even if that was later. Timers that are written do not change it."""
        ...
