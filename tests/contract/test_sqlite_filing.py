"""Timers of large batches are filed by and by; nobody can tell but by looking into the file."""

import asyncio
from pathlib import Path

import apsw
import pytest
from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.store import Existence
from duetime.stores.sqlite import FilingOptions, SqliteStore
from duetime.stores.sqlite.blocks import BLOCK_TIMERS
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.testing.store_contract.steps import at, claim, create, ids_of, own_shards
from duetime.testing.timers import make_timer

UNFILED = "SELECT coalesce(sum(length(uuids)) / 16, 0) FROM unfiled_blocks"

MANY = [make_timer(f"t{n}", execute_at=at(5_000 - n)) for n in range(1_000)]


NEVER_IDLE = FilingOptions(idle_seconds=3_600)


async def opened(path: Path, filing: FilingOptions = NEVER_IDLE) -> SqliteStore:
    store = SqliteStore(path, filing)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    return store


def unfiled_in(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute(UNFILED).get)
    finally:
        connection.close()


async def test_an_idle_store_files_everything(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path, FilingOptions())
    await create(store, *MANY)
    async with asyncio.timeout(30):
        while unfiled_in(path):
            await asyncio.to_thread(unfiled_in, path)
    assert await store.get(MANY[0].key) == MANY[0]
    assert ids_of(await claim(store, await own_shards(store))) == [
        timer.key.id for timer in reversed(MANY)
    ]
    await store.close()


async def test_a_busy_store_files_along_with_its_work(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await create(store, *MANY)
    assert unfiled_in(path) == 1_000
    await store.cancel_if_pending(MANY[0].key, at(1))
    assert unfiled_in(path) == 1_000 - 2 * BLOCK_TIMERS
    await store.close()


async def test_there_are_never_more_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path, FilingOptions(max_unfiled=250, idle_seconds=3_600))
    for start in range(0, 1_000, 100):
        await create(store, *MANY[start : start + 100])
        assert unfiled_in(path) <= 250
    assert (await store.counts())[TimerStatus.PENDING] == 1_000
    await store.close()


async def test_what_is_due_soon_is_filed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await create(store, *(make_timer(f"soon{n}", execute_at=at(30)) for n in range(500)))
    assert unfiled_in(path) == 0
    await store.close()


async def test_large_timers_are_filed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    large = HttpCallback(url="https://example.com/due", payload=Raw(b'"%b"' % (b"x" * 10_000)))
    timers = [make_timer(f"large{n}", execute_at=at(5_000), callback=large) for n in range(100)]
    await create(store, *timers)
    assert unfiled_in(path) == 0
    assert await store.get(timers[50].key) == timers[50]
    await store.close()


async def test_an_inspector_sees_what_is_not_filed(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await own_shards(store)
    await create(store, *MANY)
    await store.close()
    assert unfiled_in(path) == 1_000
    inspector = SqliteInspector(path)
    await inspector.open()
    report = await inspector.audit(at(10_000))
    assert list(report.findings) == []
    assert (report.accepted, report.overdue) == (1_000, 1_000)
    states = await inspector.states([MANY[0].key, MANY[999].key, make_timer("nobody").key])
    assert states == [[TimerStatus.PENDING], [TimerStatus.PENDING], []]
    await inspector.close()


@pytest.mark.parametrize(
    ("damage", "problem", "count"),
    [
        ("timers = substr(timers, 2)", "cannot be read", 1),
        ("timers = json_remove(timers, '$[0]')", "cannot be read", 1),
        ("instants = substr(instants, 2)", "cannot be read", 1),
        ("uuids = x''", "cannot be read", 1),
        ("first_due = first_due + 1", "fire late", 1),
        ("timers = json_set(timers, '$[1][0]', 't0')", "key that exists", 1),
        ("namespace = 'gone'", "namespace", BLOCK_TIMERS),
        ("timers = json_set(timers, '$[0][1]', 99)", "shard", 1),
    ],
)
async def test_an_inspector_notices_what_is_wrong_with_blocks(
    tmp_path: Path, damage: str, problem: str, count: int
) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await own_shards(store)
    await create(store, *MANY)
    await store.close()
    connection = apsw.Connection(str(path))
    connection.execute(f"UPDATE unfiled_blocks SET {damage} WHERE block_id = 1")
    connection.close()
    inspector = SqliteInspector(path)
    await inspector.open()
    findings = (await inspector.audit(at(0))).findings
    (finding,) = [finding for finding in findings if problem in finding.problem]
    assert finding.count == count
    await inspector.close()


async def test_a_block_that_cannot_be_read_holds_up_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    await create(store, *MANY)
    await store.close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE unfiled_blocks SET timers = '[' WHERE block_id = 1")
    connection.close()
    store = await opened(path, FilingOptions())
    leases = await own_shards(store)
    assert (await store.cancel_if_pending(MANY[500].key, at(1))) is not None
    async with asyncio.timeout(30):
        while unfiled_in(path) > BLOCK_TIMERS:
            await store.ping()
    lost = {timer.key.id for timer in MANY[:BLOCK_TIMERS]} | {MANY[500].key.id}
    assert ids_of(await claim(store, leases)) == [
        timer.key.id for timer in reversed(MANY) if timer.key.id not in lost
    ]
    await store.close()


DAMAGES = {
    "cut off": "timers = substr(timers, 1, 100)",
    "empty": "timers = '[]'",
    "one bad": "timers = json_set(timers, '$[5][1]', 'x')",
    "half a uuid": "uuids = substr(uuids, 1, 5)",
    "no uuid": "uuids = x''",
}


@pytest.mark.parametrize("reopened", [False, True], ids=["open", "reopened"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_what_was_in_a_block_that_cannot_be_read_can_be_created_again(
    tmp_path: Path, damage: str, reopened: bool
) -> None:
    """Whatever of it could still be read would never be due."""
    path = tmp_path / "timers.db"
    store = await opened(path)
    await create(store, *MANY)
    if reopened:
        await store.close()
    connection = apsw.Connection(str(path))
    connection.execute(f"UPDATE unfiled_blocks SET {damage} WHERE block_id = 1")
    connection.close()
    if reopened:
        store = await opened(path)
    (alone,) = await create(store, MANY[0])
    assert alone.existence is Existence.CREATED
    results = await create(store, *MANY)
    existing = [result.existence is Existence.EXISTING for result in results]
    assert existing == [True] + [False] * (BLOCK_TIMERS - 1) + [True] * (len(MANY) - BLOCK_TIMERS)
    assert len(await claim(store, await own_shards(store))) == len(MANY)
    await store.close()


async def test_who_files_everything_at_once_does_so_for_any_batch(tmp_path: Path) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path, FilingOptions(from_timers=10_000))
    await create(store, *MANY)
    assert unfiled_in(path) == 0
    await store.close()


async def test_a_large_batch_that_is_under_way_is_written_before_the_store_closes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "timers.db"
    store = await opened(path)
    first, second, _ = await asyncio.gather(
        create(store, *MANY[:500]), create(store, *MANY[500:]), store.close()
    )
    assert {result.existence for result in [*first, *second]} == {Existence.CREATED}
    store = await opened(path)
    assert (await store.counts())[TimerStatus.PENDING] == len(MANY)
    await store.close()
