"""Every statement goes by an index, whatever the planner believes about the tables.

A plan is kept for as long as the table's statistics do not change, so it may have been made when
the table was empty, and be used when there are millions of timers in it.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import (
    ClaimStart,
    CreateRequest,
    DuePosition,
    OnExisting,
    PageQuery,
    Position,
    ScanQuery,
    SortField,
)
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.changing import CANCEL, CHANGE, GET, REDRIVE, REMOVE, change_values
from duetime.stores.postgres.claiming import (
    BEFORE_EVERYTHING,
    EXECUTING,
    FIRST_DUE,
    MAX_MERGED_SHARDS,
    claim_statement,
    claim_values,
)
from duetime.stores.postgres.connections import (
    ANY_PLAN,
    LISTS_BY_INDEX,
    PLANS_BY_INDEX,
    PLANS_FOR_VALUES,
    Connection,
    connected,
)
from duetime.stores.postgres.creating import CREATE, CREATE_NEW, create_values, new_timer_values
from duetime.stores.postgres.history import DELETE_FROM_PARTITION
from duetime.stores.postgres.lists import (
    count_scan_statement,
    count_statement,
    count_unfinished_statement,
    page_statement,
    scan_statement,
    scan_values,
)
from duetime.stores.postgres.namespaces import REMOVE_PENDING
from duetime.stores.postgres.restoring import MOVE_FINISHED, SET_STATE, state_values
from duetime.stores.postgres.searching.searches import TIMERS_OF_IDS
from duetime.stores.postgres.settling import LEFT_BEHIND, SETTLE, settlement_values
from duetime.testing.store_contract.steps import at, claim, completion, own_shards
from duetime.testing.timers import make_timer
from tests.integration.postgres.planning.plans import (
    explain,
    first_columns,
    misguided,
    plans_within,
    rows_read,
    run_explained,
    scans_of_timers,
    unordered,
)
from tests.integration.postgres.planning.searches import COUNTS_OF_DUE, SEARCHES, SEARCHES_OF_IDS
from tests.integration.postgres.planning.table_states import (
    ALL,
    FULL,
    PARTITIONS,
    State,
    filled_and_analysed,
)
from tests.postgres.fixtures import dropped_schema
from tests.postgres.options import store_options

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 100
ANY_STATUS = (None, *TimerStatus)

SHARDS = list(range(16))
EPOCHS = [1] * 16
CLAIM = (at(1), LIMIT, at(1), at(0), b"u" * 16, [3], [at(-1)])
KEY = TimerKey("default", "t1")


def settlements(claims: int) -> list[Any]:
    """Values of a settlement of unknown timers, which are enough for a plan."""
    ids = [f"t{n}" for n in range(claims)]
    ones, texts = [1] * claims, ["x"] * claims
    return [
        *(1, ["default"] * claims, ids, ones, ones, ones, ones, [2] * claims, ones, ones, texts),
        *(ones, ones, texts, texts, ones, ones),
    ]


def _label(status: TimerStatus | None) -> str:
    return "any status" if status is None else status.label


STATEMENTS: dict[str, tuple[str, Sequence[Any]]] = {
    "get": (GET, KEY),
    "change": (
        CHANGE,
        change_values(KEY, Change(updated_at=at(1), delivery_id="d", execute_at=at(2))),
    ),
    "cancel": (CANCEL, (*KEY, at(1), None)),
    "remove": (REMOVE, KEY),
    "remove pending": (REMOVE_PENDING, ("default", LIMIT)),
    "claim from one shard": (claim_statement(1), ([1], [1], *CLAIM)),
    "claim from some shards": (claim_statement(16), (SHARDS, EPOCHS, *CLAIM)),
    "claim from many shards": (
        claim_statement(MAX_MERGED_SHARDS + 1),
        (SHARDS, EPOCHS, *CLAIM, 20),
    ),
    "first due": (FIRST_DUE, (SHARDS, at(1))),
    "executing": (EXECUTING, (SHARDS, EPOCHS)),
    "timers of ids": (TIMERS_OF_IDS, ("default", ["t1", "t2"])),
    "settle": (SETTLE, settlements(100)),
    "count of unfinished timers": (count_unfinished_statement(), ("default", LIMIT)),
    "recover": (LEFT_BEHIND, (SHARDS, EPOCHS, LIMIT, [])),
    "redrive": (REDRIVE, (["default"], ["t1"], ["d"], at(1), 1)),
    "restore pending": (SET_STATE, state_values([make_timer("t1")])),
    "restore finished": (MOVE_FINISHED, state_values([make_timer("t1")])),
}
PAGES: dict[str, tuple[str, Sequence[Any]]] = {
    f"page of {_label(status)} by {sort.value} {descending=}": (
        page_statement(status, sort, descending),
        ("default", 50, 100),
    )
    for status in ANY_STATUS
    for sort in SortField
    for descending in (False, True)
}
SCANNED: dict[str, tuple[TimerStatus, ...]] = {
    **{_label(status): ScanQuery(namespace="", status=status).statuses for status in ANY_STATUS},
    "live": ScanQuery(namespace="", live_only=True).statuses,
}
SCANS: dict[str, tuple[str, Sequence[Any]]] = {
    f"scan of {label} {descending=}": (
        scan_statement(statuses, descending),
        (*scan_values(ScanQuery(namespace="default")), LIMIT),
    )
    for label, statuses in SCANNED.items()
    for descending in (False, True)
}
COUNTS: dict[str, tuple[str, Sequence[Any]]] = {
    "count in a namespace": (count_statement(TimerStatus, in_all_namespaces=False), ["default"]),
    "count of the history": (
        count_statement([TimerStatus.COMPLETED, TimerStatus.FAILED], in_all_namespaces=True),
        [],
    ),
}
COUNTS |= {
    f"count of a scan of {label}": (
        count_scan_statement(statuses),
        scan_values(ScanQuery(namespace="default")),
    )
    for label, statuses in SCANNED.items()
}
COUNTS |= COUNTS_OF_DUE
SCANS |= SEARCHES
LISTS = PAGES | SCANS | COUNTS | SEARCHES_OF_IDS

# Statistics that autovacuum gathers would change the state.
_NO_AUTOVACUUM = """
    ALTER TABLE pending_timers SET (autovacuum_enabled = off);
    ALTER TABLE executing_timers SET (autovacuum_enabled = off)
