"""A row that cannot be read is set aside, logged once and shown by the audit; the rest fires."""

from pathlib import Path

import apsw
import pytest
from structlog.testing import capture_logs

from duetime.domain.timer import TimerStatus
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.testing.store_contract.steps import (
    at,
    claim,
    completion,
    create,
    failure,
    ids_of,
    own_shards,
)
from duetime.testing.timers import make_timer

DAMAGES = {
    "cut off": "UPDATE timers SET callback = substr(callback, 1, 20)",
    "empty": "UPDATE timers SET callback = ''",
    "closes the claim": "UPDATE timers SET callback = ']'",
    "of a later release": """UPDATE timers SET callback = '{"type":"smoke signal"}'""",
    "not UTF-8": "UPDATE timers SET callback = CAST(x'7b22ff22' AS TEXT)",
    "retry policy": "UPDATE timers SET retry_policy = '{'",
    "attempts": "UPDATE live_timers SET attempts = '[{' WHERE timer_uuid = (SELECT timer_uuid"
    " FROM timers WHERE id = 't2') AND true",
}
READABLE = ["t0", "t1", "t3", "t4"]


async def audited(path: Path) -> dict[str, tuple[int, str]]:
    inspector = SqliteInspector(path)
    await inspector.open()
    try:
        findings = (await inspector.audit(at(0))).findings
    finally:
        await inspector.close()
    return {each.problem: (each.count, str(each.examples[0])) for each in findings}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_the_other_timers_fire(
    path: Path, store: SqliteStore, database: apsw.Connection, damage: str
) -> None:
    await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(5)))
    target = "" if "WHERE" in damage else " WHERE id = 't2'"
    database.execute(damage + target)
    leases = await own_shards(store)
    with capture_logs() as logs:
        claims = await claim(store, leases)
        assert await claim(store, leases) == []
    assert ids_of(claims) == READABLE
    assert [line["event"] for line in logs] == ["claim.unreadable"]
    assert all(await store.settle([completion(each) for each in claims]))
    counts = await store.counts("default")
    assert (counts[TimerStatus.EXECUTING], counts[TimerStatus.COMPLETED]) == (1, 4)
    ((problem, (count, example)),) = (await audited(path)).items()
    assert problem.startswith("executing timers that this release cannot read")
    assert count == 1
    assert example.startswith("default/t2: ")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_the_next_owner_recovers_and_fires_the_others(
    store: SqliteStore, database: apsw.Connection, damage: str
) -> None:
    await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(5)))
    claims = await claim(store, await own_shards(store))
    target = "" if "WHERE" in damage else " WHERE id = 't2'"
    database.execute(damage + target)
    assert await store.settle([failure(claims[0])]) == [True]
    successors = await own_shards(store)
    assert len(await store.recover(successors)) == 4
    assert ids_of(await claim(store, successors)) == READABLE[1:]
    assert sorted(ids_of(await store.executing(successors))) == READABLE[1:]
