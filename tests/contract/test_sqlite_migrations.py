"""A file of an earlier release opens, reads the same and works on."""

from pathlib import Path

import apsw
import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import HttpCallback
from duetime.domain.keys import Epoch, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.domain.transitions import Redrive
from duetime.ports.store import Existence, PageQuery, ScanQuery, SortField
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.inspector import SqliteInspector
from duetime.stores.sqlite.schema import migrations
from duetime.testing.store_contract.steps import (
    at,
    claim,
    completion,
    create,
    ids_of,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer

ATTEMPT = Attempt(number=1, due_at=at(0), claimed_at=at(1), sent_at=at(2), error="HTTP 500")

INSERT_TIMER = """
    INSERT INTO new_timers VALUES (:namespace, :id, :shard, :timer_uuid, :created_at, :updated_at,
        :execute_at, :due_at, :delivery_id,
        '{"type":"http","url":"https://example.com/due","payload":{"a": 1}}',
        '{"max_retries":1}', '"m"', 'c', x'00ff')
"""
MARK_DEFERRED = "UPDATE live_timers SET due_at = due_at + 5000000 WHERE row_id = :row_id"
MARK_EXECUTING = """
    UPDATE live_timers SET status = 1, attempt = 1, claim_number = 1, epoch = 1, claimed_at = :now
    WHERE row_id = :row_id
"""
MARK_FINISHED = """
    INSERT INTO finished_timers
    SELECT row_id, namespace, timer_uuid, created_at, :now, execute_at, due_at, :status, 1, 1, 1,
           1, :now, :attempts, 'HTTP 500'
    FROM live_timers WHERE row_id = :row_id;
    DELETE FROM live_timers WHERE row_id = :row_id;
"""
MOVE_COUNT = """
    UPDATE counts SET count = count - 1 WHERE status = 0;
    INSERT INTO counts VALUES ('default', :status, 1);
"""


def old_timer(name: str, seconds: int) -> Timer:
    return make_timer(
        name,
        execute_at=at(seconds),
        created_at=at(-seconds),
        callback=HttpCallback(url="https://example.com/due", payload=Raw(b'{"a": 1}')),
        retry_policy=RetryPolicy(max_retries=1),
        metadata=Raw(b'"m"'),
        correlation_id="c",
        fingerprint=b"\x00\xff",
    )


def old_timers() -> list[Timer]:
    """A timer of each status, and one that waits for a retry."""
    pending = old_timer("pending", 1)
    deferred = old_timer("deferred", 2)
    executing = replace(
        old_timer("executing", 3),
        status=TimerStatus.EXECUTING,
        attempt=1,
        claim_number=1,
        epoch=Epoch(1),
        claimed_at=at(9),
    )
    finished = [
        replace(
            old_timer(status.label, 3 + status),
            status=status,
            updated_at=at(9),
            attempt=1,
            failures=1,
            claim_number=1,
            epoch=Epoch(1),
            executed_at=at(9),
            attempts=(ATTEMPT,),
            last_error="HTTP 500",
        )
        for status in TimerStatus
        if status.is_finished
    ]
    return [pending, replace(deferred, due_at=at(7)), executing, *finished]


def write_file_of_first_release(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    (number, script), *_ = migrations()
    assert number == 1
    connection.execute(script)
    connection.pragma("user_version", number)
    connection.execute("INSERT INTO namespaces VALUES ('default', 16), ('other', 4)")
    for shard in range(16):
        connection.execute("INSERT INTO shards VALUES (?, 1, 'node-1')", (shard,))
    for row_id, timer in enumerate(old_timers(), 1):
        values = {
            "row_id": row_id,
            "namespace": timer.key.namespace,
            "id": timer.key.id,
            "shard": timer.shard,
            "timer_uuid": timer.timer_uuid,
            "created_at": timer.created_at,
            "updated_at": timer.created_at,
            "execute_at": timer.execute_at,
            "due_at": timer.execute_at,
            "delivery_id": timer.delivery_id,
            "now": at(9),
            "status": int(timer.status),
            "attempts": (
                f'[{{"number":1,"due_at":{at(0)},"claimed_at":{at(1)},"sent_at":{at(2)},'
                '"error":"HTTP 500"}]'
            ),
        }
        connection.execute(INSERT_TIMER, values)
        if timer.due_at > timer.execute_at:
            connection.execute(MARK_DEFERRED, values)
        if timer.status is TimerStatus.EXECUTING:
            connection.execute(MARK_EXECUTING, values)
        if timer.status.is_finished:
            connection.execute(MARK_FINISHED, values)
        if timer.status is not TimerStatus.PENDING:
            connection.execute(MOVE_COUNT, values)
    connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_file_of_first_release(tmp_path / "timers.db")
    return tmp_path / "timers.db"


async def test_everything_reads_the_same(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    timers = old_timers()
    assert [await store.get(timer.key) for timer in timers] == timers
    counts = await store.counts("default")
    assert [counts[status] for status in TimerStatus] == [2, 1, 1, 1, 1]
    assert list(await store.namespaces()) == [Namespace("default", 16), Namespace("other", 4)]
    assert await store.scan(ScanQuery(namespace="default")) == timers
    for sort, expected in ((SortField.EXECUTE_AT, timers), (SortField.CREATED_AT, timers[::-1])):
        page = await store.page(PageQuery(namespace="default", sort=sort, descending=False))
        assert page.timers == expected
    await store.close()


async def test_how_attempts_ended_is_told_although_it_was_not_stored(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    leases = await own_shards(store)
    await store.recover(leases)
    failed = Redrive(key=TimerKey("default", "failed"), delivery_id="redriven")
    await store.redrive_if_failed([failed], at(20))
    claims = {each.id: each for each in await claim(store, leases)}
    await store.settle([completion(claims["failed"])])
    timer = await stored(store, failed.key)
    assert [attempt.outcome for attempt in timer.attempts] == [
        AttemptOutcome.FAILED,
        AttemptOutcome.COMPLETED,
    ]
    (lost,) = claims["executing"].attempts
    assert lost.outcome is AttemptOutcome.INTERRUPTED
    await store.close()


async def test_everything_works_on(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    options = NamespaceOptions(concurrency=3)
    assert await store.change_namespace("other", options) == Namespace("other", 4, options)
    (again,) = await create(store, old_timer("pending", 1))
    assert again.existence is Existence.EXISTING
    leases = await own_shards(store)
    assert list(await store.recover(leases)) == [at(3)]
    failed = Redrive(key=TimerKey("default", "failed"), delivery_id="redriven")
    assert await store.redrive_if_failed([failed], at(20)) != [None]
    claims = await claim(store, leases)
    assert ids_of(claims) == ["pending", "executing", "deferred", "failed"]
    assert all(await store.settle([completion(each, answered_at=at(30)) for each in claims]))
    assert await store.prune(finished_before=at(10), limit=10, namespace="default") == 2
    assert await store.prune(finished_before=at(31), limit=10) == 4
    await store.close()


async def test_an_audit_finds_nothing_wrong(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await own_shards(store)
    await store.recover({state.shard: state.epoch for state in await store.shards()})
    await store.close()
    inspector = SqliteInspector(path)
    await inspector.open()
    assert list((await inspector.audit(at(0))).findings) == []
    await inspector.close()
