"""Looking into the database beside the nodes that use it: the cluster, states, and the audit."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from duetime.domain.errors import SchemaRefused, StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditReport, ClusterFacts
from duetime.stores.postgres.cluster import read_view
from duetime.stores.postgres.connections import ANY_PLAN, Connection, connect
from duetime.stores.postgres.copying.unfinished import refuse_half_copied
from duetime.stores.postgres.failures import DRIVER_ERRORS, store_error
from duetime.stores.postgres.inspection.audit import audit
from duetime.stores.postgres.inspection.snapshots import oldest_snapshot
from duetime.stores.postgres.options import PostgresOptions
from duetime.stores.postgres.schema import check_server, newest_version, stored_version
from duetime.stores.postgres.tables import is_storable

_AUDIT_TIMEOUT_SECONDS = 3_600.0

# One index probe per shard, whatever the planner thinks of the table.
_FIRST_DUE = """
    SELECT shards.shard, first.due_at
    FROM shards CROSS JOIN LATERAL (
        SELECT due_at FROM pending_timers WHERE pending_timers.shard = shards.shard
        ORDER BY due_at, timer_uuid LIMIT 1
    ) AS first
"""

_STATES = """
    SELECT asked.position, timer.status
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (namespace, id, position)
    CROSS JOIN LATERAL (
        SELECT status FROM timers
        WHERE timers.namespace = asked.namespace AND timers.id = asked.id OFFSET 0
    ) AS timer
"""


class PostgresInspector:
    """Implements the inspector port, on a read-only connection."""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._connection: Any = None

    async def open(self) -> None:
        connection = await connect(
            self._options,
            {**ANY_PLAN, "default_transaction_read_only": "on"},
            statement_timeout_seconds=_AUDIT_TIMEOUT_SECONDS,
        )
        try:
            await check_server(connection, self._options)
            _require_newest(await stored_version(connection, self._options), self._options)
            await refuse_half_copied(connection, self._options)
        except DRIVER_ERRORS as error:
            connection.terminate()
            raise store_error(error, self._options) from error
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.terminate()

    async def cluster(self) -> ClusterFacts:
        async with self._snapshot() as connection:
            view = await read_view(connection)
            rows = await connection.fetch(_FIRST_DUE)
            held = await oldest_snapshot(connection)
        first_due = {ShardNumber(shard): Instant(due_at) for shard, due_at in rows}
        return ClusterFacts(view, first_due, held)

    async def states(self, keys: Sequence[TimerKey]) -> list[list[TimerStatus]]:
        states: list[list[TimerStatus]] = [[] for _ in keys]
        indexes = [n for n, key in enumerate(keys) if is_storable(key)]
        async with self._snapshot() as connection:
            rows = await connection.fetch(
                _STATES, [keys[n].namespace for n in indexes], [keys[n].id for n in indexes]
            )
        for position, status in rows:
            states[indexes[position - 1]].append(TimerStatus(status))
        return states

    async def audit(self, now: Instant) -> AuditReport:
        if self._connection is None:
            raise StoreUnavailable("the store is closed")
        try:
            return await audit(self._connection, now)
        except DRIVER_ERRORS as error:
            raise store_error(error, self._options) from error

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Connection]:
        """A transaction whose reads are all of one moment."""
        if self._connection is None:
            raise StoreUnavailable("the store is closed")
        try:
            async with self._connection.transaction(isolation="repeatable_read", readonly=True):
                yield self._connection
        except DRIVER_ERRORS as error:
            raise store_error(error, self._options) from error


def _require_newest(stored: int | None, options: PostgresOptions) -> None:
    newest = newest_version()
    if stored is None:
        raise StoreUnavailable(
            f"PostgreSQL ({options.place}) has no timers in the schema {options.schema!r}:"
            " start the service or run duetime migrate first"
        )
    if stored != newest:
        raise SchemaRefused(
            f"PostgreSQL ({options.place}) has schema version {stored}, but this release of"
            f" Duetime reads version {newest}: "
            + ("use a newer release" if stored > newest else "run duetime migrate first")
        )
