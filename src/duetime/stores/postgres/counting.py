"""Counting timers: exactly while that is quick, by the planner's estimate beyond."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from duetime.domain.timer import TimerStatus
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.rows import condition_of, table_of

COUNTED_EXACTLY = 10_000


class Count(NamedTuple):
    timers: int
    is_estimated: bool


def _count_up_to(source: str) -> str:
    return f"(SELECT count(*) FROM (SELECT FROM {source} LIMIT {COUNTED_EXACTLY + 1}) AS counted)"


def _in_one_namespace(status: TimerStatus) -> str:
    """In an order, which leaves the planner one index: see `page_statement`."""
    return f"{table_of(status)} WHERE {condition_of(status)} ORDER BY execute_at, timer_uuid"


def _in_all_namespaces(status: TimerStatus) -> str:
    """History by namespace, because every index that knows the status begins with it."""
    if not status.is_finished:
        return table_of(status)
    each = _in_one_namespace(status).replace("$1", "namespaces.name")
    return f"namespaces CROSS JOIN LATERAL (SELECT FROM {each} OFFSET 0) AS timer"


_COUNT_IN_ONE = {status: _count_up_to(_in_one_namespace(status)) for status in TimerStatus}
_COUNT_IN_ALL = {status: _count_up_to(_in_all_namespaces(status)) for status in TimerStatus}


class _Plan(msgspec.Struct):
    rows: int = msgspec.field(name="Plan Rows")


class _Explanation(msgspec.Struct):
    plan: _Plan = msgspec.field(name="Plan")


_decode_explanation = msgspec.json.Decoder(list[_Explanation]).decode


async def count(
    connection: Connection, namespace: str | None, statuses: Iterable[TimerStatus]
) -> dict[TimerStatus, Count]:
    """How many timers have each of the statuses, in one namespace or in all."""
    wanted = list(statuses)
    values: Sequence[Any] = () if namespace is None else (namespace,)
    statement = count_statement(wanted, in_all_namespaces=namespace is None)
    row = await connection.fetchrow(statement, *values)
    assert row is not None
    result = {}
    for status, counted in zip(wanted, row, strict=True):
        if counted <= COUNTED_EXACTLY:
            result[status] = Count(counted, is_estimated=False)
        else:
            estimate = await _estimate(connection, namespace, status)
            result[status] = Count(max(estimate, counted), is_estimated=True)
    return result


def count_statement(statuses: Iterable[TimerStatus], *, in_all_namespaces: bool) -> str:
    """A column for each status. $1 is the namespace, if it is about one."""
    counts = _COUNT_IN_ALL if in_all_namespaces else _COUNT_IN_ONE
    return "SELECT " + ", ".join(counts[status] for status in statuses)


async def _estimate(connection: Connection, namespace: str | None, status: TimerStatus) -> int:
    """What the planner believes; it knows the tables' sizes and the most common values."""
    table = table_of(status)
    if namespace is not None:
        statement, values = f"SELECT FROM {table} WHERE {condition_of(status)}", [namespace]
    elif status.is_finished:
        statement, values = f"SELECT FROM {table} WHERE status = {int(status)}", []
    else:
        statement, values = f"SELECT FROM {table}", []
    explained = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *values)
    (explanation,) = _decode_explanation(explained)
    return explanation.plan.rows
