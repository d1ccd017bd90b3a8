"""Searches of the audit log, and reads of keys and of a team's operations, go by an index, whatever
the planner believes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import product
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from duetime.ports.security import AuditQuery
from duetime.stores.postgres import PostgresOptions, PostgresStore
from duetime.stores.postgres.connections import (
    ANY_PLAN,
    LISTS_BY_INDEX,
    PLANS_BY_INDEX,
    Connection,
    connected,
)
from duetime.stores.postgres.namespaces import OPERATIONS_OF
from duetime.stores.postgres.security.audit_log import FORGET, search_statement
from duetime.stores.postgres.security.credentials import CHANGED, NOTE_USES
from duetime.stores.security_rows import search_of
from duetime.testing.store_contract.steps import at
from tests.integration.postgres.planning.plans import (
    Node,
    first_columns,
    misguided,
    rows_read,
    run_explained,
    scans_of_timers,
    unordered,
)
from tests.postgres.fixtures import dropped_schema
from tests.postgres.options import store_options

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENTRIES = 20_000
LIMIT = 50

# One actor, action, target and namespace has nearly everything, others have little.
_FILL_LOG = """
    INSERT INTO audit_log (id, at, actor, action, result, namespace, target)
    SELECT lpad(n::text, 36, '0'), $1::bigint + n / 10,
           CASE WHEN n % 500 = 0 THEN 'rare' ELSE 'usual' END,
           CASE WHEN n % 500 = 1 THEN 'rare' ELSE 'usual' END, 'ok',
           CASE WHEN n % 500 = 2 THEN 'rare' ELSE 'usual' END,
           CASE WHEN n % 500 = 3 THEN 'rare' ELSE 'usual' END
    FROM generate_series(1, $2::integer) AS n
"""
_FILL_CREDENTIALS = """
    INSERT INTO credentials (id, document) SELECT 'k' || n, '{}' FROM generate_series(1, 2000) AS n
"""
_FILL_OPERATIONS = """
    INSERT INTO operations (id, created_at, updated_at, version, is_running, document)
    SELECT n::text, n, n, 0, false,
           json_build_object('namespace', CASE WHEN n % 1000 = 0 THEN 'rare' ELSE 'usual' END)
    FROM generate_series(1, 5000) AS n
