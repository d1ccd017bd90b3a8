"""What is not filed yet is found by its key, in lists and after a crash, and takes no memory."""

import shutil
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import apsw
import pytest
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import Existence, OnExisting, PageQuery, Position, ScanQuery, SortField
from duetime.stores.memory import MemoryStore
from duetime.stores.sqlite import FilingOptions, SqliteStore
from duetime.stores.sqlite.blocks import number_of
from duetime.stores.sqlite.unfiled import Unfiled
from duetime.stores.sqlite.unfiled_keys import UnfiledKeys
from duetime.stores.sqlite.unfiled_order import ListStatements
from duetime.testing.store_contract import Store
from duetime.testing.store_contract.steps import at, claim, create, ids_of, own_shards
from duetime.testing.timers import make_timer

NEVER_IDLE = FilingOptions(idle_seconds=3_600, side_slice=1, note_from=1, run_timers=150)
"""Almost nothing is filed, and lists note at once what is not."""

MANY = [make_timer(f"t{n}", execute_at=at(100 + n * 7 % 1_000)) for n in range(1_000)]


async def opened(path: Path, filing: FilingOptions = NEVER_IDLE) -> SqliteStore:
    store = SqliteStore(path, filing)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    return store


def unfiled_in(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute("SELECT sum(length(uuids)) / 16 FROM unfiled_blocks").get)
    finally:
        connection.close()


async def everything(store: Store, page_limit: int = 90) -> list[Timer]:
    """All pending timers, page by page."""
    # Both threads have done by now what the last commit left them to do.
    await store.ping()
    timers: list[Timer] = []
    after = None
    while True:
        query = ScanQuery(
            namespace="default",
            status=TimerStatus.PENDING,
            after_exclusive=after,
            limit=page_limit,
        )
        page = await store.scan(query)
        timers += page
        if len(page) < page_limit:
            return timers
        after = Position(page[-1].execute_at, page[-1].timer_uuid)


