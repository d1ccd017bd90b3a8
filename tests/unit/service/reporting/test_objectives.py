"""Error budgets: counted here, kept in the store, and summed over nodes and restarts."""

from collections.abc import Sequence

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.lateness.objective import ErrorBudget, LatenessCount, parse_objective
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.engine.objective_counts import ObjectiveCounts
from duetime.service.namespaces import KnownNamespaces
from duetime.service.reporting.objectives import Objectives
from duetime.stores.memory.lateness_table import LatenessTable
from duetime.testing import LoopClock, on_virtual_time
from duetime.testing.virtual_clock import VirtualClock

MS = 1_000
HOUR = 3_600.0


class Ledger(LatenessTable):
    """A ledger that can be away, and that tells which hours were read."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.read_since: list[int] = []

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        if self.away:
            raise StoreUnavailable("away for a test")
        await super().add_lateness(counts)

    async def lateness_since(self, hour: int) -> Sequence[LatenessCount]:
        self.read_since.append(hour)
        return await super().lateness_since(hour)


class Node:
    def __init__(self, ledger: LatenessTable, clock: VirtualClock | LoopClock) -> None:
        self.known = KnownNamespaces()
        self.counts = ObjectiveCounts(self.known)
        self.objectives = Objectives(ledger, clock, lambda: self.known, self.counts)
        self.set_objective("mail", "99 % within 100ms over 24h")
        self.known.add(Namespace("other"))

    def set_objective(self, name: str, text: str) -> None:
        options = NamespaceOptions(slo=parse_objective(text))
        self.known.add(Namespace(name, options=options))

    def make_attempts(self, *late_ms: int, namespace: str = "mail") -> None:
        for each in late_ms:
            self.counts.attempt_made(namespace, each * MS)

    def budget(self, name: str = "mail") -> ErrorBudget | None:
        namespace = self.known.known(name)
        assert namespace is not None
        return self.objectives.budget_of(namespace)


async def test_attempts_up_to_the_threshold_are_in_time() -> None:
    node = Node(LatenessTable(), VirtualClock())
    node.make_attempts(0, 1, 100, 101)
    node.make_attempts(5_000, namespace="other")
    node.make_attempts(5_000, namespace="unknown")

    await node.objectives.update()

    budget = node.budget()
    assert budget is not None
    assert (budget.attempts, budget.late) == (4, 1)
    assert budget.left == pytest.approx(1 - 0.25 / 0.01)
    assert node.budget("other") is None
    assert {name: (c.in_time, c.late) for name, c in node.counts.since_start.items()} == {
        "mail": (3, 1)
    }


async def test_the_budget_counts_all_nodes_and_survives_a_restart() -> None:
    ledger, clock = LatenessTable(), VirtualClock()
    one, two = Node(ledger, clock), Node(ledger, clock)
    one.make_attempts(0, 0, 500)
    two.make_attempts(0)
    await one.objectives.update()
    await two.objectives.update()
    await one.objectives.update()
    again = Node(ledger, clock)
    assert again.budget() is None
    await again.objectives.update()
    for node in (one, two, again):
        budget = node.budget()
        assert budget is not None
        assert (budget.attempts, budget.late) == (4, 1)


async def test_attempts_leave_the_budget_with_their_window() -> None:
    ledger, clock = LatenessTable(), VirtualClock()
    node = Node(ledger, clock)
    node.make_attempts(500)
    await node.objectives.update()
    clock.advance(23 * HOUR)
    node.make_attempts(0, 0)
    await node.objectives.update()
    before = node.budget()
    clock.advance(HOUR)
    await node.objectives.update()
    after = node.budget()
    assert before is not None
    assert after is not None
    assert [(each.attempts, each.late) for each in (before, after)] == [(3, 1), (2, 0)]


async def test_a_changed_objective_counts_from_its_own_window() -> None:
    ledger, clock = LatenessTable(), VirtualClock()
    node = Node(ledger, clock)
    node.make_attempts(500)
    clock.advance(2 * HOUR)
    await node.objectives.update()
    clock.advance(2 * HOUR)
    node.make_attempts(0)
    await node.objectives.update()
    node.set_objective("mail", "99 % within 100ms over 1h")
    budget = node.budget()
    assert budget is not None
    assert (budget.attempts, budget.late) == (1, 0)


async def test_counts_that_cannot_be_written_are_written_later() -> None:
    ledger = Ledger()
    node = Node(ledger, VirtualClock())
    node.make_attempts(0)
    ledger.away = True
    with pytest.raises(StoreUnavailable):
        await node.objectives.update()
    node.make_attempts(0, 500)
    ledger.away = False
    await node.objectives.update()
    budget = node.budget()
    assert budget is not None
    assert (budget.attempts, budget.late) == (3, 1)


async def test_hours_that_are_over_are_read_once_and_old_ones_forgotten() -> None:
    ledger, clock = Ledger(), VirtualClock()
    node = Node(ledger, clock)
    node.make_attempts(500)
    await node.objectives.update()
    first = ledger.read_since[0]
    clock.advance(5 * HOUR)
    await node.objectives.update()
    await node.objectives.update()
    now = first + 90 * 24 + 5
    assert ledger.read_since == [first, now - 7, now - 2]
    clock.advance(91 * 24 * HOUR)
    await node.objectives.update()
    assert await ledger.lateness_since(0) == []


@on_virtual_time
async def test_a_stop_writes_the_last_counts() -> None:
    ledger, clock = LatenessTable(), LoopClock()
    node = Node(ledger, clock)
    node.objectives.start()
    await clock.sleep(12)
    node.make_attempts(0)
    await node.objectives.stop_within(1)
    (count,) = await ledger.lateness_since(0)
    assert (count.namespace, count.in_time, count.late) == ("mail", 1, 0)
