"""Error budgets: counted here, kept in the store, and summed over nodes and restarts."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.lateness.objective import (
    ErrorBudget,
    InTimeOrLate,
    LatenessCount,
    parse_objective,
)
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.engine.objective_counts import ObjectiveCounts
from duetime.reports.metrics import objective_metrics
from duetime.service.known_namespaces import KnownNamespaces
from duetime.service.reporting.objectives import Objectives
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.lateness_table import LatenessTable
from duetime.telemetry.metrics.recording import Gauge, LabelValues
from duetime.testing import LoopClock, on_virtual_time
from duetime.testing.virtual_clock import VirtualClock

MS = 1_000
HOUR = 3_600.0


class Ledger(LatenessTable):
    """A ledger that can be away, and that tells which hours were summed."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.asked: list[tuple[list[str], int]] = []
        """The namespaces of each sum, and the number of its hours."""

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        if self.away:
            raise StoreUnavailable("away for a test")
        await super().add_lateness(counts)

    async def sum_lateness(
        self, since: Mapping[str, int], *, until_exclusive: int
    ) -> Mapping[str, InTimeOrLate]:
        self.asked.append((list(since), until_exclusive - min(since.values())))
        return await super().sum_lateness(since, until_exclusive=until_exclusive)


class Node:
    def __init__(
        self, ledger: LatenessTable, clock: VirtualClock | LoopClock, labels: int = 100
    ) -> None:
        self.clock = clock
        self.known = KnownNamespaces()
        shared = LabelValues(labels)
        self.counts = ObjectiveCounts(self.known, shared)
        self.believed_at: Instant | None = clock.now()
        self.objectives = Objectives(
            ledger, clock, lambda: self.known.objectives, self.counts, shared, self.last_believed
        )
        self.set_objective("mail", "99 % within 100ms over 24h")
        self.known.add(Namespace("other"))

    async def last_believed(self) -> Instant | None:
        return self.believed_at

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


async def all_counts(
    ledger: LatenessTable, clock: VirtualClock | LoopClock
) -> Mapping[str, InTimeOrLate]:
    hour = clock.now() // 3_600_000_000
    return await ledger.sum_lateness({"mail": 0}, until_exclusive=hour + 1_000_000)


def shown(node: Node) -> dict[tuple[str, str], float]:
    return {
        (gauge.metric.name, labels[0]): value
        for gauge in objective_metrics(node.objectives)
        if isinstance(gauge, Gauge)
        for labels, value in gauge.samples()
    }


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
    assert node.budget() is None
    await node.objectives.update()
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


async def test_hours_that_are_over_are_summed_anew_for_a_part_of_the_namespaces() -> None:
    ledger, clock = Ledger(), VirtualClock()
    node = Node(ledger, clock)
    for number in range(119):
        node.set_objective(f"n{number}", "99 % within 100ms over 90d")
    await node.objectives.update()
    long = [len(names) for names, hours in ledger.asked if hours > 20]
    assert long == [50, 50, 20]
    for _ in range(3):
        ledger.asked.clear()
        await node.objectives.update()
        assert len([names for names, hours in ledger.asked if hours > 20]) == 1
        assert sum(len(names) for names, hours in ledger.asked if hours <= 20) == 120
    ledger.asked.clear()
    clock.advance(HOUR)
    await node.objectives.update()
    assert [len(names) for names, hours in ledger.asked if hours > 20] == long


async def test_old_hours_are_forgotten_by_a_clock_that_is_believed() -> None:
    ledger, clock = LatenessTable(), VirtualClock()
    node = Node(ledger, clock)
    node.make_attempts(500)
    await node.objectives.update()
    for believed_at in (node.believed_at, None):
        node.believed_at = believed_at
        clock.advance(91 * 24 * HOUR)
        await node.objectives.update()
        assert await all_counts(ledger, clock) == {"mail": InTimeOrLate(0, 1)}
    node.believed_at = clock.now()
    clock.advance(HOUR)
    await node.objectives.update()
    assert await all_counts(ledger, clock) == {}


