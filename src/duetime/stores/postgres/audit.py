"""Checking that everything is as it must be."""

from msgspec import Struct

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditFinding, AuditReport
from duetime.stores.postgres.connections import Connection

MAX_EXAMPLES = 5

OVERDUE_TOO_LONG = 60 * MICROSECONDS_PER_SECOND
"""For so long a shard may be without an owner while nodes come and go."""


class _Check(Struct, frozen=True):
    """Something that must not be: the rows of `found`, each told by `example`. $1 is an instant
    that nothing which has an owner is overdue since."""

    problem: str
    found: str
    example: str = "namespace || '/' || id"


_IN_SHARD = "JOIN shards ON shards.shard = timer.shard"

_CHECKS = (
    _Check(
        "timers that are in more than one place",
        "(SELECT namespace, id FROM timers GROUP BY namespace, id HAVING count(*) > 1) AS timer",
    ),
    _Check(
        "timers of a namespace that does not exist",
        """timers AS timer LEFT JOIN namespaces ON namespaces.name = timer.namespace
        WHERE namespaces.name IS NULL""",
    ),
    _Check(
        "timers in a shard that their namespace does not have",
        """timers AS timer JOIN namespaces ON namespaces.name = timer.namespace
        WHERE timer.shard NOT BETWEEN 0 AND namespaces.num_shards - 1""",
    ),
    _Check(
        "namespaces that lack shards: some of their timers never fire",
        """namespaces WHERE (SELECT count(*) FROM shards WHERE shard < num_shards) < num_shards""",
        "name",
    ),
    _Check(
        "shards whose fences do not follow their epoch: writes of their owner are refused",
        """(SELECT shards.shard FROM shards LEFT JOIN shard_fences AS fence
            ON fence.shard = shards.shard AND fence.epoch = shards.epoch
            GROUP BY shards.shard HAVING count(fence.epoch) <> 2) AS broken""",
        "'shard ' || shard",
    ),
    _Check(
        "timers that are due before the instant that was asked for",
        "timers AS timer WHERE status < 2 AND due_at < execute_at",
    ),
    _Check(
        "executing timers whose owner is gone and that its successor did not take over",
        f"executing_timers AS timer {_IN_SHARD} WHERE timer.epoch < shards.epoch",
    ),
    _Check(
        "executing timers of an epoch that their shard never had",
        f"executing_timers AS timer {_IN_SHARD} WHERE timer.epoch > shards.epoch",
    ),
    _Check(
        "timers in the history that are not finished",
        "finished_timers AS timer WHERE status NOT IN (2, 3, 4)",
    ),
    _Check(
        "overdue timers of shards that no member owns: is the service running?",
        f"""pending_timers AS timer {_IN_SHARD}
        LEFT JOIN members ON members.node = shards.owner
        WHERE timer.due_at < $1 AND members.node IS NULL""",
    ),
)

_COUNTS = "SELECT status, count(*) FROM timers WHERE status BETWEEN 0 AND 4 GROUP BY status"

_OVERDUE = "SELECT count(*) FROM pending_timers WHERE due_at < $1"

_LEDGER = "SELECT sum(accepted)::bigint, sum(removed)::bigint, sum(pruned)::bigint FROM ledger"

_ROWS = "SELECT count(*) FROM timers"


async def audit(connection: Connection, now: Instant) -> AuditReport:
    """Within a transaction that sees one moment."""
    counts = dict.fromkeys(TimerStatus, 0)
    for status, timers in await connection.fetch(_COUNTS):
        counts[TimerStatus(status)] = timers
    ledger = await connection.fetchrow(_LEDGER)
    assert ledger is not None
    accepted, removed, pruned = ledger
    findings = []
    for check in _CHECKS:
        findings += await _findings(connection, check, Instant(now - OVERDUE_TOO_LONG))
    findings += _imbalance(accepted, removed, pruned, await connection.fetchval(_ROWS))
    return AuditReport(
        accepted=accepted,
        forgotten=removed + pruned,
        counts=counts,
        overdue=await connection.fetchval(_OVERDUE, now),
        findings=findings,
    )


async def _findings(
    connection: Connection, check: _Check, overdue_since: Instant
) -> list[AuditFinding]:
    values = (overdue_since,) if "$1" in check.found else ()
    examples = await connection.fetch(
        f"SELECT {check.example} FROM {check.found} LIMIT {MAX_EXAMPLES}", *values
    )
    if not examples:
        return []
    count = await connection.fetchval(f"SELECT count(*) FROM {check.found}", *values)
    return [AuditFinding(check.problem, count, [example for (example,) in examples])]


def _imbalance(accepted: int, removed: int, pruned: int, there: int) -> list[AuditFinding]:
    missing = accepted - removed - pruned - there
    if missing == 0:
        return []
    line = f"accepted {accepted}, but there {there} + removed {removed} + pruned {pruned}"
    problem = "timers that got lost" if missing > 0 else "timers that nobody accepted"
    return [AuditFinding(f"{problem}: the books do not balance", abs(missing), [line])]
