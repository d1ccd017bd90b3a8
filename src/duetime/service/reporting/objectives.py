"""The error budgets of lateness objectives, over all nodes and restarts."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from duetime.background import BackgroundLoop
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
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
from duetime.telemetry.metrics.metric import Labels
from duetime.telemetry.metrics.recording import LabelValues

WRITE_SECONDS = 10.0
"""Time for which attempts may be missing in the budgets, and the attempts that a crash forgets."""

LAST_WRITE_SECONDS = 1.0
"""Time for the last write when the service stops."""

SETTLED_AFTER_HOURS = 2
"""Age after which nodes do not add to an hour any more, unless their clocks are wrong."""

NAMES_AT_ONCE = 50
"""Namespaces that are summed by one call to the store."""

FORGET_SECONDS = 3_600.0
FORGOTTEN_AT_ONCE = 1_000

_HOUR = 3_600 * MICROSECONDS_PER_SECOND
_NOTHING = InTimeOrLate()


class NewCounts(Protocol):
    """The counts of this process that are not in the store yet."""

    def begin(self, names: Iterable[str]) -> None: ...

    def take_unwritten(self) -> Mapping[str, InTimeOrLate]: ...

    def put_back(self, counts: Mapping[str, InTimeOrLate]) -> None: ...


class ShownObjective(NamedTuple):
    """The values of an objective's metrics, ready for a scrape."""

    labels: Labels
    ratio: float
    lateness_seconds: float
    window_seconds: float
    budget_left: float
    text: str = ""


class _Settled(NamedTuple):
    """The sums of the hours of a window that are over."""

    since: int
    until_exclusive: int
    sums: InTimeOrLate


class Objectives(BackgroundLoop):
    """Adds this node's counts to the store's every few seconds, and reads the sums of all nodes.

    The store sums, for a few namespaces at a time. The hours that are over are summed again once
    the window has moved, and at each update for a part of the namespaces in turn: another node may
    have removed a namespace and created it anew.

    Old counts are forgotten by the clock that a node last believed (`believed_at`), so that a wrong
    clock does not delete what all nodes have counted.
    """

    name = "objectives"

    def __init__(
        self,
        ledger: LatenessLedger,
        clock: Clock,
        objectives: Callable[[], Mapping[str, LatenessObjective]],
        new: NewCounts,
        labels: LabelValues,
        believed_at: Callable[[], Awaitable[Instant | None]],
    ) -> None:
        """`objectives` are those of the namespaces that are known here; `labels` are the namespaces
        that metrics tell apart."""
        super().__init__(clock)
        self._ledger = ledger
        self._objectives = objectives
        self._new = new
        self._labels = labels
        self._believed_at = believed_at
        self._updates = 0
        self._forget_at_seconds = clock.monotonic()
        self._settled: dict[str, _Settled] = {}
        self._budgets: dict[str, tuple[LatenessObjective, ErrorBudget]] = {}
        self._shown: list[ShownObjective] = []

    async def step(self) -> None:
        await self.wait(WRITE_SECONDS if self._updates else 0)
        await self.update()

    async def update(self) -> None:
        """Write what is new, and read what is left. Raises `StoreUnavailable`."""
        await self._write()
        objectives = dict(self._objectives())
        names = list(objectives)
        self._new.begin(names)
        self._settled = {name: each for name, each in self._settled.items() if name in objectives}
        parts = [names[n : n + NAMES_AT_ONCE] for n in range(0, len(names), NAMES_AT_ONCE)]
        hour = self._hour()
        budgets: dict[str, tuple[LatenessObjective, ErrorBudget]] = {}
        shown: list[ShownObjective] = []
        for number, part in enumerate(parts):
            if number == self._updates % len(parts):
                for name in part:
                    self._settled.pop(name, None)
            for name, sums in (await self._sums({n: objectives[n] for n in part}, hour)).items():
                objective = objectives[name]
                budget = error_budget(objective, sums.in_time, sums.late)
                budgets[name] = objective, budget
                if self._labels.of(name) == name:
                    shown.append(_shown(name, objective, budget))
        self._budgets, self._shown = budgets, shown
        self._updates += 1
        if self._clock.monotonic() >= self._forget_at_seconds:
            await self._forget()

    def budget_of(self, namespace: Namespace) -> ErrorBudget | None:
        """None if the namespace has no objective, or while its counts have not been read."""
        objective, budget = self._budgets.get(namespace.name, (None, None))
        return budget if objective == namespace.options.slo else None

    def shown(self) -> Sequence[ShownObjective]:
        """The objectives of the last update, of the namespaces that metrics tell apart."""
        return self._shown

    async def _sums(
        self, objectives: Mapping[str, LatenessObjective], hour: int
    ) -> dict[str, InTimeOrLate]:
        """The sums over the windows of these objectives."""
        over = hour - SETTLED_AFTER_HOURS
        since = {name: hour - each.window_hours + 1 for name, each in objectives.items()}
        changed = {
            name: first
            for name, first in since.items()
            if (known := self._settled.get(name)) is None
            or (known.since, known.until_exclusive) != (first, over)
        }
        if changed:
            settled = await self._ledger.sum_lateness(changed, until_exclusive=over)
            for name, first in changed.items():
                self._settled[name] = _Settled(first, over, settled.get(name, _NOTHING))
        recent = await self._ledger.sum_lateness(
            {name: max(first, over) for name, first in since.items()},
            # The clock of another node may be ahead a little.
            until_exclusive=hour + 2,
        )
        sums = {}
        for name in objectives:
            sums[name] = InTimeOrLate()
            sums[name].add(self._settled[name].sums)
            sums[name].add(recent.get(name, _NOTHING))
        return sums

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

    async def _forget(self) -> None:
        believed_at = await self._believed_at()
        forgotten = 0
        if believed_at is not None:
            oldest = believed_at // _HOUR - MAX_WINDOW_HOURS
            forgotten = await self._ledger.forget_lateness(oldest, limit=FORGOTTEN_AT_ONCE)
        if forgotten < FORGOTTEN_AT_ONCE:
            self._forget_at_seconds = self._clock.monotonic() + FORGET_SECONDS

    def _hour(self) -> int:
        return self._clock.now() // _HOUR


def _shown(name: str, objective: LatenessObjective, budget: ErrorBudget) -> ShownObjective:
    return ShownObjective(
        labels=(name,),
        ratio=objective.ratio,
        lateness_seconds=objective.within_ms / 1_000,
        window_seconds=objective.window_ms / 1_000,
        budget_left=budget.left,
        text=objective.text,
    )
