"""Content that is hard for PostgreSQL: characters its text cannot hold, size, and damage."""

from collections.abc import Awaitable, Callable
from traceback import format_exception

import pytest
from msgspec import Raw
from structlog.testing import capture_logs

from duetime.clock import SystemClock
from duetime.domain.callback import HttpCallback
from duetime.domain.errors import TimerUnreadable
from duetime.domain.keys import TimerKey
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change, Redrive
from duetime.ports.store import (
    CreateRequest,
    Existence,
    OnExisting,
    PageQuery,
    Position,
    ScanQuery,
    SortField,
)
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.connections import Connection
from duetime.testing.store_contract.steps import (
    at,
    claim,
    completion,
    create,
    failure,
    ids_of,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer
from tests.integration.unreadable_timers import assert_logged_without_content

MEBIBYTE = 2**20


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("a NUL \0 within", "a NUL \ufffd within"),
        ("half a \ud83d pair", "half a ? pair"),
        ("both \0 \udc00 \u00e9", "both \ufffd ? \u00e9"),
        ("\U0001f600 \x01 \u2028 'quoted' \\ \"", "\U0001f600 \x01 \u2028 'quoted' \\ \""),
    ],
)
async def test_an_attempt_is_settled_whatever_the_endpoint_answers(
    store: PostgresStore, error: str, kept: str
) -> None:
    leases = await own_shards(store)
    bad, good = make_timer("bad", execute_at=at(0)), make_timer("good", execute_at=at(1))
    await create(store, bad, good)
    first, second = await claim(store, leases)
    assert await store.settle([failure(first, error=error), completion(second)]) == [True, True]
    timer = await stored(store, bad.key)
    assert (timer.status, timer.last_error) == (TimerStatus.FAILED, kept)
    (attempt,) = timer.attempts
    assert attempt.error is not None
    assert attempt.error.replace("\0", "\ufffd") == kept


async def test_a_correlation_id_does_not_keep_others_from_being_created(
    store: PostgresStore,
) -> None:
    await create(store, make_timer("odd", correlation_id="a\0b"), make_timer("other"))
    assert (await stored(store, TimerKey("default", "odd"))).correlation_id == "a\ufffdb"


@pytest.mark.parametrize("key", [TimerKey("default", "a\0b"), TimerKey("a\ud800", "b")])
async def test_a_key_that_cannot_be_stored_has_no_timer(
    store: PostgresStore, key: TimerKey
) -> None:
    assert await store.get(key) is None
    assert await store.cancel_if_pending(key, at(0)) is None
    assert await store.remove_if_pending(key) is None
    change = Change(updated_at=at(1), delivery_id="d", execute_at=at(2))
    assert await store.change_if_pending(key, change) is None


async def test_a_batch_of_large_timers_is_bounded_by_their_size(store: PostgresStore) -> None:
    payload = Raw(b'"' + b"x" * MEBIBYTE + b'"')
    callback = HttpCallback(url="https://example.com", payload=payload)
    timers = [make_timer(f"t{n:02}", execute_at=at(n), callback=callback) for n in range(20)]
    await create(store, *timers)
    leases = await own_shards(store)
    batch = await store.claim_due(leases, now=at(50), until_inclusive=at(50), limit=100)
    assert ids_of(batch.claims) == [timer.key.id for timer in timers[:16]]
    assert batch.next_due_at == at(16)
    assert all(claimed.callback == callback for claimed in batch.claims)
    assert len(await claim(store, leases)) == 4


@pytest.mark.parametrize(
    "damage",
    [
        "callback = 'damaged'",
        "callback = left(callback, 40)",
        """callback = '{"type":"https://user:secret@example.com"}'""",
        "attempts = '[{}]'",
    ],
)
async def test_a_timer_that_cannot_be_read_is_set_aside_and_the_rest_fires(
    store: PostgresStore, database: Connection, damage: str
) -> None:
    callback = HttpCallback(url="https://user:secret@example.com/due")
    # Created now, so that their log entries are not those of another test's timers.
    now = SystemClock().now()
    timers = [
        make_timer(f"t{n}", execute_at=at(n), created_at=now, callback=callback) for n in range(5)
    ]
    await create(store, *timers)
    await database.execute(f"UPDATE pending_timers SET {damage} WHERE id = 't2'")
    leases = await own_shards(store)
    readable = ["t0", "t1", "t3", "t4"]
    with capture_logs() as logs:
        assert ids_of(await claim(store, leases)) == readable
    assert_logged_without_content(logs)
    with capture_logs() as logs:
        assert sorted(ids_of(await store.executing(leases))) == readable
        assert await claim(store, leases) == []
        successors = await own_shards(store)
        assert set(await store.recover(successors)) >= {at(0), at(1), at(3), at(4)}
        assert ids_of(await claim(store, successors)) == readable
    assert logs == []
    assert len(await database.fetch("SELECT FROM executing_timers WHERE id = 't2'")) == 1