"""
_ANALYSE = "VACUUM ANALYZE audit_log, credentials, credentials_version, operations"


async def never_analysed(database: Connection) -> None:
    await _fill(database)


async def analysed_when_empty(database: Connection) -> None:
    await database.execute(_ANALYSE)
    await _fill(database)


async def analysed(database: Connection) -> None:
    await _fill(database)
    await database.execute(_ANALYSE)


async def _fill(database: Connection) -> None:
    await database.execute(_FILL_LOG, at(0), ENTRIES)
    await database.execute(_FILL_CREDENTIALS)
    await database.execute(_FILL_OPERATIONS)


State = Callable[[Connection], Awaitable[None]]


@pytest_asyncio.fixture(
    params=[never_analysed, analysed_when_empty, analysed], scope="module", loop_scope="module"
)
async def options(
    request: pytest.FixtureRequest, postgres_url: str
) -> AsyncIterator[PostgresOptions]:
    """A schema with a full log, in a state that the planner may meet."""
    fill: State = request.param
    with dropped_schema(postgres_url) as schema:
        options = store_options(postgres_url, schema)
        store = PostgresStore(options)
        await store.open()
        await store.close()
        async with connected(options, ANY_PLAN) as database:
            await fill(database)
        yield options


def queries() -> Iterator[AuditQuery]:
    """Every set of conditions, with usual and rare values."""
    for value, position in product(("usual", "rare"), (None, (at(0.0015), "5"))):
        for actor, action, target in product((None, value), (None, value), (None, value)):
            for namespaces, first in product((None, [value], ["usual", "rare"]), (None, at(0))):
                yield AuditQuery(
                    actor=actor,
                    action=action,
                    target=target,
                    namespaces=namespaces,
                    from_inclusive=first,
                    until_exclusive=None if first is None else at(0.0018),
                    before_exclusive=position,
                    limit=LIMIT,
                )


async def test_searches_of_the_audit_log_read_what_they_answer(options: PostgresOptions) -> None:
    """With one condition. With more, one leads, and entries that differ in others are read, too."""
    wrong: dict[str, Any] = {}
    async with connected(options, LISTS_BY_INDEX) as connection:
        columns = await first_columns(connection)
        for query in queries():
            search = search_of(query)
            plan = await run_explained(connection, *search_statement(search))
            by_namespace = search.leading == "namespace"
            has_others = len(search.equal) + (search.namespaces is not None) > 1
            # The pages of several namespaces are sorted.
            faults = misguided(plan, columns) + ([] if by_namespace else unordered(plan))
            indexes = {scan["Index Name"] for scan in scans_of_timers(plan)}
            pages = len(search.namespaces or ()) if by_namespace else 1
            is_right_index = indexes == {f"audit_log_{search.leading or 'at'}"}
            if faults or not is_right_index or (not has_others and rows_read(plan) > LIMIT * pages):
                wrong[str(query)] = (faults, indexes, rows_read(plan))
    assert wrong == {}


async def test_a_search_in_namespaces_reads_no_entry_about_others(
    options: PostgresOptions,
) -> None:
    """However many entries an actor, an action or a target has there: the time would tell."""
    in_namespace = ENTRIES // 500
    async with connected(options, LISTS_BY_INDEX) as connection:
        for condition, value in product(("actor", "action", "target"), ("usual", "rare", "none")):
            query = AuditQuery(namespaces=["rare"], limit=LIMIT)
            query = replace(query, **{condition: value})
            plan = await run_explained(connection, *search_statement(search_of(query)))
            assert rows_read(plan) <= in_namespace, query


async def test_old_entries_are_forgotten_by_the_index(options: PostgresOptions) -> None:
    async with connected(options, PLANS_BY_INDEX) as connection:
        plan = await run_explained(connection, FORGET, at(1), LIMIT)
        assert misguided(plan, await first_columns(connection)) == []
    assert rows_read(plan) <= 2 * LIMIT


async def test_no_key_is_read_if_none_changed(options: PostgresOptions) -> None:
    async with connected(options, PLANS_BY_INDEX) as connection:
        version = await connection.fetchval("SELECT version FROM credentials_version")
        plan = await run_explained(connection, CHANGED, version)
        assert _rows_of("credentials", plan) == 0
        plan = await run_explained(connection, CHANGED, version + 1)
        assert _rows_of("credentials", plan) == 2_000


async def test_uses_are_noted_by_the_ids(options: PostgresOptions) -> None:
    async with connected(options, PLANS_BY_INDEX) as connection:
        plan = await run_explained(connection, NOTE_USES, ["k7", "k8", "unknown"], [at(1)] * 3)
    assert _rows_of("credentials", plan) <= 2 * 3


@pytest.mark.parametrize(
    ("namespaces", "rows"),
    [(["rare"], 5), (["rare", "none"], 5), (["rare", "usual"], 5 + LIMIT), ([], 0)],
)
async def test_operations_of_other_namespaces_are_not_read(
    options: PostgresOptions, namespaces: list[str], rows: int
) -> None:
    async with connected(options, PLANS_BY_INDEX) as connection:
        plan = await run_explained(connection, OPERATIONS_OF, LIMIT, namespaces, False)
    # The plan has a rounded average for each namespace.
    assert _rows_of("operations", plan) <= rows + len(namespaces)


def _rows_of(table: str, plan: Node) -> int:
    """The number of rows read from the table."""
    own = 0
    if plan.get("Relation Name") == table and plan["Node Type"] != "ModifyTable":
        rows = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        own = round(plan["Actual Loops"] * rows)
    return own + sum(_rows_of(table, each) for each in plan.get("Plans", ()))
