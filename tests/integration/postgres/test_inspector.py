"""The inspector finds every kind of damage, and nothing in a healthy store."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditFinding, AuditReport
from duetime.ports.leases import ShardState
from duetime.ports.membership import NodeFacts
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.inspection import audit
from duetime.testing.store_contract.steps import (
    at,
    brought_to,
    claim,
    completion,
    create,
    own_shards,
)
from duetime.testing.timers import make_timer

NODE = "node-1"


@pytest.fixture
async def inspector(
    options: PostgresOptions, store: PostgresStore
) -> AsyncIterator[PostgresInspector]:
    inspector = PostgresInspector(options)
    await inspector.open()
    yield inspector
    await inspector.close()


async def fill(store: PostgresStore) -> None:
    """A timer of each status, named after it, two forgotten timers, and a live node."""
    await store.heartbeat(NODE, NodeFacts(host="machine"), join=True)
    leases = await own_shards(store, owner=NODE)
    for status in reversed(TimerStatus):
        await brought_to(store, leases, make_timer(status.label, execute_at=at(1)), status)
    await create(store, make_timer("removed"), make_timer("pruned", execute_at=at(-1)))
    await store.remove_if_pending(TimerKey("default", "removed"))
    (claimed,) = await claim(store, leases, until_inclusive=at(-1))
    await store.settle([completion(claimed, answered_at=at(-1))])
    assert await store.prune(finished_before=at(0), limit=5) == 1


async def test_a_healthy_store_has_no_findings(
    store: PostgresStore, inspector: PostgresInspector
) -> None:
    await fill(store)
    assert await inspector.audit(at(900)) == AuditReport(
        accepted=7,
        forgotten=2,
        counts=dict.fromkeys(TimerStatus, 1),
        overdue=1,
        findings=[],
    )
    assert (await inspector.audit(at(0))).overdue == 0


async def test_attempts_that_a_former_owner_finishes_are_no_finding(
    store: PostgresStore, inspector: PostgresInspector
) -> None:
    await fill(store)
    await store.heartbeat("node-2", NodeFacts(), join=True)
    leases = {state.shard: state.epoch for state in await store.shards()}
    await store.hand_over(NODE, leases)
    await own_shards(store, owner="node-2")
    assert list((await inspector.audit(at(900))).findings) == []
    await store.leave(NODE)
    (finding,) = (await inspector.audit(at(900))).findings
    assert list(finding.examples) == ["default/executing"]


async def test_an_empty_store_has_no_findings(inspector: PostgresInspector) -> None:
    report = await inspector.audit(at(0))
    assert (report.accepted, list(report.findings)) == (0, [])


DAMAGE = {
    "timers that are in more than one place": (
        "INSERT INTO executing_timers SELECT *, 1 FROM pending_timers",
        ["default/pending"],
    ),
    "timers of a namespace that does not exist": (
        "UPDATE pending_timers SET namespace = 'nowhere'",
        ["nowhere/pending"],
    ),
    "timers in a shard that their namespace does not have": (
        "UPDATE finished_timers SET shard = 16 WHERE id = 'failed'",
        ["default/failed"],
    ),
    "namespaces that lack shards: some of their timers never fire": (
        "DELETE FROM shards WHERE shard = 15",
        ["default"],
    ),
    "shards whose fences do not follow their epoch: writes of their owner are refused": (
        "UPDATE shard_fences SET epoch = 7 WHERE shard = 3 AND role = 1",
        ["shard 3"],
    ),
    "timers that are due before the instant that was asked for": (
        "UPDATE pending_timers SET due_at = execute_at - 1",
        ["default/pending"],
    ),
    "executing timers whose owner is gone and that its successor did not take over": (
        "UPDATE executing_timers SET epoch = 0",
        ["default/executing"],
    ),
    "executing timers of an epoch that their shard never had": (
        "UPDATE executing_timers SET epoch = 9",
        ["default/executing"],
    ),
    "executing timers that this release cannot read: they are set aside and do not fire": (
        """UPDATE executing_timers SET callback = '{"type":"pigeon"}'""",
        ["default/executing: Invalid value 'pigeon' - at `$[12].type`"],
    ),
    "timers in the history that are not finished": (
        "UPDATE finished_timers SET status = 0 WHERE id = 'completed'",
        ["default/completed"],
    ),
    "overdue timers of shards that no member owns: is the service running?": (
        "DELETE FROM members",
        ["default/pending"],
    ),
    "timers that got lost: the books do not balance": (
        "DELETE FROM pending_timers",
        ["accepted 7, but stored 4 + removed 1 + pruned 1"],
    ),
    "timers that nobody accepted: the books do not balance": (
        "UPDATE ledger SET accepted = 0",
        ["accepted 0, but stored 5 + removed 1 + pruned 1"],
    ),
}


@pytest.mark.parametrize(("problem", "damage"), DAMAGE.items())
async def test_damage_is_found(
    store: PostgresStore,
    database: Connection,
    inspector: PostgresInspector,
    problem: str,
    damage: tuple[str, list[str]],
) -> None:
    await fill(store)
    statement, examples = damage
    await database.execute(statement)
    findings = {finding.problem: finding for finding in (await inspector.audit(at(900))).findings}
    found = findings[problem]
    assert list(found.examples) == examples
    assert found == AuditFinding(problem, found.count, found.examples)


async def test_a_finding_has_only_a_few_examples(
    store: PostgresStore, database: Connection, inspector: PostgresInspector
) -> None:
    await create(store, *(make_timer(f"t{n}", execute_at=at(0)) for n in range(30)))
    (finding,) = (await inspector.audit(at(900))).findings
    assert (finding.count, len(finding.examples)) == (30, 5)


async def test_a_shard_may_be_without_an_owner_for_a_moment(
    store: PostgresStore, inspector: PostgresInspector
) -> None:
    await create(store, make_timer(execute_at=at(0)))
    report = await inspector.audit(at(60))
    assert (report.overdue, list(report.findings)) == (1, [])
    assert len((await inspector.audit(at(61))).findings) == 1


async def test_the_cluster_has_members_shards_and_due_instants(
    store: PostgresStore, inspector: PostgresInspector
) -> None:
    await store.add_namespace(Namespace("small", 1))
    view = await store.heartbeat(NODE, NodeFacts(host="machine"), join=True)
    await own_shards(store, [3], owner=NODE)
    soon = make_timer("a", namespace="small", num_shards=1, execute_at=at(3))
    later = make_timer("b", namespace="small", num_shards=1, execute_at=at(7))
    await create(store, later, soon)
    facts = await inspector.cluster()
    assert list(facts.view.members) == list(view.members)
    assert facts.view.shards[3] == ShardState(ShardNumber(3), Epoch(1), NODE)
    assert facts.first_due == {ShardNumber(0): at(3)}
    assert facts.view.store_now is not None


async def test_keys_have_the_states_of_their_timers(
    store: PostgresStore, database: Connection, inspector: PostgresInspector
) -> None:
    await fill(store)
    names = ["nobody", *(status.label for status in TimerStatus), "\0", "pending"]
    keys = [TimerKey("default", name) for name in names]
    expected = [[], *([status] for status in TimerStatus), [], [TimerStatus.PENDING]]
    assert await inspector.states(keys) == expected
    await database.execute("INSERT INTO executing_timers SELECT *, 1 FROM pending_timers")
    (states,) = await inspector.states([TimerKey("default", "pending")])
    assert sorted(states) == [TimerStatus.PENDING, TimerStatus.EXECUTING]
    assert await inspector.states([]) == []


async def test_a_closed_inspector_says_so(inspector: PostgresInspector) -> None:
    await inspector.close()
    await inspector.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await inspector.cluster()


async def test_an_audit_in_pages_finds_the_same(
    store: PostgresStore,
    database: Connection,
    inspector: PostgresInspector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await fill(store)
    await create(store, *(make_timer(f"t{n}", execute_at=at(899)) for n in range(20)))
    whole = await inspector.audit(at(900))
    monkeypatch.setattr(audit, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(audit, "PAGE_TIMERS", 3)
    assert await inspector.audit(at(900)) == whole
    await database.execute("DELETE FROM pending_timers WHERE id IN ('t3', 't4')")
    (lost,) = (await inspector.audit(at(900))).findings
    assert (lost.problem, lost.count) == ("timers that got lost: the books do not balance", 2)


async def test_an_audit_does_not_hold_one_snapshot(
    store: PostgresStore,
    database: Connection,
    inspector: PostgresInspector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each page sees what was committed before it, and nothing is found wrong with that."""
    await fill(store)
    await create(store, *(make_timer(f"t{n}", execute_at=at(899)) for n in range(20)))
    snapshots: list[str] = []

    async def watched(connection: Connection, after: str) -> Any:
        await database.execute("SELECT pg_current_xact_id()")
        snapshots.append(await connection.fetchval("SELECT pg_current_snapshot()::text"))
        await create(store, make_timer(f"new-{len(snapshots)}", execute_at=at(899)))
        await store.remove_if_pending(make_timer(f"t{len(snapshots)}").key)
        return await read_page(connection, after)

    read_page = audit.read_page
    monkeypatch.setattr(audit, "read_page", watched)
    monkeypatch.setattr(audit, "PAGE_TIMERS", 3)
    for seconds in (audit.SNAPSHOT_SECONDS, 0.0):
        monkeypatch.setattr(audit, "SNAPSHOT_SECONDS", seconds)
        snapshots.clear()
        assert list((await inspector.audit(at(900))).findings) == []
        assert len(set(snapshots)) == len(snapshots) >= 5
