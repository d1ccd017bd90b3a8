"""Looking into the file beside a running service, without its lock: states and the audit."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec

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
from duetime.ports.membership import ClusterView
from duetime.stores.audit_checks import (
    ABANDONED,
    DUE_TOO_EARLY,
    UNKNOWN_EPOCH,
    UNKNOWN_NAMESPACE,
    UNREADABLE,
    UNREADABLE_CREDENTIALS,
    Check,
    finding,
    miscounts,
)
from duetime.stores.claim_rows import unreadable_claims
from duetime.stores.security_rows import unreadable_credentials
from duetime.stores.sqlite.claiming import CLAIM_AS_TEXT
from duetime.stores.sqlite.connections import (
    Statements,
    not_opened,
    open_read_only,
    read_in_one_view,
    store_error,
)
from duetime.stores.sqlite.copying.unfinished import refuse_half_copied
from duetime.stores.sqlite.leasing import read_shards
from duetime.stores.sqlite.schema import migrations, schema_version
from duetime.stores.sqlite.security.credentials import ALL_CREDENTIALS
from duetime.stores.sqlite.tables import FINISHED_STATE, FINISHED_TABLE, IS_OF_TIMER, LIVE_STATE

_CACHE_KIB = 65_536

Result = TypeVar("Result")


_LIVE = "live_timers AS live JOIN timers ON timers.row_id = live.row_id"
_FINISHED = "finished_timers AS finished JOIN timers ON timers.row_id = finished.row_id"
_WITH_STATES = f"""(
    SELECT namespace, id, (SELECT count(*) FROM live_timers WHERE row_id = timers.row_id)
        + (SELECT count(*) FROM {FINISHED_TABLE} WHERE {IS_OF_TIMER}) AS states
    FROM timers) AS timers"""
_SAME_TIMER = """{state}.namespace = timers.namespace AND {state}.timer_uuid = timers.timer_uuid
    AND {state}.created_at = timers.created_at"""

_CHECKS = (
    Check(
        "timers without a state: they never fire",
        f"{_WITH_STATES} WHERE states = 0",
    ),
    Check("timers in more than one state", f"{_WITH_STATES} WHERE states > 1"),
    Check(
        "states whose timer is gone",
        """(SELECT row_id FROM live_timers UNION ALL SELECT row_id FROM finished_timers) AS state
        LEFT JOIN timers ON timers.row_id = state.row_id WHERE timers.row_id IS NULL""",
        "'row ' || state.row_id",
    ),
    Check(
        "live timers with the state of another timer",
        f"""{_LIVE} WHERE NOT ({_SAME_TIMER.format(state="live")}
            AND live.shard = timers.shard)""",
    ),
    Check(
        "finished timers with the state of another timer",
        f"{_FINISHED} WHERE NOT ({_SAME_TIMER.format(state='finished')})",
    ),
    Check(
        UNKNOWN_NAMESPACE,
        """timers LEFT JOIN namespaces ON namespaces.name = timers.namespace
        WHERE namespaces.name IS NULL""",
    ),
    Check(
        "timers of a shard that does not exist: they never fire",
        f"{_LIVE} LEFT JOIN shards ON shards.shard = live.shard WHERE shards.epoch IS NULL",
    ),
    Check(
        DUE_TOO_EARLY,
        f"{_LIVE} WHERE live.due_at < live.execute_at",
    ),
    Check(
        ABANDONED,
        f"""{_LIVE} JOIN shards ON shards.shard = live.shard
        WHERE live.status = 1 AND live.epoch < shards.epoch""",
    ),
    Check(
        UNKNOWN_EPOCH,
        f"""{_LIVE} JOIN shards ON shards.shard = live.shard
        WHERE live.status = 1 AND live.epoch > shards.epoch""",
    ),
    Check(
        "executing timers that were never claimed",
        f"{_LIVE} WHERE live.status = 1 AND live.claimed_at IS NULL",
    ),
    Check(
        "overdue timers of shards that nobody owns: is the service running?",
        f"""{_LIVE} JOIN shards ON shards.shard = live.shard
        WHERE live.status = 0 AND live.due_at < ?1 AND shards.owner IS NULL""",
    ),
)

_ROWS_BY_STATUS = """
    SELECT namespace, status, count(*) FROM live_timers GROUP BY namespace, status
    UNION ALL
    SELECT namespace, status, count(*) FROM finished_timers GROUP BY namespace, status
"""

_ACCEPTED = "SELECT count(*) FROM timers"

_OVERDUE = "SELECT count(*) FROM live_timers WHERE status = 0 AND due_at < ?1"

_FIRST_DUE = "SELECT shard, min(due_at) FROM live_timers WHERE status = 0 GROUP BY shard"

# Executing timers are few; a pending timer that cannot be read becomes one once it is claimed.
_EXECUTING = f"""
    SELECT timers.namespace || '/' || timers.id, {CLAIM_AS_TEXT} FROM {_LIVE}
    WHERE live.status = 1
