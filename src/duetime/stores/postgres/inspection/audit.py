"""The audit: every timer is in exactly one place, and none got lost.

An old snapshot keeps PostgreSQL from removing dead rows, so the audit holds none for long. It reads
timers in pages, each a statement of its own.
"""

from collections import Counter
from collections.abc import Sequence

import asyncpg
from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import (
    MAX_EXAMPLES,
    OVERDUE_TOO_LONG,
    AuditFinding,
    AuditReport,
)
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
from duetime.stores.postgres.claiming import CLAIM_AS_TEXT
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.inspection.census import COUNTED_STATUSES, read_counts
from duetime.stores.postgres.security.credentials import ALL_CREDENTIALS
from duetime.stores.security_rows import unreadable_credentials

PAGE_TIMERS = 20_000
"""Timers checked by one statement, in each of the tables of pending and finished timers."""

SNAPSHOT_SECONDS = 20.0
"""Time for counting all timers in one snapshot, which makes the books exact. If that is not enough,
the sums of the pages have to do."""

_PAGE_CHECKS = (
    Check(
        "timers that are in more than one place",
        "(SELECT namespace, id FROM page GROUP BY namespace, id HAVING count(*) > 1) AS timers",
    ),
    Check(
        UNKNOWN_NAMESPACE,
        """page AS timers LEFT JOIN namespaces ON namespaces.name = timers.namespace
        WHERE namespaces.name IS NULL""",
    ),
    Check(
        "timers in a shard that their namespace does not have",
        """page AS timers JOIN namespaces ON namespaces.name = timers.namespace
        WHERE timers.shard NOT BETWEEN 0 AND namespaces.num_shards - 1""",
    ),
    Check(DUE_TOO_EARLY, "page AS timers WHERE status < 2 AND due_at < execute_at"),
    Check(
        "timers in the history that are not finished",
        "page AS timers WHERE is_history AND status NOT IN (2, 3, 4)",
    ),
)

_EXECUTING_IN_SHARD = "executing_timers AS timers JOIN shards ON shards.shard = timers.shard"

_CHECKS = (
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
    Check(
        ABANDONED,
        f"""{_EXECUTING_IN_SHARD} WHERE timers.epoch < shards.epoch
            AND (timers.shard, timers.epoch) NOT IN (SELECT shard, epoch FROM unfinished_leases)""",
    ),
    Check(UNKNOWN_EPOCH, f"{_EXECUTING_IN_SHARD} WHERE timers.epoch > shards.epoch"),
    Check(
        "overdue timers of shards that no member owns: is the service running?",
        """pending_timers AS timers JOIN shards ON shards.shard = timers.shard
        LEFT JOIN members ON members.node = shards.owner
        WHERE timers.due_at < $1 AND members.node IS NULL""",
    ),
)

_COUNTS = """
    SELECT namespace, status, count(*) FROM timers WHERE status BETWEEN 0 AND 4
    GROUP BY namespace, status
"""

_OVERDUE = "SELECT count(*) FROM pending_timers WHERE due_at < $1"

_LEDGER = "SELECT sum(accepted)::bigint, sum(removed)::bigint, sum(pruned)::bigint FROM ledger"

_ROWS = "SELECT count(*) FROM timers"

# Executing timers are few; a pending timer that cannot be read becomes one once it is claimed.
_EXECUTING = f"SELECT namespace || '/' || id, {CLAIM_AS_TEXT} FROM executing_timers"

_TABLES = " UNION ALL ".join(
    f"""SELECT namespace, id, shard, {status} AS status, execute_at, due_at, {is_history}
        FROM {table} WHERE id > $1 AND id <= (SELECT id FROM last)"""
    for table, status, is_history in (
        ("pending_timers", "0::smallint", "false AS is_history"),
        ("executing_timers", "1::smallint", "false"),
        ("finished_timers", "status", "true"),
    )
)

_FOUND_IN_PAGE = " UNION ALL ".join(
    f"""SELECT 'check {number}', count(*), (array_agg(example))[:{MAX_EXAMPLES}]
        FROM (SELECT {check.example} AS example FROM {check.found}) AS found"""
    for number, check in enumerate(_PAGE_CHECKS)
)

# All timers whose ids come after $1, as far as $2 of each large table reach. A key moves between
# the tables, but it stays in its page, and one statement sees it in one place.
PAGE = f"""
    WITH last AS MATERIALIZED (
        SELECT coalesce(least(
            (SELECT id FROM pending_timers WHERE id > $1 ORDER BY id OFFSET $2 LIMIT 1),
            (SELECT id FROM finished_timers WHERE id > $1 ORDER BY id OFFSET $2 LIMIT 1)
        ), repeat(chr(1114111), 256)) AS id
    ), page AS MATERIALIZED ({_TABLES})
    SELECT 'last', length(id), ARRAY[id] FROM last
    UNION ALL SELECT 'status ' || status, count(*), NULL FROM page GROUP BY status
    UNION ALL {_FOUND_IN_PAGE}
"""