@pytest.mark.parametrize("jump_days", [1, 400])
async def test_a_clock_that_was_ahead_leaves_the_budget_as_it_was(jump_days: int) -> None:
    ledger, clock = LatenessTable(), VirtualClock()
    node, other = Node(ledger, clock), Node(ledger, VirtualClock())
    node.make_attempts(0, 0, 500)
    await node.objectives.update()
    clock.advance(HOUR)
    await node.objectives.update()
    clock.jump_wall(jump_days * 24 * HOUR)
    for _ in range(3):
        clock.advance(HOUR)
        await node.objectives.update()
    clock.jump_wall(-jump_days * 24 * HOUR)
    await node.objectives.update()
    await other.objectives.update()
    for each in (node, other):
        budget = each.budget()
        assert budget is not None
        assert (budget.attempts, budget.late) == (3, 1)


async def test_a_namespace_that_is_made_again_begins_with_its_whole_budget() -> None:
    store, clock = MemoryStore(), VirtualClock()
    node = Node(store.lateness_ledger, clock)
    mail = node.known.known("mail")
    assert mail is not None
    await store.add_namespace(mail)
    node.make_attempts(500)
    await node.objectives.update()
    clock.advance(5 * HOUR)
    await node.objectives.update()
    node.make_attempts(500)

    deleting = replace(mail.options, deleting=True)
    await store.change_namespace("mail", deleting)
    node.known.add(replace(mail, options=deleting))
    await store.remove_namespace("mail")
    node.known.forget("mail")
    await node.objectives.update()
    assert not node.counts.since_start
    assert not node.objectives.shown()
    node.known.add(mail)
    await node.objectives.update()

    assert node.budget() == ErrorBudget(attempts=0, late=0, left=1.0)


async def test_a_namespace_that_another_node_made_again_begins_anew() -> None:
    store, clock = MemoryStore(), VirtualClock()
    node = Node(store.lateness_ledger, clock)
    node.make_attempts(500)
    await node.objectives.update()
    clock.advance(5 * HOUR)
    await node.objectives.update()
    await store.add_namespace(Namespace("mail", options=NamespaceOptions(deleting=True)))
    await store.remove_namespace("mail")
    await node.objectives.update()
    assert node.budget() == ErrorBudget(attempts=0, late=0, left=1.0)


async def test_budgets_are_shown_once_they_are_known() -> None:
    node = Node(LatenessTable(), VirtualClock())
    node.set_objective("mail", "99.9 % within 100ms over 24h")
    assert shown(node) == {}
    await node.objectives.update()
    assert shown(node) == {
        ("duetime_objective_ratio", "mail"): 0.999,
        ("duetime_objective_lateness_seconds", "mail"): 0.1,
        ("duetime_objective_window_seconds", "mail"): 86_400,
        ("duetime_objective_error_budget_left_ratio", "mail"): 1,
    }


async def test_metrics_tell_a_limited_number_of_namespaces_apart() -> None:
    node = Node(LatenessTable(), VirtualClock(), labels=2)
    names = ["mail", "a", "b", "c"]
    for name in names:
        node.set_objective(name, "99 % within 100ms over 24h")
        node.make_attempts(0, 500, namespace=name)
    await node.objectives.update()
    assert {name for _, name in shown(node)} == {"mail", "a"}
    counted = {name: (each.in_time, each.late) for name, each in node.counts.since_start.items()}
    assert counted == {"mail": (1, 1), "a": (1, 1), "other": (2, 2)}
    assert [node.budget(name) for name in names] == [node.budget()] * 4


@on_virtual_time
async def test_a_stop_writes_the_last_counts() -> None:
    ledger, clock = LatenessTable(), LoopClock()
    node = Node(ledger, clock)
    node.objectives.start()
    await clock.sleep(12)
    node.make_attempts(0)
    await node.objectives.stop_within(1)
    assert await all_counts(ledger, clock) == {"mail": InTimeOrLate(1, 0)}


async def test_counting_begins_at_zero_so_that_the_first_attempts_are_an_increase() -> None:
    node = Node(LatenessTable(), VirtualClock())
    await node.objectives.update()
    counts = {name: (each.in_time, each.late) for name, each in node.counts.since_start.items()}
    assert counts == {"mail": (0, 0)}
