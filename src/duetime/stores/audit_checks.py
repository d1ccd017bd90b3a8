"""Checks of an audit: what each looks for, and how its findings are reported."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import MAX_EXAMPLES, AuditFinding

DUE_TOO_EARLY = "timers that are due before the instant that was asked for"
UNKNOWN_NAMESPACE = "timers of a namespace that does not exist"
ABANDONED = "executing timers whose owner is gone and that its successor did not take over"
UNKNOWN_EPOCH = "executing timers of an epoch that their shard never had"
UNREADABLE = "executing timers that this release cannot read: they are set aside and do not fire"
UNREADABLE_CREDENTIALS = (
    "keys or secrets that this release cannot read: they open nothing and sign nothing"
)


class Check(Struct, frozen=True):
    """A problem that no row may have: `found` is the FROM clause of the rows that have it, and
    `example` the SQL expression that names one. The first parameter, if `found` has one, is the
    instant before which a due timer counts as overdue."""

    problem: str
    found: str
    example: str = "timers.namespace || '/' || timers.id"


def finding(problem: str, examples: Sequence[str]) -> list[AuditFinding]:
    """A finding that counts all its examples and shows some, or none without examples."""
    return [AuditFinding(problem, len(examples), examples[:MAX_EXAMPLES])] if examples else []


def miscounts(
    kept: Mapping[tuple[str, int], int], stored: Mapping[tuple[str, int], int]
) -> list[AuditFinding]:
    """The counts by namespace and status that differ from the timers in the store."""
    wrong = [
        f"{namespace}/{TimerStatus(status).label}: {kept.get((namespace, status), 0)} counted,"
        f" {stored.get((namespace, status), 0)} stored"
        for namespace, status in sorted(kept.keys() | stored.keys())
        if kept.get((namespace, status), 0) != stored.get((namespace, status), 0)
    ]
    return finding("wrong counts", wrong)
