"""The error budgets of lateness objectives, over all nodes and restarts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from duetime.background import BackgroundLoop
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.domain.lateness.objective import (
    MAX_WINDOW_HOURS,
    ErrorBudget,
    InTimeOrLate,
    LatenessCount,
    LatenessObjective,
    error_budget,
)
from duetime.domain.namespace import Namespace
from duetime.ports.clock import Clock
from duetime.ports.namespaces.lateness_ledger import LatenessLedger

WRITE_SECONDS = 10.0
"""Time for which attempts may be missing in the budgets, and the attempts that a crash forgets."""

LAST_WRITE_SECONDS = 1.0
"""Time for the last write when the service stops."""

SETTLED_AFTER_HOURS = 2
"""Age after which no node adds to an hour any more, so that it need not be read again."""


class NewCounts(Protocol):
    """The counts of this process that are not in the store yet."""

    def take_unwritten(self) -> Mapping[str, InTimeOrLate]: ...

    def put_back(self, counts: Mapping[str, InTimeOrLate]) -> None: ...


class Objectives(BackgroundLoop):
    """Adds this node's counts to the store's every few seconds, and reads those of all nodes.

    Hours that are over are read once. The counts of an hour that was just read replace those that
    were known of it.
    """

    name = "objectives"

    def __init__(
        self,
        ledger: LatenessLedger,
        clock: Clock,
        namespaces: Callable[[], Iterable[Namespace]],
        new: NewCounts,
    ) -> None:
        super().__init__(clock)
        self._ledger = ledger
        self._namespaces = namespaces
        self._new = new
        self._hours: dict[str, dict[int, tuple[int, int]]] = {}
        """For each namespace its counts by hour: in time, and late."""
        self._known_since: int | None = None
        self._forgotten_before = 0
        self._budgets: dict[str, tuple[LatenessObjective, ErrorBudget]] = {}
        """Budgets that were computed since the counts were last read."""

    async def step(self) -> None:
        await self.wait(WRITE_SECONDS if self._known_since is not None else 0)
        await self.update()

    async def update(self) -> None:
        """Write what is new, and read what has changed. Raises `StoreUnavailable`."""
        await self._write()
        hour = self._hour()
        since = hour - MAX_WINDOW_HOURS if self._known_since is None else self._known_since
        self._learn(await self._ledger.lateness_since(since), since)
        self._known_since = hour - SETTLED_AFTER_HOURS
        oldest = hour - MAX_WINDOW_HOURS
        if oldest > self._forgotten_before:
            await self._ledger.forget_lateness(oldest)
            self._forgotten_before = oldest

    def budget_of(self, namespace: Namespace) -> ErrorBudget | None:
        """None if the namespace has no objective, or while the counts have not been read."""
        objective = namespace.options.slo
        if objective is None or self._known_since is None:
            return None
        return self._budget(namespace.name, objective)

    def budgets(self) -> list[tuple[str, LatenessObjective, ErrorBudget]]:
        """All objectives with their budgets."""
        return [
            (each.name, objective, self._budget(each.name, objective))
            for each in self._namespaces()
            if (objective := each.options.slo) is not None
        ]

    def _budget(self, name: str, objective: LatenessObjective) -> ErrorBudget:
        known = self._budgets.get(name)
        if known is None or known[0] != objective:
            since = self._hour() - objective.window_hours
            counts = [both for hour, both in self._hours.get(name, {}).items() if hour > since]
            in_time, late = (sum(column) for column in zip((0, 0), *counts, strict=True))
            known = self._budgets[name] = objective, error_budget(objective, in_time, late)
        return known[1]

    async def _write(self) -> None:
        new, hour = self._new.take_unwritten(), self._hour()
        if not new:
            return
        counts = [LatenessCount(name, hour, each.in_time, each.late) for name, each in new.items()]
        try:
            await self._ledger.add_lateness(counts)
        except StoreUnavailable:
            self._new.put_back(new)
            raise

    def _learn(self, counts: Sequence[LatenessCount], since: int) -> None:
        self._budgets.clear()
        oldest = self._hour() - MAX_WINDOW_HOURS
        for hours in self._hours.values():
            for hour in [each for each in hours if each >= since or each < oldest]:
                del hours[hour]
        for each in counts:
            self._hours.setdefault(each.namespace, {})[each.hour] = (each.in_time, each.late)

    def _hour(self) -> int:
        return self._clock.now() // (3_600 * MICROSECONDS_PER_SECOND)