_AFTER_EVERY_ID = 256
"""Length of the last id of the last page; no id is that long."""


class _Ledger(Struct, frozen=True):
    accepted: int
    removed: int
    pruned: int

    @property
    def forgotten(self) -> int:
        return self.removed + self.pruned


class _Books(Struct, frozen=True):
    """The ledger and the timers stored, of one moment."""

    ledger: _Ledger
    counts: dict[TimerStatus, int]
    rows: int
    miscounts: list[AuditFinding]


async def audit(connection: Connection, now: Instant) -> AuditReport:
    before = await _read_ledger(connection)
    books = await _read_books(connection)
    counts, rows, findings = await _read_pages(connection)
    for check in _CHECKS:
        findings += await _findings(connection, check, Instant(now - OVERDUE_TOO_LONG))
    findings += await _unreadable(connection)
    credentials = await connection.fetch(ALL_CREDENTIALS)
    findings += finding(UNREADABLE_CREDENTIALS, list(unreadable_credentials(credentials)))
    after = await _read_ledger(connection)
    if books is not None:
        after, counts = books.ledger, books.counts
        findings += books.miscounts
        findings += _imbalance(books.ledger, books.ledger, books.rows)
    else:
        findings += _imbalance(before, after, rows)
    return AuditReport(
        accepted=after.accepted,
        forgotten=after.forgotten,
        counts=counts,
        overdue=await connection.fetchval(_OVERDUE, now),
        findings=findings,
    )


async def _read_books(connection: Connection) -> _Books | None:
    """None if counting takes too long."""
    if SNAPSHOT_SECONDS <= 0:
        return None
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute(
                f"SET LOCAL statement_timeout = {round(SNAPSHOT_SECONDS * 1_000 / 2)}"
            )
            ledger = await _read_ledger(connection)
            counts = dict.fromkeys(TimerStatus, 0)
            stored: dict[tuple[str, int], int] = {}
            for namespace, status, timers in await connection.fetch(_COUNTS):
                counts[TimerStatus(status)] += timers
                if status in COUNTED_STATUSES:
                    stored[namespace, status] = timers
            kept = await read_counts(connection)
            wrong = [] if kept is None else miscounts(kept, stored)
            return _Books(ledger, counts, await connection.fetchval(_ROWS), wrong)
    except asyncpg.QueryCanceledError:
        return None


async def _read_ledger(connection: Connection) -> _Ledger:
    row = await connection.fetchrow(_LEDGER)
    assert row is not None
    return _Ledger(*row)


async def _read_pages(
    connection: Connection,
) -> tuple[dict[TimerStatus, int], int, list[AuditFinding]]:
    """The timers of each status, the rows of all tables, and what is wrong with them."""
    counts = dict.fromkeys(TimerStatus, 0)
    rows = 0
    found: Counter[int] = Counter()
    examples: dict[int, list[str]] = {}
    last: str | None = ""
    while last is not None:
        after, last = last, None
        for kind, number, texts in await read_page(connection, after):
            what, _, value = kind.partition(" ")
            if what == "last":
                last = None if number == _AFTER_EVERY_ID else texts[0]
            elif what == "status":
                rows += number
                if int(value) in counts:
                    counts[TimerStatus(int(value))] += number
            elif number:
                found[int(value)] += number
                examples.setdefault(int(value), []).extend(texts)
    findings = [
        AuditFinding(check.problem, found[number], examples[number][:MAX_EXAMPLES])
        for number, check in enumerate(_PAGE_CHECKS)
        if found[number]
    ]
    return counts, rows, findings


async def read_page(connection: Connection, after: str) -> Sequence[tuple[str, int, Sequence[str]]]:
    await connection.execute("SET enable_seqscan = off")
    rows = await connection.fetch(PAGE, after, PAGE_TIMERS)
    await connection.execute("SET enable_seqscan = on")
    return [(kind, number, texts) for kind, number, texts in rows]


async def _unreadable(connection: Connection) -> list[AuditFinding]:
    unreadable: list[str] = []
    # Row by row, because thousands of executing timers may have large payloads.
    async with connection.transaction(readonly=True):
        async for row in connection.cursor(_EXECUTING):
            unreadable += unreadable_claims([row])
    return finding(UNREADABLE, unreadable)


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


def _imbalance(before: _Ledger, after: _Ledger, stored: int) -> list[AuditFinding]:
    """Timers created and forgotten between two reads of the ledger may be stored or not."""
    at_least = before.accepted - after.forgotten
    at_most = after.accepted - before.forgotten
    if at_least <= stored <= at_most:
        return []
    line = (
        f"accepted {after.accepted}, but stored {stored} + removed {after.removed}"
        f" + pruned {after.pruned}"
    )
    missing = at_least - stored if stored < at_least else stored - at_most
    problem = "timers that got lost" if stored < at_least else "timers that nobody accepted"
    return [AuditFinding(f"{problem}: the books do not balance", missing, [line])]
