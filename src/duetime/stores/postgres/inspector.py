"""Looking into the database beside the nodes that use it: the cluster, states, and the audit."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from duetime.domain.errors import SchemaRefused, StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import (
    MAX_EXAMPLES,
    OVERDUE_TOO_LONG,
    AuditFinding,
    AuditReport,
    ClusterFacts,
)
from duetime.stores.audit_checks import (
    ABANDONED,
    DUE_TOO_EARLY,
    UNKNOWN_EPOCH,
    UNKNOWN_NAMESPACE,
    UNREADABLE,
    Check,
    finding,
)
from duetime.stores.claim_rows import unreadable_claims
from duetime.stores.postgres.claiming import CLAIM_AS_TEXT
from duetime.stores.postgres.cluster import read_view
from duetime.stores.postgres.connections import ANY_PLAN, Connection, connect
from duetime.stores.postgres.failures import DRIVER_ERRORS, store_error
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

_EXECUTING_IN_SHARD = "executing_timers AS timers JOIN shards ON shards.shard = timers.shard"

_CHECKS = (
    Check(
        "timers that are in more than one place",
        "(SELECT namespace, id FROM timers GROUP BY namespace, id HAVING count(*) > 1) AS timers",
    ),
    Check(
        UNKNOWN_NAMESPACE,
        """timers LEFT JOIN namespaces ON namespaces.name = timers.namespace
        WHERE namespaces.name IS NULL""",
    ),
    Check(
        "timers in a shard that their namespace does not have",
        """timers JOIN namespaces ON namespaces.name = timers.namespace
        WHERE timers.shard NOT BETWEEN 0 AND namespaces.num_shards - 1""",
    ),
    Check(
        "namespaces that lack shards: some of their timers never fire",
        "namespaces WHERE (SELECT count(*) FROM shards WHERE shard < num_shards) < num_shards",
        "name",
    ),
    Check(
        "shards whose fences do not follow their epoch: writes of their owner are refused",
        """(SELECT shards.shard FROM shards LEFT JOIN shard_fences AS fence
            ON fence.shard = shards.shard AND fence.epoch = shards.epoch
            GROUP BY shards.shard HAVING count(fence.epoch) <> 2) AS broken""",
        "'shard ' || shard",
    ),
    Check(DUE_TOO_EARLY, "timers WHERE status < 2 AND due_at < execute_at"),
    Check(ABANDONED, f"{_EXECUTING_IN_SHARD} WHERE timers.epoch < shards.epoch"),
    Check(UNKNOWN_EPOCH, f"{_EXECUTING_IN_SHARD} WHERE timers.epoch > shards.epoch"),
    Check(
        "timers in the history that are not finished",
        "finished_timers AS timers WHERE status NOT IN (2, 3, 4)",
    ),
    Check(
        "overdue timers of shards that no member owns: is the service running?",
        """pending_timers AS timers JOIN shards ON shards.shard = timers.shard
        LEFT JOIN members ON members.node = shards.owner
        WHERE timers.due_at < $1 AND members.node IS NULL""",
    ),
)

_COUNTS = "SELECT status, count(*) FROM timers WHERE status BETWEEN 0 AND 4 GROUP BY status"

_OVERDUE = "SELECT count(*) FROM pending_timers WHERE due_at < $1"

_LEDGER = "SELECT sum(accepted)::bigint, sum(removed)::bigint, sum(pruned)::bigint FROM ledger"

_ROWS = "SELECT count(*) FROM timers"

# Executing timers are few; a pending timer that cannot be read becomes one once it is claimed.
_EXECUTING = f"SELECT namespace || '/' || id, {CLAIM_AS_TEXT} FROM executing_timers"


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
        return ClusterFacts(view, {ShardNumber(shard): Instant(due_at) for shard, due_at in rows})

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
        async with self._snapshot() as connection:
            return await _audit(connection, now)

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


async def _audit(connection: Connection, now: Instant) -> AuditReport:
    counts = dict.fromkeys(TimerStatus, 0)
    for status, timers in await connection.fetch(_COUNTS):
        counts[TimerStatus(status)] = timers
    ledger = await connection.fetchrow(_LEDGER)
    assert ledger is not None
    accepted, removed, pruned = ledger
    findings = []
    for check in _CHECKS:
        findings += await _findings(connection, check, Instant(now - OVERDUE_TOO_LONG))
    unreadable: list[str] = []
    # Row by row, because thousands of executing timers may have large payloads.
    async for row in connection.cursor(_EXECUTING):
        unreadable += unreadable_claims([row])
    findings += finding(UNREADABLE, unreadable)
    findings += _imbalance(accepted, removed, pruned, await connection.fetchval(_ROWS))
    return AuditReport(
        accepted=accepted,
        forgotten=removed + pruned,
        counts=counts,
        overdue=await connection.fetchval(_OVERDUE, now),
        findings=findings,
    )


async def _findings(
    connection: Connection, check: Check, overdue_since: Instant
) -> list[AuditFinding]:
    values = (overdue_since,) if "$1" in check.found else ()
    examples = await connection.fetch(
        f"SELECT {check.example} FROM {check.found} LIMIT {MAX_EXAMPLES}", *values
    )
    if not examples:
        return []
    count = await connection.fetchval(f"SELECT count(*) FROM {check.found}", *values)
    return [AuditFinding(check.problem, count, [example for (example,) in examples])]


def _imbalance(accepted: int, removed: int, pruned: int, stored: int) -> list[AuditFinding]:
    missing = accepted - removed - pruned - stored
    if missing == 0:
        return []
    line = f"accepted {accepted}, but stored {stored} + removed {removed} + pruned {pruned}"
    problem = "timers that got lost" if missing > 0 else "timers that nobody accepted"
    return [AuditFinding(f"{problem}: the books do not balance", abs(missing), [line])]
