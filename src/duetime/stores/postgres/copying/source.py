"""Reading everything in a schema, part by part, in the order of the parts' keys."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from duetime.stores.copying.ports import (
    DEFAULT_BATCH_ROWS,
    MAX_BATCH_BYTES,
    Batch,
    Position,
    parts_behind,
)
from duetime.stores.copying.tables import COLUMNS_OF, SIGNED_IN, Row, Table, identity_of
from duetime.stores.postgres.connections import connect
from duetime.stores.postgres.failures import DRIVER_ERRORS, store_error
from duetime.stores.postgres.options import PostgresOptions
from duetime.stores.postgres.tables import (
    EXECUTING_AS_TIMER,
    FINISHED_AS_TIMER,
    PENDING_AS_TIMER,
)

COPY_TIMEOUT_SECONDS = 86_400.0
"""Time for one statement. Making an index takes a second for every million timers or so."""

FOR_COPYING: Mapping[str, str] = {
    # The other side of the copy may take its time.
    "idle_in_transaction_session_timeout": "0",
    # All rows are read, and not only the first ones.
    "cursor_tuple_fraction": "1.0",
}

_FIRST_ROWS = 50
"""Rows that are fetched before the size of rows is known."""

_COUNT = "SELECT count(*) FROM timers"


class _Part(NamedTuple):
    table: Table
    name: str
    keys: Sequence[str]
    columns: str
    condition: str = "true"


def _plain_part(table: Table, *keys: str, condition: str = "true") -> _Part:
    columns = [
        f"{column}::integer" if column == "is_running" else column for column in COLUMNS_OF[table]
    ]
    return _Part(table, table, keys, ", ".join(columns), condition)


_PARTS = (
    _plain_part(Table.NAMESPACES, "name"),
    _plain_part(Table.SHARDS, "shard"),
    _plain_part(Table.CLOCK, "believed_at"),
    _plain_part(Table.CREDENTIALS, "id", condition=f"id NOT LIKE '{SIGNED_IN}'"),
    _plain_part(Table.OPERATIONS, "id"),
    _plain_part(Table.AUDIT_LOG, "id"),
    _plain_part(Table.LATENESS_COUNTS, "namespace", "hour"),
    _plain_part(Table.PAUSED_ENDPOINTS, "endpoint"),
    _Part(Table.TIMERS, "pending_timers", ("id", "namespace"), PENDING_AS_TIMER),
    _Part(Table.TIMERS, "executing_timers", ("namespace", "id"), EXECUTING_AS_TIMER),
    _Part(Table.TIMERS, "finished_timers", ("id", "namespace"), FINISHED_AS_TIMER),
)


class PostgresSource:
    """Implements the source of a copy, in one transaction that sees one state."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._timers: int | None = None

    async def identity(self) -> str:
        fetch = self._connection.fetch
        shards = await fetch("SELECT shard, epoch FROM shards ORDER BY shard")
        namespaces = await fetch("SELECT name, num_shards, options FROM namespaces ORDER BY name")
        timers = await self.count_timers()
        return identity_of("postgres", _tuples(namespaces), _tuples(shards), timers)

    async def count_timers(self) -> int:
        if self._timers is None:
            self._timers = int(await self._connection.fetchval(_COUNT))
        return self._timers

    async def batches(
        self, after: Position | None, *, rows: int = DEFAULT_BATCH_ROWS, in_order: bool = True
    ) -> AsyncIterator[Batch]:
        for part, key in parts_behind(_PARTS, after):
            async for found, last in self._read(part, key, rows, in_order=in_order):
                yield Batch(part.table, found, Position(part.name, last))

    async def _read(
        self, part: _Part, after: Sequence[Any], max_rows: int, *, in_order: bool
    ) -> AsyncIterator[tuple[list[Row], list[Any]]]:
        """Batches of rows, each with the key of the last row."""
        keys = ", ".join(part.keys)
        places = ", ".join(f"${number}" for number in range(1, len(part.keys) + 1))
        behind = f"AND ({keys}) > ({places})" if after else ""
        order = f"ORDER BY {keys}" if in_order else ""
        statement = (
            f"SELECT {part.columns} FROM {part.name} WHERE {part.condition} {behind} {order}"
        )
        names = COLUMNS_OF[part.table]
        key_places = [names.index(key) for key in part.keys]
        cursor = await self._connection.cursor(statement, *after)
        fetched = _FIRST_ROWS
        found: list[Row] = []
        size = 0
        while some := _tuples(await cursor.fetch(min(fetched, max_rows - len(found)))):
            found += some
            some_bytes = sum(len(value) for row in some for value in row if isinstance(value, str))
            size += some_bytes
            fetched = max(1, len(some) * MAX_BATCH_BYTES // (some_bytes * 4 + 1))
            if len(found) >= max_rows or size >= MAX_BATCH_BYTES:
                yield found, [found[-1][place] for place in key_places]
                found, size = [], 0
        if found:
            yield found, [found[-1][place] for place in key_places]


@asynccontextmanager
async def opened_source(options: PostgresOptions) -> AsyncIterator[PostgresSource]:
    """The content of the schema in one state, whatever is written meanwhile."""
    connection = await connect(options, FOR_COPYING, statement_timeout_seconds=COPY_TIMEOUT_SECONDS)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            yield PostgresSource(connection)
    except DRIVER_ERRORS as error:
        raise store_error(error, options) from error
    finally:
        connection.terminate()


def _tuples(rows: Sequence[Any]) -> list[Row]:
    return [tuple(row) for row in rows]