"""

_KEYS = """
    json_each(?1) AS batch CROSS JOIN timers INDEXED BY timers_key
        ON timers.namespace = batch.value ->> 0 AND timers.id = batch.value ->> 1"""

# Positions of the keys, once for each state that their timer has.
_STATES = f"""
    SELECT batch.key, state.status FROM {_KEYS} CROSS JOIN {LIVE_STATE}
    UNION ALL
    SELECT batch.key, state.status FROM {_KEYS} CROSS JOIN {FINISHED_STATE}
"""


class SqliteInspector:
    """Implements the inspector port. One process serves the file, so there are no members.

    The file does not record how many timers were ever accepted: those it holds count as accepted.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: apsw.Connection | None = None

    async def open(self) -> None:
        self._connection = await asyncio.to_thread(_open_to_inspect, self._path)

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await asyncio.to_thread(connection.close)

    async def cluster(self) -> ClusterFacts:
        return await self._read(_cluster)

    async def audit(self, now: Instant) -> AuditReport:
        return await self._read(lambda statements: _audit(statements, now))

    async def states(self, keys: Sequence[TimerKey]) -> list[list[TimerStatus]]:
        return await self._read(lambda statements: _states(statements, keys))

    async def _read(self, read: Callable[[Statements], Result]) -> Result:
        if self._connection is None:
            raise StoreUnavailable("the store is closed")
        reading = asyncio.ensure_future(asyncio.to_thread(_in_one_view, self._connection, read))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            # Without this the thread would read to the end, and the caller would wait for it.
            self._connection.interrupt()
            await asyncio.gather(reading, return_exceptions=True)
            raise


def require_newest(path: Path) -> None:
    """Raises `StoreUnavailable` if the file is not there, or is not of this release."""
    if not path.is_file():
        raise StoreUnavailable(f"cannot open {path}: there is no such file")
    version, known = schema_version(path), migrations()[-1][0]
    if version != known:
        advice = "use a newer release" if version > known else "run duetime migrate first"
        raise SchemaRefused(
            f"{path} has schema version {version}, but this release of Duetime reads"
            f" version {known}: {advice}"
        )


def _open_to_inspect(path: Path) -> apsw.Connection:
    require_newest(path)
    try:
        connection = open_read_only(path)
        connection.pragma("cache_size", -_CACHE_KIB)
        refuse_half_copied(path, connection)
    except apsw.Error as error:
        raise not_opened(path, error) from error
    return connection


def _in_one_view(connection: apsw.Connection, read: Callable[[Statements], Result]) -> Result:
    try:
        return read_in_one_view(Statements(connection), read)
    except apsw.Error as error:
        raise store_error(error) from error


def _cluster(statements: Statements) -> ClusterFacts:
    first_due = {
        ShardNumber(shard): Instant(due_at) for shard, due_at in statements.execute(_FIRST_DUE)
    }
    return ClusterFacts(ClusterView(members=(), shards=read_shards(statements)), first_due)


def _audit(statements: Statements, now: Instant) -> AuditReport:
    counts = dict.fromkeys(TimerStatus, 0)
    by_status: dict[tuple[str, int], int] = {}
    for namespace, status, count in statements.execute(_ROWS_BY_STATUS):
        counts[TimerStatus(status)] += count
        by_status[namespace, status] = by_status.get((namespace, status), 0) + count
    kept = {
        (namespace, status): count
        for namespace, status, count in statements.execute("SELECT * FROM counts")
    }
    findings = [*_damage(statements), *miscounts(kept, by_status)]
    for check in _CHECKS:
        findings.extend(_findings(statements, check, Instant(now - OVERDUE_TOO_LONG)))
    findings += finding(UNREADABLE, list(unreadable_claims(statements.execute(_EXECUTING))))
    credentials = statements.execute(ALL_CREDENTIALS)
    findings += finding(UNREADABLE_CREDENTIALS, list(unreadable_credentials(credentials)))
    return AuditReport(
        accepted=statements.first(_ACCEPTED)[0],
        forgotten=0,
        counts=counts,
        overdue=statements.first(_OVERDUE, now)[0],
        findings=findings,
    )


def _findings(statements: Statements, check: Check, overdue_since: Instant) -> list[AuditFinding]:
    values = (overdue_since,) if "?1" in check.found else ()
    (count,) = statements.first(f"SELECT count(*) FROM {check.found}", *values)
    if not count:
        return []
    rows = statements.execute(
        f"SELECT {check.example} FROM {check.found} LIMIT {MAX_EXAMPLES}", *values
    )
    return [AuditFinding(check.problem, count, [example for (example,) in rows])]


def _damage(statements: Statements) -> list[AuditFinding]:
    """Problems that SQLite itself finds in the file."""
    lines = [line for (line,) in statements.execute("PRAGMA quick_check") if line != "ok"]
    return finding("the file is damaged", lines)


def _states(statements: Statements, keys: Sequence[TimerKey]) -> list[list[TimerStatus]]:
    states: list[list[TimerStatus]] = [[] for _ in keys]
    for position, status in statements.execute(_STATES, msgspec.json.encode(keys).decode()):
        states[position].append(TimerStatus(status))
    return states
