"""A row that cannot be read is set aside, logged once and shown by the audit; the rest fires."""

import asyncio
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from duetime.clock import SystemClock
from duetime.domain.callback import HttpCallback
from duetime.domain.errors import TimerUnreadable
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import NamespaceOptions
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive
from duetime.ports.searching import IdQuery, OrderedQuery
from duetime.ports.store import (
    CreateRequest,
    Existence,
    OnExisting,
    PageQuery,
    Position,
    ScanQuery,
    SortField,
)
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
from tests.integration.unreadable_timers import assert_logged_without_content

DAMAGES = {
    "cut off": "UPDATE timers SET callback = substr(callback, 1, 20)",
    "empty": "UPDATE timers SET callback = ''",
    "closes the claim": "UPDATE timers SET callback = ']'",
    "of a later release": """UPDATE timers SET callback = '{"type":"smoke signal"}'""",
    "wrong field": """UPDATE timers SET callback = '{"type":"https://user:secret@example.com"}'""",
    "not UTF-8": "UPDATE timers SET callback = CAST(x'7b22ff22' AS TEXT)",
    "retry policy": "UPDATE timers SET retry_policy = '{'",
    "attempts": "UPDATE live_timers SET attempts = '[{' WHERE timer_uuid = (SELECT timer_uuid"
    " FROM timers WHERE id = 't2') AND true",
}
LOST_TEXT = {
    **DAMAGES,
    "metadata": "UPDATE timers SET metadata = CAST(x'7b22ff22' AS TEXT)",
}
READABLE = ["t0", "t1", "t3", "t4"]
CALLBACK = HttpCallback(url="https://user:secret@example.com/due")


def five_timers() -> list[Timer]:
    """Created now, so that their log entries are not those of another test's timers."""
    now = SystemClock().now()
    return [
        make_timer(f"t{n}", execute_at=at(n), created_at=now, callback=CALLBACK) for n in range(5)
    ]


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
    await create(store, *five_timers())
    target = "" if "WHERE" in damage else " WHERE id = 't2'"
    database.execute(damage + target)
    leases = await own_shards(store)
    with capture_logs() as logs:
        claims = await claim(store, leases)
        assert await claim(store, leases) == []
    assert ids_of(claims) == READABLE
    assert_logged_without_content(logs)
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
    await create(store, *five_timers())
    claims = await claim(store, await own_shards(store))
    target = "" if "WHERE" in damage else " WHERE id = 't2'"
    database.execute(damage + target)
    assert await store.settle([failure(claims[0])]) == [True]
    successors = await own_shards(store)
    assert len(await store.recover(successors)) == 4
    assert ids_of(await claim(store, successors)) == READABLE[1:]
    assert await store.recover(successors) == []
    with capture_logs() as logs:
        assert sorted(ids_of(await store.executing(successors))) == READABLE[1:]
    assert logs == []


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_timers_behind_it_are_recovered(
    store: SqliteStore, database: apsw.Connection, damage: str
) -> None:
    await create(store, *five_timers())
    await claim(store, await own_shards(store))
    target = "" if "WHERE" in damage else " WHERE id = 't2'"
    database.execute(damage + target)
    successors = await own_shards(store)
    recovered = []
    while some := await store.recover(successors, limit=1):
        recovered += some
    assert set(recovered) >= {at(0), at(1), at(3), at(4)}


T2 = TimerKey("default", "t2")
T2_UUID = make_timer("t2").timer_uuid


async def damaged_t2(store: SqliteStore, database: apsw.Connection, damage: str) -> None:
    await create(store, *five_timers())
    target = "" if "WHERE" in damage else " WHERE id = 't2'"
    database.execute(damage + target)


@pytest.mark.parametrize("damage", LOST_TEXT.values(), ids=LOST_TEXT.keys())
async def test_lists_leave_it_out_and_go_on(
    store: SqliteStore, database: apsw.Connection, damage: str
) -> None:
    await damaged_t2(store, database, damage)
    query = PageQuery(namespace="default", sort=SortField.EXECUTE_AT, descending=False)
    with capture_logs() as logs:
        page = await store.page(query)
        assert await store.page(query) == page
    assert_logged_without_content(logs)
    assert [timer.key.id for timer in page.timers] == READABLE
    assert page.total == 5
    scanned: list[str] = []
    scan: ScanQuery | None = ScanQuery(namespace="default", limit=2)
    while scan is not None:
        timers = await store.scan(scan)
        scanned += [timer.key.id for timer in timers]
        scan = (
            replace(scan, after_exclusive=Position(timers[-1].execute_at, timers[-1].timer_uuid))
            if len(timers) == 2
            else None
        )
    assert scanned == READABLE
    backwards = await store.scan(ScanQuery(namespace="default", limit=3, descending=True))
    assert [timer.key.id for timer in backwards] == ["t4", "t3", "t1"]
    for descending in (False, True):
        query_3 = ScanQuery(namespace="default", limit=3, descending=descending)
        entries = await store.scan_entries(query_3)
        assert entries[:2] == (backwards[:2] if descending else page.timers[:2])
        assert entries[2:] == [Position(at(2), T2_UUID)]


