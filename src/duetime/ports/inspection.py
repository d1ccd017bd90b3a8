"""The view of a store for operators: it reads without taking part."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.timer import TimerStatus
from duetime.ports.membership import ClusterView

MAX_EXAMPLES = 5
"""Cases of an inconsistency that a finding shows."""

OVERDUE_TOO_LONG = 60 * MICROSECONDS_PER_SECOND
"""Time that a shard may be without an owner while nodes come and go, in microseconds."""


class HeldSnapshot(Struct, frozen=True):
    """A session in the store's database that keeps dead rows from being removed, with the age of
    its transaction. A prepared transaction has no `pid`; `application` is its name. A standby or a
    replication slot has an age in transactions only."""

    pid: int | None
    application: str
    user: str
    state: str
    age_seconds: float | None
    age_transactions: int = 0


class ClusterFacts(Struct, frozen=True):
    """`first_due` has the earliest due instant of each shard with pending timers,
    `oldest_snapshot` the oldest snapshot if it is too old."""

    view: ClusterView
    first_due: Mapping[ShardNumber, Instant]
    oldest_snapshot: HeldSnapshot | None = None


class AuditFinding(Struct, frozen=True):
    """One kind of inconsistency, with the number of cases and a few examples."""

    problem: str
    count: int
    examples: Sequence[str] = ()


class AuditReport(Struct, frozen=True, kw_only=True):
    """`accepted` counts every timer ever created, `forgotten` those pruned or removed since.

    The books balance when accepted = the sum of `counts` + forgotten; an imbalance is among the
    findings. No findings: every timer ever accepted is in exactly one state, and nothing
    overdue is without an owner.
    """

    accepted: int
    forgotten: int
    counts: Mapping[TimerStatus, int]
    overdue: int
    findings: Sequence[AuditFinding]


class StoreContent(Struct, frozen=True, kw_only=True):
    """The content of a copy of a store. `rows` has the number of each table, `overdue` counts the
    pending timers past their instant."""

    schema_version: int
    size_bytes: int
    rows: Mapping[str, int]
    counts: Mapping[TimerStatus, int]
    overdue: int
    last_change_at: Instant | None


class NamespaceCounts(Struct, frozen=True):
    """The numbers of pending and of failed timers by namespace. None stands for all namespaces that
    were not asked for by name, together."""

    pending: Mapping[str | None, int]
    failed: Mapping[str | None, int]


class LiveCounts(Struct, frozen=True):
    """The numbers of executing timers, and of pending ones whose due instant is over, by namespace.
    `are_all` is False if there are more."""

    executing: Mapping[str, int]
    overdue: Mapping[str, int]
    are_all: bool


class DueCount(Struct, frozen=True):
    """The number of timers that fall due within a span. `is_all` is False if there may be more."""

    timers: int
    is_all: bool


class CensusStore(Protocol):
    """The part of a store that counts timers by namespace, for whoever watches the service. Raises
    `StoreUnavailable`, as the timer store does."""

    async def count_by_namespace(self, *, most_names: int) -> NamespaceCounts | None:
        """Read the numbers that the store keeps up to date with every write. Namespaces without
        timers may be left out, and those that are gone are. Names the first `most_names` in their
        order.

        The cost depends on the number of namespaces only. A store that keeps its numbers in parts
        may put them together. None while it counts for the first time, after an upgrade.
        """
        ...

    async def count_live(self, now: Instant, *, most: int) -> LiveCounts | None:
        """Count up to `most` executing and `most` overdue timers; those due first come first where
        the store has them in order. May take long where the store has to read past others. None if
        the store gave up because it took too long."""
        ...


class OutlookStore(Protocol):
    """The part of a store that counts the timers of the near future. Raises `StoreUnavailable`, as
    the timer store does."""

    async def count_due(
        self, bounds: Sequence[Instant], *, most: int, namespaces: Collection[str] | None = None
    ) -> Sequence[DueCount] | None:
        """Count the pending timers of each span between two neighbours of `bounds`, by the instants
        at which they fall due; the first bound of a span belongs to it, the second does not.

        `bounds` ascend, and the first is not before now. Up to `most` timers of a span are counted.
        None for `namespaces` stands for all. In some namespaces up to `most` of the timers that
        were to be executed before the first bound are looked at, since they may be due again. The
        cost depends on `most`, on the number of spans, and on that of the namespaces or shards.
        None if the store gave up because it took too long.
        """
        ...


class StoreInspector(Protocol):
    """Only reads; the service may run meanwhile."""

    async def open(self) -> None:
        """Connect without changing anything. Raises `StoreUnavailable`, including when there
        is no schema of this release."""
        ...

    async def close(self) -> None: ...

    async def cluster(self) -> ClusterFacts: ...

    async def states(self, keys: Sequence[TimerKey]) -> list[list[TimerStatus]]:
        """The states of each key: exactly one, unless the key is unknown or the store is
        inconsistent."""
        ...

    async def audit(self, now: Instant) -> AuditReport:
        """Check everything. Takes time in proportion to the number of timers.

        Each timer is seen at one moment; different timers may be seen at different moments. The
        counts and the books are of one moment, unless that takes too long: then timers created
        and forgotten meanwhile are not counted as lost."""
        ...
