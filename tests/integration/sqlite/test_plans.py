"""Statements read indexes from a position on: none reads or sorts a whole table."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import Any

import apsw
import pytest

from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.timer import Claim, TimerStatus
from duetime.domain.transitions import Redrive
from duetime.ports.searching import IdQuery, OrderedQuery
from duetime.ports.security import AuditQuery
from duetime.ports.store import CreateRequest, OnExisting, PageQuery, Position, ScanQuery, SortField
from duetime.stores.sqlite import SqliteStore, changing, claiming, lists, namespaces
from duetime.stores.sqlite.connections import Transaction
from duetime.stores.sqlite.creating import NewTimer, create_timers
from duetime.stores.sqlite.observing import due_counts
from duetime.stores.sqlite.pruning import prune
from duetime.stores.sqlite.searching import searches
from duetime.stores.sqlite.security import audit_log
from duetime.stores.sqlite.settling import settle
from duetime.testing.store_contract.steps import at, brought_to, completion, own_shards, reschedule
from duetime.testing.timers import make_timer

Operation = Callable[[Transaction], object]

POSITION = Position(at(2), b"\x80" * 16)
READ_IN_PART = (
    "timers",
    "live_timers",
    "finished_timers",
    "live",
    "finished",
    "state",
    "audit_log",
)


@pytest.fixture
async def leases(store: SqliteStore) -> dict[ShardNumber, Epoch]:
    """Two timers of each status are in the store, so that every statement has work to do."""
    leases = await own_shards(store)
    for status, number in product(reversed(TimerStatus), range(2)):
        timer = make_timer(f"{status.label}-{number}", execute_at=at(number))
        await brought_to(store, leases, timer, status)
    return leases


@pytest.fixture
async def claim(store: SqliteStore, leases: dict[ShardNumber, Epoch]) -> Claim:
    return (await store.executing(leases))[0]


def steps_of(database: apsw.Connection, operation: Operation) -> list[str]:
    """The steps in the plans of all statements that the operation runs."""
    statements: dict[str, Any] = {}

    def trace(_: apsw.Cursor, statement: str, values: Any) -> bool:
        statements[statement] = values
        return True

    database.execute("BEGIN")
    database.exec_trace = trace
    operation(Transaction(database))
    database.exec_trace = None
    steps = [
        step
        for statement, values in statements.items()
        for *_, step in database.execute(f"EXPLAIN QUERY PLAN {statement}", values)
    ]
    database.execute("ROLLBACK")
    assert steps
    return steps


def scans_of(steps: list[str]) -> list[str]:
    """The steps that read large tables, or indexes on them, from end to end.

    Claims read the index of due timers from its beginning, no further than they need. Executing
    timers are few.
    """
    return [
        step
        for step in steps
        if step.split()[0] == "SCAN"
        and step.split()[1] in READ_IN_PART
        and not step.endswith(("_due", "_executing"))
    ]


def test_writes_search_indexes(
    database: apsw.Connection, leases: dict[ShardNumber, Epoch], claim: Claim
) -> None:
    key = TimerKey("default", "pending-0")
    redrive = Redrive(key=TimerKey("default", "failed-0"), delivery_id="d")
    existing = [
        NewTimer.of(CreateRequest(make_timer(f"pending-{n}", execute_at=at(3)), OnExisting.REPLACE))
        for n in range(100)
    ]
    operations: dict[str, Operation] = {
        "create": lambda t: create_timers(t, existing[:10]),
        "create many": lambda t: create_timers(t, existing),
        "cancel": lambda t: changing.cancel_if_pending(t, key, at(1)),
        "remove": lambda t: changing.remove_if_pending(t, key),
        "remove pending": lambda t: namespaces.remove_pending(t, "default", 10),
        "redrive": lambda t: changing.redrive_if_failed(t, [redrive], at(1)),
        "claim": lambda t: claiming.claim_due(t, leases, at(9), at(9), 10),
        "recover": lambda t: claiming.recover(t, leases, 10),
        "finish": lambda t: settle(t, [completion(claim)]),
        "retry": lambda t: settle(t, [reschedule(claim)]),
        "prune": lambda t: prune(t, at(99), 10, None),
        "prune one namespace": lambda t: prune(t, at(99), 10, "default"),
    }
    scans = {name: scans_of(steps_of(database, each)) for name, each in operations.items()}
    assert {name: found for name, found in scans.items() if found} == {}


def list_operations() -> Iterator[tuple[str, Operation]]:
    for status, descending in product((None, *TimerStatus), (False, True)):
        name = f"{'any' if status is None else status.label}{' backwards' if descending else ''}"
        for sort in SortField:
            page = PageQuery(
                namespace="default", status=status, sort=sort, descending=descending, offset=1
            )
            yield f"page by {sort.value}, {name}", partial(lists.read_page, query=page)
        for after, first, live_only in product((None, POSITION), (None, at(0)), (False, True)):
            query = ScanQuery(
                namespace="default",
                status=status,
                descending=descending,
                after_exclusive=after,
                execute_from_inclusive=first,
                execute_until_exclusive=None if first is None else at(9),
                live_only=live_only,
            )
            yield f"scan {name}, {after}, {first}, {live_only=}", partial(lists.scan, query=query)
            yield (
                f"count {name}, {after}, {first}, {live_only=}",
                partial(lists.count_scan, query=query),
            )


def search_operations() -> Iterator[tuple[str, Operation]]:
    for status, descending in product((None, *TimerStatus), (False, True)):
        name = f"{'any' if status is None else status.label}{' backwards' if descending else ''}"
        for sort, after in product(SortField, (None, (at(2), b"\x80" * 16))):
            query = OrderedQuery(
                namespace="default",
                sort=sort,
                status=status,
                descending=descending,
                execute_from_inclusive=at(0) if sort is SortField.EXECUTE_AT else None,
                after_exclusive=after,
            )
            what = f"{name} by {sort.value}, {after}"
            yield f"search {what}", partial(searches.scan_in_order, query=query)
            yield f"capped count {what}", partial(searches.count_in_order, query=query, most=9)
        ids = IdQuery(namespace="default", prefix="p", descending=descending)
        yield f"ids {descending=}", partial(searches.scan_ids, query=ids)
        yield f"count of ids {descending=}", partial(searches.count_ids, query=ids, most=9)


@pytest.mark.usefixtures("leases")
def test_lists_search_indexes_and_sort_only_what_is_few(database: apsw.Connection) -> None:
    """Executing timers are few, and so are timers of one `created_at`, the last term apart."""
    wrong = {}
    for name, operation in chain(list_operations(), search_operations()):
        steps = steps_of(database, operation)
        sorts = [step for step in steps if step == "USE TEMP B-TREE FOR ORDER BY"]
        allowed = 1 if "executing" in name or ("page" in name and "any" in name) else 0
        if scans_of(steps) or len(sorts) > allowed:
            wrong[name] = steps
    assert wrong == {}


@pytest.mark.usefixtures("leases")
def test_a_census_reads_no_timers_but_overdue_ones(database: apsw.Connection) -> None:
    kept = steps_of(database, partial(lists.count_by_namespace, most_names=1))
    assert not [step for step in kept if "timers" in step]
    live = [
        step
        for step in steps_of(database, partial(lists.count_live, now=at(1), most=10))
        if "timers" in step
    ]
    assert live == ["SEARCH live_timers USING INDEX live_timers_due (due_at<?)"]


@pytest.mark.usefixtures("leases")
def test_counts_of_timers_that_fall_due_read_indexes_only(database: apsw.Connection) -> None:
    bounds = [at(0), at(1), at(2)]
    everywhere = partial(due_counts.count_due, bounds=bounds, most=10)
    in_some = partial(due_counts.count_due_in, bounds=bounds, most=10, namespaces=["default"])
    for count in (everywhere, in_some):
        steps = steps_of(database, count)
        assert not scans_of(steps)
        per_span = [step for step in steps if ">?" in step and "<?" in step]
        assert per_span
        assert all("COVERING INDEX" in step for step in per_span)


def test_searches_of_the_audit_log_read_an_index_in_order(database: apsw.Connection) -> None:
    """Without a sort, each ends with the entry that fills its page."""
    wrong = {}
    values = (None, "a")
    for actor, action, target, names, first, before in product(
        values, values, values, (None, ["a"], ["a", "b"]), (None, at(1)), (None, (at(3), "i"))
    ):
        query = AuditQuery(
            actor=actor,
            action=action,
            target=target,
            namespaces=names,
            from_inclusive=first,
            until_exclusive=first,
            before_exclusive=before,
        )
        steps = steps_of(database, partial(audit_log.read_entries, query=query))
        searches = [step for step in steps if step.startswith("SEARCH audit_log ")]
        expected = "namespace" if names else "target" if target else "actor" if actor else None
        column = expected or ("action" if action else None)
        index = f"USING INDEX audit_log_{column or 'at'} "
        condition = f"({column}=? AND " if column else "("
        bounds = f"{condition}at>? AND (at,id)<(?,?))"
        is_right = all(index in step and bounds in step for step in searches)
        if not searches or not is_right or scans_of(steps) or any("B-TREE" in s for s in steps):
            wrong[str(query)] = steps
    assert wrong == {}


def test_old_entries_of_the_audit_log_are_found_by_the_index(database: apsw.Connection) -> None:
    steps = steps_of(database, partial(audit_log.forget_entries, before_exclusive=at(1), limit=5))
    assert scans_of(steps) == []
    assert any("USING COVERING INDEX audit_log_at (at<?)" in step for step in steps)