@pytest.mark.parametrize("new_timers", [1, 100])
async def test_a_timer_that_cannot_be_read_fails_alone(
    store: PostgresStore, database: Connection, new_timers: int
) -> None:
    timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(5)]
    await create(store, *timers)
    await database.execute("UPDATE pending_timers SET callback = 'damaged' WHERE id = 't2'")
    key = timers[2].key
    page = await store.page(
        PageQuery(namespace="default", sort=SortField.EXECUTE_AT, descending=False)
    )
    assert ([timer.key.id for timer in page.timers], page.total) == (["t0", "t1", "t3", "t4"], 5)
    found = await store.scan(ScanQuery(namespace="default", limit=3))
    assert [timer.key.id for timer in found] == ["t0", "t1", "t3"]
    found = await store.scan(ScanQuery(namespace="default", limit=3, descending=True))
    assert [timer.key.id for timer in found] == ["t4", "t3", "t1"]
    entries = await store.scan_entries(ScanQuery(namespace="default", limit=3))
    assert entries == [*timers[:2], Position(at(2), timers[2].timer_uuid)]
    with pytest.raises(TimerUnreadable, match=r"'t2' cannot be read.*duetime audit"):
        await store.get(key)
    batch = [make_timer(id) for id in ("n1", "t1", "t2", *(f"x{n}" for n in range(new_timers)))]
    results = await create(store, *batch)
    assert [result.existence for result in results[:3]] == [
        Existence.CREATED,
        Existence.EXISTING,
        Existence.UNREADABLE,
    ]
    assert {result.existence for result in results[3:]} == {Existence.CREATED}


async def test_writes_to_a_timer_that_cannot_be_read_are_reported_as_such(
    store: PostgresStore, database: Connection
) -> None:
    timer = make_timer("t2", execute_at=at(2))
    moved = Change(updated_at=at(1), delivery_id="d", execute_at=at(3))
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.change_if_pending(timer.key, moved),
        lambda: store.remove_if_pending(timer.key),
        lambda: store.cancel_if_pending(timer.key, at(1)),
    ]
    for write in writes:
        await create(store, timer)
        await database.execute("UPDATE pending_timers SET callback = 'damaged'")
        with pytest.raises(TimerUnreadable, match=r"'t2' cannot be read.*duetime audit"):
            await write()


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_timers_behind_ones_that_cannot_be_read_are_recovered(
    store: PostgresStore, database: Connection, limit: int
) -> None:
    await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(10)))
    await claim(store, await own_shards(store))
    await database.execute(
        "UPDATE executing_timers SET attempts = '[{}]' WHERE id NOT IN ('t4', 't7')"
    )
    successors = await own_shards(store)
    recovered = []
    while some := await store.recover(successors, limit=limit):
        assert len(some) <= limit
        recovered += some
    assert sorted(recovered) == [at(4), at(7)]
    counts = await store.counts("default")
    assert (counts[TimerStatus.PENDING], counts[TimerStatus.EXECUTING]) == (2, 8)


async def test_a_new_timer_replaces_one_that_cannot_be_read(
    store: PostgresStore, database: Connection
) -> None:
    await create(store, make_timer("t2"))
    await database.execute("UPDATE pending_timers SET callback = 'damaged'")
    new = make_timer("t2", execute_at=at(9))
    (result,) = await store.create([CreateRequest(new, OnExisting.REPLACE)])
    assert result.existence is Existence.REPLACED
    assert await store.get(new.key) == result.timer


async def test_a_failed_timer_that_cannot_be_read_is_not_redriven(
    store: PostgresStore, database: Connection
) -> None:
    await create(store, *(make_timer(f"t{n}", execute_at=at(n)) for n in range(3)))
    claims = await claim(store, await own_shards(store))
    assert all(await store.settle([failure(each) for each in claims]))
    await database.execute("UPDATE finished_timers SET callback = 'damaged' WHERE id = 't2'")
    redrives = [Redrive(key=TimerKey("default", f"t{n}"), delivery_id="r") for n in range(3)]
    answers = await store.redrive_if_failed(redrives, at(9))
    assert [None if timer is None else timer.key.id for timer in answers] == ["t0", "t1", None]
    counts = await store.counts("default")
    assert (counts[TimerStatus.PENDING], counts[TimerStatus.FAILED]) == (2, 1)
    assert await store.redrive_if_failed(redrives[2:], at(9)) == [None]
    assert (await store.counts("default"))[TimerStatus.FAILED] == 1


async def test_an_error_of_the_database_does_not_quote_the_timer(
    store: PostgresStore, database: Connection
) -> None:
    callback = HttpCallback(url="https://example.com/", headers={"X": "m4rk"})
    await database.execute("ALTER TABLE pending_timers ADD CONSTRAINT none CHECK (id <> 'refused')")
    try:
        with pytest.raises(Exception, match="violates check constraint") as raised:
            await create(store, make_timer("refused", callback=callback))
    finally:
        await database.execute("ALTER TABLE pending_timers DROP CONSTRAINT none")
    logged = "".join(format_exception(raised.value))
    assert "Failing row" not in logged
    assert "m4rk" not in logged