@pytest.mark.parametrize("damage", LOST_TEXT.values(), ids=LOST_TEXT.keys())
async def test_it_cannot_be_got_changed_or_canceled(
    store: SqliteStore, database: apsw.Connection, damage: str
) -> None:
    await damaged_t2(store, database, damage)
    change = Change(updated_at=at(1), delivery_id="d", execute_at=at(2))
    for call in (
        store.get(T2),
        store.change_if_pending(T2, change),
        store.cancel_if_pending(T2, at(1)),
        store.remove_if_pending(T2),
    ):
        with pytest.raises(TimerUnreadable, match=r"'t2' cannot be read.*duetime audit"):
            await call
    assert (await store.counts("default"))[TimerStatus.PENDING] == 5


@pytest.mark.parametrize("damage", LOST_TEXT.values(), ids=LOST_TEXT.keys())
async def test_it_is_forgotten_with_its_namespace(
    path: Path, store: SqliteStore, database: apsw.Connection, damage: str
) -> None:
    await damaged_t2(store, database, damage)
    await store.change_namespace("default", NamespaceOptions(deleting=True))
    assert await store.remove_pending("default", limit=9) == 5
    assert await store.remove_namespace("default")
    assert await audited(path) == {}


@pytest.mark.parametrize("fill", [1, 100])
@pytest.mark.parametrize("damage", LOST_TEXT.values(), ids=LOST_TEXT.keys())
async def test_creates_of_its_key_fail_alone(
    store: SqliteStore, database: apsw.Connection, damage: str, fill: int
) -> None:
    await damaged_t2(store, database, damage)
    batch = [make_timer(id) for id in ("n1", "t1", "t2", *(f"x{n}" for n in range(fill)))]
    results = await create(store, *batch)
    assert [result.existence for result in results[:3]] == [
        Existence.CREATED,
        Existence.EXISTING,
        Existence.UNREADABLE,
    ]
    assert {result.existence for result in results[3:]} == {Existence.CREATED}
    assert results[2].timer == batch[2]
    together = await asyncio.gather(*(create(store, make_timer(id)) for id in ("m1", "t2", "m2")))
    assert [each[0].existence for each in together] == [
        Existence.CREATED,
        Existence.UNREADABLE,
        Existence.CREATED,
    ]
    assert (await store.counts("default"))[TimerStatus.PENDING] == 8 + fill


async def test_a_new_timer_replaces_it(store: SqliteStore, database: apsw.Connection) -> None:
    await damaged_t2(store, database, DAMAGES["cut off"])
    new = make_timer("t2", execute_at=at(9))
    (result,) = await store.create([CreateRequest(new, OnExisting.REPLACE)])
    assert result.existence is Existence.REPLACED
    assert await store.get(T2) == result.timer


async def test_it_is_not_redriven(store: SqliteStore, database: apsw.Connection) -> None:
    await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(3)))
    claims = await claim(store, await own_shards(store))
    assert all(await store.settle([failure(each) for each in claims]))
    database.execute(DAMAGES["cut off"] + " WHERE id = 't2'")
    redrives = [Redrive(key=TimerKey("default", f"t{n}"), delivery_id="r") for n in range(3)]
    answers = await store.redrive_if_failed(redrives, at(9))
    assert [None if timer is None else timer.key.id for timer in answers] == ["t0", "t1", None]
    counts = await store.counts("default")
    assert (counts[TimerStatus.PENDING], counts[TimerStatus.FAILED]) == (2, 1)


@pytest.mark.parametrize("damage", LOST_TEXT.values(), ids=LOST_TEXT.keys())
async def test_searches_find_it_in_its_place_and_say_that_it_is_unreadable(
    store: SqliteStore, database: apsw.Connection, damage: str
) -> None:
    await create(store, *five_timers())
    target = "" if "WHERE" in damage else " WHERE id = 't2'"
    database.execute(damage + target)
    by_id = (await store.searches.scan_ids(IdQuery(namespace="default"))).found
    by_instant = await store.searches.scan_in_order(
        OrderedQuery(namespace="default", sort=SortField.EXECUTE_AT)
    )
    for found in (by_id, by_instant):
        assert [each.timer.key.id for each in found] == ["t0", "t1", "t2", "t3", "t4"]
        assert [each.timer.key.id for each in found if each.is_readable] == READABLE
        assert found[2].timer.execute_at == at(2)