async def test_a_timer_that_is_not_filed_is_got_without_filing_it(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await create(store, *MANY)
    for timer in MANY[::100]:
        assert await store.get(timer.key) == timer
    assert await store.get(make_timer("nobody").key) is None
    assert unfiled_in(path) == 1_000
    await store.close()


async def test_a_small_create_meets_what_is_not_filed(tmp_path: Path) -> None:
    store = await opened(tmp_path / "timers.db")
    await create(store, *MANY)
    (met,) = await create(store, make_timer(MANY[5].key.id, execute_at=at(9_000)))
    assert (met.existence, met.timer) == (Existence.EXISTING, MANY[5])
    await store.close()


@pytest.mark.parametrize("execute_at", [at(9_000), at(30)], ids=["far", "near"])
async def test_a_large_create_meets_what_is_not_filed(tmp_path: Path, execute_at: Instant) -> None:
    store = await opened(tmp_path / "timers.db")
    await create(store, *MANY)
    again = [make_timer(f"new{n}", execute_at=at(9_000)) for n in range(100)]
    again[50] = make_timer(MANY[5].key.id, execute_at=execute_at)
    results = await create(store, *again)
    assert results[50].existence is Existence.EXISTING
    assert results[50].timer == MANY[5]
    assert sum(result.existence is Existence.CREATED for result in results) == 99
    assert (await store.counts())[TimerStatus.PENDING] == 1_099
    await store.close()


async def test_a_repeated_batch_leaves_what_is_not_filed_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await create(store, *MANY)
    new = [make_timer(f"new{n}", execute_at=at(9_000)) for n in range(100)]
    results = await create(store, *MANY[:400], *new, *MANY[400:])
    existing = [result for result in results if result.existence is Existence.EXISTING]
    assert [result.timer for result in existing] == MANY
    assert [result.timer for result in results[400:500]] == new
    assert unfiled_in(path) == 1_000
    assert (await store.counts())[TimerStatus.PENDING] == 1_100
    await store.close()


async def test_what_is_filed_is_no_longer_noted(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    lists = ListStatements(path, NEVER_IDLE.run_timers)

    def noted() -> tuple[int, int]:
        while lists.follow():
            pass
        orders = ("unfiled_by_execute_at", "blocks_by_created_at")
        timers, blocks = [int(lists.first(f"SELECT count(*) FROM {o}")[0]) for o in orders]
        return timers, blocks

    await create(store, *MANY[:500])
    assert noted() == (500, 16)
    await create(store, *MANY[500:])
    assert noted() == (1_000, 32)
    others = [make_timer(timer.key.id, execute_at=at(5_000)) for timer in MANY[:500]]
    await create(store, *others, on_existing=OnExisting.REPLACE)
    assert noted() == (500, 16)
    lists.close()
    await store.close()


async def disturb(store: Store, timers: Sequence[Timer]) -> None:
    """Change, cancel and remove some, and create others with the keys of those."""
    for n, timer in enumerate(timers):
        match n % 4:
            case 0:
                change = Change(updated_at=at(1), delivery_id="d", execute_at=at(500 + n))
                await store.change_if_pending(timer.key, change)
            case 1:
                await store.cancel_if_pending(timer.key, at(1))
            case 2:
                await store.remove_if_pending(timer.key)
    removed = [make_timer(timer.key.id, execute_at=at(700)) for timer in timers[2::4]]
    await create(store, *removed)


@pytest.mark.parametrize("note_from", [1, 400, 10_000])
async def test_lists_follow_what_becomes_of_unfiled_timers(tmp_path: Path, note_from: int) -> None:
    filing = replace(NEVER_IDLE, note_from=note_from)
    store, model = await opened(tmp_path / "timers.db", filing), MemoryStore()
    await model.open()
    await model.add_namespace(Namespace("default", 16))
    for start in range(0, 1_000, 250):
        for each in (store, model):
            await create(each, *MANY[start : start + 250])
        assert await everything(store) == await everything(model)
        for each in (store, model):
            await disturb(each, MANY[start + 10 : start + 30])
        assert await everything(store) == await everything(model)
    for descending in (False, True):
        page = PageQuery(
            namespace="default",
            sort=SortField.EXECUTE_AT,
            descending=descending,
            limit=70,
            offset=300,
        )
        assert await store.page(page) == await model.page(page)
        scan = ScanQuery(
            namespace="default",
            execute_from_inclusive=at(200),
            execute_until_exclusive=at(705),
            descending=descending,
            limit=500,
        )
        assert await store.scan(scan) == await model.scan(scan)
        assert await store.count_scan(scan) == await model.count_scan(scan)
    await store.close()


def test_noting_waits_for_a_pause_unless_somebody_reads_lists() -> None:
    filing = FilingOptions(idle_seconds=0.5, note_from=10, note_at_latest=1_000, listed_seconds=60)
    unfiled = Unfiled(filing)
    assert unfiled.may_wait_for_notes(perf_counter()) == 10
    unfiled.committed(put_away=100, filed=0)
    now = unfiled.put_away_at
    assert unfiled.may_wait_for_notes(now + 0.4) == 1_000
    assert unfiled.may_wait_for_notes(now + 0.6) == 10
    unfiled.listed_at = now - 59
    assert unfiled.may_wait_for_notes(now + 0.4) == 10
    unfiled.listed_at = now - 61
    assert unfiled.may_wait_for_notes(now + 0.4) == 1_000
    unfiled.keys.close()


async def test_many_unfiled_timers_are_counted(tmp_path: Path) -> None:
    store = await opened(tmp_path / "timers.db", FilingOptions(idle_seconds=3_600, note_from=1))
    for start in range(0, 11_000, 1_000):
        await create(
            store,
            *(make_timer(f"{start + n}", execute_at=at(100 + start + n)) for n in range(1_000)),
        )
    await store.ping()
    wide = ScanQuery(namespace="default", execute_from_inclusive=at(101), limit=1)
    assert await store.count_scan(wide) == 10_999
    await store.close()


async def test_lists_show_a_batch_that_follows_a_removal(tmp_path: Path) -> None:
    """Rows that are free again at the end are not used again: lists would take them for seen."""
    store = await opened(tmp_path / "timers.db")
    first, second = MANY[:100], MANY[100:200]
    await create(store, *first)
    assert len(await everything(store)) == 100
    for timer in first[-20:]:
        await store.remove_if_pending(timer.key)
    await create(store, *second)
    shown = {timer.key for timer in await everything(store)}
    assert shown == {timer.key for timer in [*first[:-20], *second]}
    await store.close()


async def test_what_a_killed_process_left_unfiled_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await create(store, *MANY)
    await store.remove_if_pending(MANY[-1].key)
    left = tmp_path / "left.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{left}{suffix}")
    await store.close()
    found = await opened(left)
    assert await found.get(MANY[7].key) == MANY[7]
    assert len(await everything(found)) == 999
    await create(found, *(make_timer(f"later{n}", execute_at=at(5_000)) for n in range(100)))
    assert len(await everything(found)) == 1_099
    leases = await own_shards(found)
    nothing = await found.claim_due(leases, now=at(0), until_inclusive=at(0), limit=10)
    assert nothing.next_due_at == min(timer.due_at for timer in MANY[:-1])
    assert len(ids_of(await claim(found, leases))) == 1_099
    await found.close()


async def test_a_claim_files_its_share_of_what_is_due_at_once(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    timers = [make_timer(f"t{n}", execute_at=at(5_000)) for n in range(3_000)]
    for start in range(0, 3_000, 1_000):
        await create(store, *timers[start : start + 1_000])
    leases = await own_shards(store)
    in_order = sorted(timers, key=lambda timer: timer.timer_uuid)
    claimed = ids_of(await claim(store, leases, limit=20))
    assert unfiled_in(path) > 2_000
    while batch := ids_of(await claim(store, leases, limit=500)):
        claimed += batch
    assert claimed == [timer.key.id for timer in in_order]
    await store.close()


async def test_unfiled_timers_take_no_memory_of_the_interpreter(tmp_path: Path) -> None:
    store = await opened(tmp_path / "timers.db", FilingOptions(idle_seconds=3_600))

    async def create_batch(number: int) -> None:
        await create(
            store,
            *(make_timer(f"{number}-{n}", execute_at=at(1_000 + n)) for n in range(1_000)),
        )

    await create_batch(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1, 51):
            await create_batch(number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert unfiled_in(tmp_path / "timers.db") == 51_000
    assert after - before < 2_000_000
    await store.close()


def test_keys_that_were_taken_back_are_not_there() -> None:
    keys = UnfiledKeys()
    uuids = [timer.timer_uuid for timer in MANY]
    first, second = uuids[:100], uuids[100:200]
    assert keys.add([(number_of(1), b"".join(first))])
    halves = b"".join(second[:50]), b"".join(second[50:])
    assert keys.add([(number_of(5), halves[0]), (number_of(7), halves[1])])
    keys.take_back(number_of(5))
    assert keys.find(second) == []
    assert sorted(keys.find(first)) == [number_of(1) + position for position in range(100)]
    assert not keys.add([(number_of(5), b"".join([*second, first[0]]))])
    assert keys.find(second) == []
    assert keys.add([(number_of(5), b"".join(second))])
    keys.close()
