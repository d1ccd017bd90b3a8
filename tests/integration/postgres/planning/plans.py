"""PostgreSQL's plans for statements, and checks of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import asyncpg
import msgspec
import pytest

from duetime.stores.postgres.connections import Connection

Node = dict[str, Any]

_LARGE = re.compile(r"(pending|executing|finished)_timers|audit_log")
_BY_INDEX = {"Index Scan", "Index Only Scan"}


async def explain(connection: Connection, statement: str, *values: Any) -> Node:
    """The plan for the statement, without running it."""
    return await _explain(connection, "FORMAT JSON", statement, values)


async def run_explained(connection: Connection, statement: str, *values: Any) -> Node:
    """The plan with the row counts of a run. Changes nothing."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        return await _explain(connection, "ANALYZE, BUFFERS, FORMAT JSON", statement, values)
    finally:
        await transaction.rollback()


async def _explain(connection: Connection, how: str, statement: str, values: Sequence[Any]) -> Node:
    """The plan of a prepared statement, which does not depend on the values, as in the store.
    Explaining the statement itself would plan it for these values."""
    await connection.execute(f"PREPARE explained AS {statement}")
    try:
        literals = f"({', '.join(map(_literal, values))})" if values else ""
        text = await connection.fetchval(f"EXPLAIN ({how}) EXECUTE explained {literals}")
    finally:
        await connection.execute("DEALLOCATE explained")
    plan: Node = msgspec.json.decode(text)[0]["Plan"]
    return plan


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ",".join(map(_element, value)).replace("'", "''") + "}'"
    text = f"\\x{value.hex()}" if isinstance(value, bytes) else str(value).replace("'", "''")
    return f"'{text}'"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    return msgspec.json.encode(str(value)).decode() if isinstance(value, str) else str(int(value))


async def plans_within(connection: Any, statement: str, *values: Any) -> list[Node]:
    """The plans of everything that the statement runs, also within functions. Changes nothing."""
    plans: list[Node] = []

    def remember(_connection: object, message: Any) -> None:
        _, _, text = message.message.partition("plan:\n")
        plans.append(msgspec.json.decode(text)["Plan"])

    try:
        await connection.execute("LOAD 'auto_explain'")
    except asyncpg.PostgresError as error:
        pytest.skip(f"plans within functions cannot be seen here: {error}")
    await connection.execute(
        "SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;"
        "SET auto_explain.log_format = json; SET auto_explain.log_level = notice"
    )
    connection.add_log_listener(remember)
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetch(statement, *values)
    await transaction.rollback()
    connection.remove_log_listener(remember)
    return plans


def scans_of_timers(plan: Node) -> list[Node]:
    """Every step that reads a table of timers, or the audit log."""
    return [
        node
        for node in _nodes(plan)
        if _LARGE.match(node.get("Relation Name", "")) and node["Node Type"] != "ModifyTable"
    ]


async def first_columns(connection: Connection) -> dict[str, str]:
    """The first column of each index."""
    rows = await connection.fetch(
        "SELECT index.relname::text, attname::text FROM pg_index"
        " JOIN pg_class AS index ON index.oid = indexrelid"
        " JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]"
        " WHERE index.relnamespace = current_schema()::regnamespace"
    )
    return {str(name): str(column) for name, column in rows}


def misguided(plan: Node, first_columns: Mapping[str, str]) -> list[str]:
    """The steps that read more of a table of timers than necessary: without an index, or through a
    whole index, because the condition is on its further columns only."""
    return [
        f"{node['Node Type']} on {node['Relation Name']} by {node.get('Index Name')}:"
        f" {node.get('Index Cond')}"
        for node in scans_of_timers(plan)
        if node["Node Type"] != "Tid Scan" and not _is_guided(node, first_columns)
    ]


def _is_guided(scan: Node, first_columns: Mapping[str, str]) -> bool:
    if scan["Node Type"] not in _BY_INDEX or "Index Cond" not in scan:
        return False
    return re.search(rf"\b{first_columns[scan['Index Name']]}\b", scan["Index Cond"]) is not None


def unordered(plan: Node) -> list[str]:
    """The tables of pending and finished timers that are sorted after they were read."""
    return [
        scan["Relation Name"]
        for node in _nodes(plan)
        if node["Node Type"] in ("Sort", "Incremental Sort")
        for scan in scans_of_timers(node)
        if not scan["Relation Name"].startswith("executing")
    ]


def rows_read(plan: Node) -> int:
    """The number of rows read from the tables of timers, including those that were filtered out."""
    return sum(
        round(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)))
        for node in scans_of_timers(plan)
    )


def buffers_touched(plan: Node) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