"""


def in_states(*states: State) -> pytest.MarkDecorator:
    """Tables are brought into a state once for all tests that need it."""
    return pytest.mark.parametrize(
        "options", states, ids=lambda state: state.__name__, indirect=True, scope="module"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def options(
    request: pytest.FixtureRequest, postgres_url: str
) -> AsyncIterator[PostgresOptions]:
    with dropped_schema(postgres_url) as schema:
        options = store_options(postgres_url, schema)
        store = PostgresStore(options)
        await store.open()
        await store.add_namespace(Namespace("default", 16))
        async with connected(options, ANY_PLAN) as connection:
            await connection.execute(_NO_AUTOVACUUM)
            await request.param(store, connection)
        await store.close()
        yield options


@pytest_asyncio.fixture(loop_scope="module")
async def store(options: PostgresOptions) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(options)
    await store.open()
    yield store
    await store.close()


@pytest_asyncio.fixture(loop_scope="module")
async def database(options: PostgresOptions) -> AsyncIterator[Connection]:
    async with connected(options, ANY_PLAN) as connection:
        yield connection


@pytest_asyncio.fixture(loop_scope="module")
async def planner(options: PostgresOptions) -> AsyncIterator[Connection]:
    """A connection like those of creates, changes and the engine."""
    async with connected(options, PLANS_BY_INDEX) as connection:
        yield connection


@pytest_asyncio.fixture(loop_scope="module")
async def list_planner(options: PostgresOptions) -> AsyncIterator[Connection]:
    """A connection like those of lists."""
    async with connected(options, LISTS_BY_INDEX) as connection:
        yield connection


@in_states(*ALL)
async def test_every_statement_goes_by_an_index(
    store: PostgresStore,
    database: Connection,
    planner: Connection,
    list_planner: Connection,
) -> None:
    columns = await first_columns(database)
    problems = {
        name: problem
        for statements, connection in ((STATEMENTS, planner), (LISTS, list_planner))
        for name, (statement, values) in statements.items()
        if (problem := misguided(await explain(connection, statement, *values), columns))
    }
    assert not problems


@pytest.mark.parametrize("shards", [1, 16, 64, 100])
@in_states(*FULL)
async def test_a_claim_reads_little_more_than_it_claims(
    store: PostgresStore, database: Connection, planner: Connection, shards: int
) -> None:
    await store.add_namespace(Namespace(f"wide-{shards}", shards))
    leases = await own_shards(store, range(shards))
    start = ClaimStart(DuePosition(BEFORE_EVERYTHING, b""), {})
    values = claim_values(leases, at(10), at(10), LIMIT, start)
    if shards > MAX_MERGED_SHARDS:
        values.append(20)
    plan = await run_explained(planner, claim_statement(shards), *values)
    # Each timer is found once and taken once, and one timer ahead is read in each shard. If the
    # shards are many, each is read a little further.
    spare = 16 * 20 if shards > MAX_MERGED_SHARDS else 0
    assert 2 * LIMIT <= rows_read(plan) <= 2 * LIMIT + 3 * 16 + spare


@pytest.mark.parametrize("sort", SortField)
@in_states(*FULL)
async def test_a_page_reads_its_limit_and_offset(
    store: PostgresStore,
    database: Connection,
    list_planner: Connection,
    sort: SortField,
) -> None:
    query = PageQuery(namespace="default", limit=50, offset=100, sort=sort)
    assert len((await store.page(query)).timers) == 50
    statement = page_statement(query.status, query.sort, query.descending)
    plan = await run_explained(list_planner, statement, query.namespace, query.limit, query.offset)
    assert rows_read(plan) <= 150 * (2 + 3 * PARTITIONS) + 50


@in_states(*FULL)
async def test_a_count_of_unfinished_timers_reads_what_it_counts(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    """On a connection for quick reads, which may sort."""
    plan = await run_explained(planner, count_unfinished_statement(), "default", LIMIT)
    executing = await database.fetchval("SELECT count(*) FROM executing_timers")
    assert rows_read(plan) <= LIMIT + 1 + executing


@pytest.mark.parametrize("name", ["count of timers due", "count of timers to execute"])
@in_states(*FULL)
async def test_a_count_of_timers_due_reads_what_it_counts(
    store: PostgresStore, database: Connection, list_planner: Connection, name: str
) -> None:
    statement, values = COUNTS[name]
    plan = await run_explained(list_planner, statement, *values)
    spans, shards = 2, 16
    assert rows_read(plan) <= spans * (LIMIT + shards)


@in_states(*ALL)
async def test_a_scan_is_merged_and_never_sorted(
    store: PostgresStore, database: Connection, list_planner: Connection
) -> None:
    problems = {
        name: problem
        for name, (statement, values) in SCANS.items()
        if (problem := unordered(await explain(list_planner, statement, *values)))
    }
    assert not problems


@pytest.mark.parametrize("descending", [False, True])
@in_states(*FULL)
async def test_a_scan_reads_its_limit_wherever_it_starts(
    store: PostgresStore,
    database: Connection,
    list_planner: Connection,
    descending: bool,
) -> None:
    instants = [at(seconds) for seconds in (-1, 0, 10, 19.5, 30)]
    for instant in instants:
        query = ScanQuery(
            namespace="default",
            after_exclusive=Position(instant, b"\x80" * 16),
            descending=descending,
            limit=LIMIT,
        )
        answered = len(await store.scan(query))
        statement = scan_statement(query.statuses, descending)
        plan = await run_explained(list_planner, statement, *scan_values(query), LIMIT)
        # One more timer is read for each status in each partition.
        assert rows_read(plan) <= answered + 1 + 3 * PARTITIONS


@in_states(filled_and_analysed)
async def test_timers_of_a_small_namespace_are_pruned_by_index(
    store: PostgresStore, database: Connection, options: PostgresOptions
) -> None:
    async with connected(options, PLANS_FOR_VALUES) as planner:
        plan = await explain(planner, DELETE_FROM_PARTITION, at(0), at(1), "small", LIMIT)
    columns = await first_columns(database)
    assert scans_of_timers(plan)
    assert misguided(plan, columns) == []


@in_states(*ALL)
async def test_a_key_is_searched_for_in_the_index_of_the_keys(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    """Other indexes contain the namespace, too, and seem equally good while it is empty."""
    timers = [make_timer(f"new{n}") for n in range(100)]
    new_values = new_timer_values(timers, look=True)
    assert new_values is not None
    requests = [CreateRequest(timer, OnExisting.REPLACE) for timer in timers[:9]]
    plans = [
        *await plans_within(planner, CREATE_NEW, *new_values),
        *await plans_within(planner, CREATE, *create_values(requests)),
    ]
    for name in ("get", "change", "cancel", "remove", "redrive"):
        statement, values = STATEMENTS[name]
        plans.append(await explain(planner, statement, *values))
    scans = [scan for plan in plans for scan in scans_of_timers(plan)]
    assert scans
    assert not [
        f"{scan['Index Name']}: {scan['Index Cond']}"
        for scan in scans
        if scan["Node Type"] != "Tid Scan" and "id = " not in scan["Index Cond"]
    ]


@pytest.mark.parametrize("on_existing", OnExisting)
@in_states(*ALL)
async def test_a_create_searches_for_its_keys_by_index(
    store: PostgresStore,
    database: Connection,
    planner: Connection,
    on_existing: OnExisting,
) -> None:
    """Some timers are new, some pending, some finished."""
    names = [f"{kind}{n}" for kind in ("new", "t", "f") for n in range(1, 30)]
    requests = [CreateRequest(make_timer(name), on_existing) for name in names]
    plans = await plans_within(planner, CREATE, *create_values(requests))
    assert any(map(scans_of_timers, plans))
    columns = await first_columns(database)
    assert [problem for plan in plans for problem in misguided(plan, columns)] == []


# Last, because its claims change the state.
@in_states(*FULL)
async def test_a_settlement_reads_only_its_timers(
    store: PostgresStore, database: Connection, planner: Connection
) -> None:
    leases = await own_shards(store)
    claims = await claim(store, leases, limit=1_000)
    values = settlement_values([completion(claimed) for claimed in claims[:LIMIT]])
    plan = await run_explained(planner, SETTLE, 1, *values)
    assert rows_read(plan) == 2 * LIMIT
