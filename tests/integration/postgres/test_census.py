"""The kept numbers of timers: exact whoever writes, cheap to read whatever happened before."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import pytest

from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import LiveCounts, NamespaceCounts
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore, schema
from duetime.stores.postgres.connections import ANY_PLAN, LISTS_BY_INDEX, Connection, connected
from duetime.stores.postgres.inspection import census, due_counts
from duetime.telemetry.measured_store import StoreCalls
from duetime.telemetry.metrics.catalogue.store import ERRORS
from duetime.telemetry.metrics.recording import Counter, LabelValues
from duetime.testing import LoopClock
from duetime.testing.store_contract.steps import (
    at,
    brought_to,
    claim,
    completion,
    create,
    failure,
    own_shards,
    reschedule,
)
from duetime.testing.timers import make_timer
from tests.integration.postgres.held import held
from tests.integration.postgres.planning.plans import buffers_touched, explain, run_explained
from tests.polling import poll

NAMESPACES = ["default", "n1", "n2"]
BEFORE = 10
"""The first migration that this release has and the one before had not."""

_STORED = """
    SELECT namespace, status, count(*) FROM timers WHERE status IN (0, 3) GROUP BY namespace, status
"""


@pytest.fixture
def options(new_options: PostgresOptions) -> PostgresOptions:
    return new_options


@pytest.fixture
async def former_options(
    options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> PostgresOptions:
    """A database of the release before."""
    with monkeypatch.context() as patched:
        scripts = [each for each in schema.migrations() if each[0] < BEFORE]
        patched.setattr(schema, "migrations", lambda: scripts)
        await schema.migrate(options)
    return options


@pytest.fixture
async def lists(options: PostgresOptions, store: PostgresStore) -> AsyncIterator[Connection]:
    """A connection like those of lists."""
    async with connected(options, LISTS_BY_INDEX) as connection:
        yield connection


async def counted(store: PostgresStore) -> NamespaceCounts:
    counts = await store.count_by_namespace(most_names=100)
    assert counts is not None
    return counts


def by_status(counts: NamespaceCounts) -> dict[tuple[str | None, int], int]:
    """The numbers that are not 0."""
    pending, failed = TimerStatus.PENDING, TimerStatus.FAILED
    return {
        **{(name, pending): number for name, number in counts.pending.items() if number},
        **{(name, failed): number for name, number in counts.failed.items() if number},
    }


async def in_tables(database: Connection) -> dict[tuple[str, int], int]:
    return {(name, status): number for name, status, number in await database.fetch(_STORED)}


async def findings(options: PostgresOptions) -> Sequence[Any]:
    inspector = PostgresInspector(options)
    await inspector.open()
    try:
        return (await inspector.audit(at(0))).findings
    finally:
        await inspector.close()


async def write_at_random(store: PostgresStore, name: str, rounds: int) -> None:
    """Create, change, claim and settle, in several namespaces."""
    numbers = count()
    for _ in range(rounds):
        timers = [
            make_timer(f"{name}-{next(numbers)}", namespace=each, execute_at=at(-9))
            for each in NAMESPACES * 3
        ]
        await create(store, *timers)
        await store.cancel_if_pending(timers[0].key, at(1))
        await store.remove_if_pending(timers[1].key)


async def fire(store: PostgresStore, rounds: int) -> None:
    leases = await own_shards(store)
    for _ in range(rounds):
        claims = await claim(store, leases, limit=20)
        outcomes = (completion, failure, reschedule)
        await store.settle([outcomes[n % 3](each) for n, each in enumerate(claims)])


async def test_sessions_with_another_search_path_are_counted(
    options: PostgresOptions, store: PostgresStore, database: Connection
) -> None:
    """Such as those of psql, which name the schema in every statement."""
    await create(store, *(make_timer(f"t{n}", execute_at=at(-9)) for n in range(9)))
    await fire(store, 1)
    await create(store, make_timer("later"), make_timer("latest"))
    async with database.transaction():
        await database.execute("SET LOCAL search_path TO public")
        await database.execute(f"DELETE FROM {options.schema}.pending_timers WHERE id = 'later'")
        failed = f"{options.schema}.finished_timers"
        await database.execute(
            f"DELETE FROM {failed} WHERE id = (SELECT min(id) FROM {failed} WHERE status = 3)"
        )
        assert await database.fetchval("SHOW search_path") == "public"
    left = by_status(await counted(store))
    assert left == await in_tables(database)
    assert left["default", TimerStatus.FAILED] == 2


async def test_numbers_are_exact_while_many_write_and_fold(
    options: PostgresOptions,
    store: PostgresStore,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(census, "FOLD_FROM_ROWS", 3)
    monkeypatch.setattr(census, "FOLDED_AT_ONCE", 7)
    other = PostgresStore(options)
    await other.open()
    for name in NAMESPACES:
        await store.add_namespace(Namespace(name, 16))
    await counted(store)

    async def read_often(reading: PostgresStore) -> None:
        for _ in range(30):
            await counted(reading)

    await asyncio.gather(
        *(write_at_random(each, f"{n}", 15) for n, each in enumerate((store, other, store))),
        fire(store, 25),
        read_often(store),
        read_often(other),
    )

    assert by_status(await counted(other)) == await in_tables(database)
    monkeypatch.setattr(census, "FOLD_FROM_ROWS", 1)

    async def fold() -> int:
        await counted(store)
        left: int = await database.fetchval("SELECT count(*) FROM timer_count_changes")
        return left

    # Transactions of others on the same server hold folding up.
    await poll(fold, lambda left: left == 0)
    assert by_status(await counted(store)) == await in_tables(database)
    assert not [each for each in await findings(options) if "counts" in each.problem]
    await other.close()


async def test_timers_of_the_release_before_are_counted_once(
    former_options: PostgresOptions,
) -> None:
    former = PostgresStore(former_options)
    async with connected(former_options, ANY_PLAN) as database:
        await database.execute("INSERT INTO namespaces (name, num_shards) VALUES ('default', 16)")
        columns = "created_at, updated_at, execute_at, due_at, epoch, shard, attempt, failures"
        insert = f"""
            INSERT INTO pending_timers ({columns}, claim_number, timer_uuid, namespace, id,
                                        delivery_id, callback)
            SELECT 1, 1, 1, 1, 0, 0, 0, 0, 0, decode(md5(n::text), 'hex'), 'default', 'old-' || n,
                   n::text, '{{"type":"http","url":"http://localhost"}}'
            FROM generate_series($1::integer, $2::integer) AS n
        """
        await database.execute(insert, 1, 40)
        await former.open()
        # A node of the release before goes on writing, before the timers are counted and after.
        await database.execute(insert, 41, 50)
        assert (await counted(former)).pending == {"default": 50}
        await database.execute(insert, 51, 60)
        await database.execute("DELETE FROM pending_timers WHERE id < 'old-2'")
        assert by_status(await counted(former)) == await in_tables(database)
    await former.close()


async def test_nodes_count_for_the_first_time_one_at_a_time(options: PostgresOptions) -> None:
    store = PostgresStore(options)
    await store.open()
    async with connected(options, ANY_PLAN) as database:
        async with database.transaction(isolation="repeatable_read"):
            assert await database.fetchval("SELECT recount_timers()")
            assert await store.count_by_namespace(most_names=9) is None
        assert await store.count_by_namespace(most_names=9) == NamespaceCounts({}, {})
    await store.close()


async def test_a_dropped_partition_takes_its_failed_timers_along(
    options: PostgresOptions, store: PostgresStore, database: Connection
) -> None:
    leases = await own_shards(store)
    for n in range(3):
        await brought_to(store, leases, make_timer(f"f{n}"), TimerStatus.FAILED)
    await brought_to(store, leases, make_timer("done"), TimerStatus.COMPLETED)
    assert (await counted(store)).failed == {"default": 3}

    step = options.history_step
    end_of_step = Instant(at(0) // step * step + 2 * step)
    assert await store.prune(finished_before=end_of_step, limit=1) == 4

    assert by_status(await counted(store)) == await in_tables(database) == {}


async def test_rows_that_are_copied_into_the_tables_are_counted(
    options: PostgresOptions, store: PostgresStore, database: Any
) -> None:
    leases = await own_shards(store)
    await brought_to(store, leases, make_timer("f"), TimerStatus.FAILED)
    await create(store, *(make_timer(f"t{n}") for n in range(5)))
    for table in ("pending_timers", "finished_timers"):
        rows = await database.fetch(f"SELECT * FROM {table}")
        await database.execute(f"DELETE FROM {table}")
        await database.copy_records_to_table(table, records=rows)

    assert by_status(await counted(store)) == {("default", 0): 5, ("default", 3): 1}


async def test_a_dump_of_another_server_is_read_from_the_beginning(
    options: PostgresOptions,
    store: PostgresStore,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(census, "FOLD_FROM_ROWS", 2)
    await counted(store)
    await create(store, make_timer("a"))
    await database.execute(
        "UPDATE timer_count_changes SET changed_in = '9000000000000';"
        "UPDATE timer_count_state SET folded_until = '8000000000000'"
    )
    restored = PostgresStore(options)
    await restored.open()
    await create(restored, make_timer("b"))

    assert (await counted(restored)).pending == {"default": 2}
    assert await database.fetchval("SELECT count(*) FROM timer_count_changes") == 0
    await create(restored, make_timer("c"))
    assert (await counted(restored)).pending == {"default": 3}
    await restored.close()


async def test_the_audit_shows_wrong_numbers(
    options: PostgresOptions, store: PostgresStore, database: Connection
) -> None:
    await create(store, make_timer("a"), make_timer("b"))
    await counted(store)
    assert await findings(options) == []

    await database.execute("INSERT INTO timer_counts VALUES ('default', 3, 7)")

    (wrong,) = await findings(options)
    assert wrong.problem == "wrong counts"
    assert wrong.examples == ["default/failed: 7 counted, 0 stored"]
    await database.execute("UPDATE timer_count_state SET is_counted = false")
    await counted(store)
    assert await findings(options) == []


async def test_an_old_snapshot_makes_no_reading_slow(
    store: PostgresStore,
    database: Connection,
    lists: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(census, "FOLD_FROM_ROWS", 1)
    await counted(store)

    async def blocks() -> int:
        for n in range(20):
            await create(store, make_timer(f"{next(numbers)}-{n}"))
        await counted(store)
        return buffers_touched(await run_explained(lists, census.COUNTS, None))

    numbers = count()
    async with database.transaction(isolation="repeatable_read", readonly=True):
        await database.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await database.fetchval("SELECT count(*) FROM timer_count_changes")
        last = first = await blocks()
        for _ in range(20):
            last = await blocks()
    assert last <= first + 10


async def test_namespaces_that_are_gone_leave_nothing_behind(
    options: PostgresOptions,
    store: PostgresStore,
    database: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(census, "FOLD_FROM_ROWS", 1)
    gone = [Namespace(f"gone-{n}", 16, NamespaceOptions(deleting=True)) for n in range(30)]
    for each in gone:
        await store.add_namespace(each)
        await create(store, make_timer("t", namespace=each.name))
    await counted(store)
    for each in gone:
        assert await store.remove_pending(each.name, limit=9) == 1
        assert await store.remove_namespace(each.name)
    await store.add_namespace(Namespace("living", 16))
    await create(store, make_timer("t", namespace="living"))

    assert await store.count_by_namespace(most_names=10) == NamespaceCounts({"living": 1}, {})
    rows = await database.fetch("SELECT namespace, count FROM timer_counts")
    assert [tuple(row) for row in rows] == [("living", 1)]
    assert await findings(options) == []


async def test_counting_that_takes_too_long_is_no_error_of_the_store(
    options: PostgresOptions, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(store, make_timer("late", execute_at=at(-9)))
    calls = StoreCalls(LoopClock(), LabelValues(10))
    measured = calls.measured(store)
    for counting in (census, due_counts):
        monkeypatch.setattr(counting, "LIMIT_TIME", "SET LOCAL statement_timeout = '20ms'")
    for table in ("executing_timers", "pending_timers"):
        async with held(options, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE") as lock:
            assert await measured.count_live(at(0), most=9) is None
            if table == "pending_timers":
                assert await measured.count_due([at(0), at(1)], most=9) is None
            await lock.roll_back()

    live = await measured.count_live(at(0), most=9)
    assert live == LiveCounts({}, {"default": 1}, are_all=True)
    (errors,) = (each for each in calls.recorders() if each.metric is ERRORS)
    assert isinstance(errors, Counter)
    assert not [labels for labels, number in errors.samples() if number]


async def test_no_statement_reads_a_whole_table_of_timers(lists: Connection) -> None:
    counts = str(await explain(lists, census.COUNTS, None))
    executing = str(await explain(lists, census.EXECUTING, 10))
    overdue = str(await explain(lists, census.OVERDUE, at(0), 10))

    assert "pending_timers" not in counts
    assert "finished_timers" not in counts
    assert "executing_timers_key" in executing
    assert "Index Only Scan" in executing
    assert "pending_timers_due" in overdue
    assert "Index Cond" in overdue
    assert "Seq Scan" not in executing + overdue
