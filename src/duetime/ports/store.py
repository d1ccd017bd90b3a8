"""The store: the only truth about timers."""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.pruning import PruningStore

Leases = Mapping[ShardNumber, Epoch]
"""The shards an engine owns, each with the epoch of its ownership."""


class OnExisting(Enum):
    """The effect of a create when a timer of the same key exists."""

    KEEP = "keep"
    """Leave it alone."""

    REPLACE = "replace"
    """Replace it if it is pending, else leave it alone."""


class Existence(Enum):
    CREATED = "created"
    REPLACED = "replaced"
    EXISTING = "existing"
    UNREADABLE = "unreadable"
    """A timer of the key exists, and this release cannot read it. It was left alone."""


class CreateRequest(Struct, frozen=True, gc=False):
    """With `id_is_new` the id was generated for this timer just now, so that no other timer can
    have it: a store need not look among finished timers."""

    timer: Timer
    on_existing: OnExisting
    id_is_new: bool = False


class CreateResult(Struct, frozen=True, gc=False):
    """`timer` is the timer that the store now holds: the new or the existing one. It is the
    requested one where the existing one is unreadable."""

    existence: Existence
    timer: Timer


class ConditionalResult(Struct, frozen=True):
    """`timer` is the timer in the store afterwards; its status says why a write did not apply."""

    applied: bool
    timer: Timer


class SortField(Enum):
    CREATED_AT = "created_at"
    EXECUTE_AT = "execute_at"


class PageQuery(Struct, frozen=True, kw_only=True):
    """Timers of one namespace, in the order of (sort field, timer_uuid), or wholly reversed."""

    namespace: str
    status: TimerStatus | None = None
    sort: SortField = SortField.CREATED_AT
    descending: bool = True
    limit: int = 50
    offset: int = 0


class Page(Struct, frozen=True):
    """`total` counts all matching timers, not only those on the page. A store that would have to
    read them all may estimate a large total; then `total_is_estimated`."""

    timers: list[Timer]
    total: int
    total_is_estimated: bool = False


class Position(Struct, frozen=True):
    """A position in the order of (execute_at, timer_uuid)."""

    execute_at: Instant
    timer_uuid: bytes


ScanEntry = Timer | Position
"""A timer, or the position of one that this release cannot read."""


class ScanQuery(Struct, frozen=True, kw_only=True):
    """Timers of one namespace in the order of (execute_at, timer_uuid), or wholly reversed.

    The scan continues after `after_exclusive`, in the direction of the scan. Because that is a
    position and not a number of timers to skip, a scan neither repeats nor leaves out a timer that
    keeps its instant, whatever is written meanwhile.

    None stands for every status; with `live_only` for those of timers that are not finished. Each
    scan sees all its statuses at one moment, so a timer that changes between them is not missed.
    """

    namespace: str
    status: TimerStatus | None = None
    live_only: bool = False
    execute_from_inclusive: Instant | None = None
    execute_until_exclusive: Instant | None = None
    after_exclusive: Position | None = None
    descending: bool = False
    limit: int = 50

    @property
    def statuses(self) -> tuple[TimerStatus, ...]:
        """The statuses of the timers that match, in their order."""
        if self.status is not None:
            return (self.status,)
        return _LIVE if self.live_only else tuple(TimerStatus)


_LIVE = tuple(status for status in TimerStatus if not status.is_finished)


class DuePosition(Struct, frozen=True):
    """A position in the order of (due_at, timer_uuid). An empty uuid is before every timer of the
    instant."""

    due_at: Instant
    timer_uuid: bytes


class ClaimStart(Struct, frozen=True):
    """Where to begin looking for due timers: after `after_exclusive`, but in the shards of
    `from_inclusive` with the timers due at the given instant, or with the first of all for None.

    Everything before is claimed, so that a store need not read past it.
    """

    after_exclusive: DuePosition
    from_inclusive: Mapping[ShardNumber, Instant | None]


class ClaimBatch(Struct, frozen=True):
    """`next_due_at` is the earliest due instant left pending in the leased shards, if any.

    Only leases with a current epoch count. After a batch that reached its limit, `next_due_at`
    may be in the past.

    `claimed_until` is the position up to which everything after the start of the claim is claimed,
    except for timers written meanwhile. None if the store does not say.
    """

    claims: Sequence[Claim]
    next_due_at: Instant | None
    claimed_until: DuePosition | None = None


class Capabilities(Struct, frozen=True, kw_only=True):
    """Differences between stores that matter to the caller.

    Finished timers of the same `history_step`, in microseconds, are kept together; 1 when each is
    kept on its own. Pruning up to a multiple of it is cheap.
    """

    durable: bool
    shared_by_nodes: bool
    history_step: int = 1


class NamespaceChanges(Struct, frozen=True):
    """`mark` is for the next question; some namespaces may be answered again then. `are_all` says
    that every namespace is among them."""

    namespaces: Sequence[Namespace]
    mark: str
    are_all: bool


class TimerStore(PruningStore, Protocol):
    """Timers, kept durably. One contract suite (`duetime.testing`) defines it in practice.

    Every instant is an argument; no store reads a clock. Every method is atomic: it is durable in
    full when it returns, and a crash at any point before that leaves either all of it or nothing.
    Methods raise `StoreUnavailable` when the store cannot do its work now. The caller then does
    not know whether the write took place. `StorageFull` says that there was no room and nothing
    was written; a store that keeps a reserve raises it for new timers, namespaces and redrives, and
    goes on with claims, settlements, cancels and recovery.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date. When that is impossible, for example because
        another process holds an exclusive store or because the schema is newer than this release,
        raises `StoreUnavailable` with a message that says what to do."""
        ...

    async def close(self) -> None:
        """Finish all submitted work, then let go. Idempotent."""
        ...

    async def ping(self) -> None:
        """Prove that the store answers, without a write: anybody may ask for this."""
        ...

    async def add_namespace(self, namespace: Namespace, *, in_reserve: bool = False) -> Namespace:
        """Create the namespace and its shards if it is absent; returns the one in the store.

        Neither the shards nor the options of an existing namespace change: the caller compares. A
        store that keeps a reserve of room refuses a new namespace for which the reserve would be
        needed (`StorageFull`), unless `in_reserve` is given.
        """
        ...

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        """Give an existing namespace other options. None when there is no such namespace."""
        ...

    async def remove_namespace(self, name: str) -> bool:
        """Forget a namespace that is `deleting` and has no timers, live or finished. Returns
        whether it is gone, also if it did not exist. The counts of its lateness objective go with
        it, in the same step; its shards stay."""
        ...

    async def remove_pending(self, namespace: str, *, limit: int) -> int:
        """Forget up to `limit` pending timers of a namespace that is `deleting`, readable or not;
        returns their number. Timers that are being written may be left out.

        Once a change of its options lets the namespace take timers again, none is forgotten: the
        change waits for a removal under way.
        """
        ...

    async def namespaces(self) -> Sequence[Namespace]:
        """All namespaces, in the order of their names by code point."""
        ...

    async def find_namespaces(self, names: Collection[str]) -> Sequence[Namespace]:
        """The named namespaces that exist, in no particular order. The cost does not
        depend on how many namespaces there are."""
        ...

    async def namespaces_changed(self, since: str | None) -> NamespaceChanges:
        """The namespaces added or changed since an earlier answer of this method with the mark
        `since`, or all of them. None asks for all. Removed namespaces are not mentioned."""
        ...

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        """Create a batch of timers, all in one durable write; one result per request, in order.

        A key counts as existing whether its timer is live or finished. Requests for the same key
        within a batch take effect one after the other. A timer that replaces another becomes
        `transitions.replaced`. Only a pending timer that is replaced need not be readable.
        """
        ...

    async def restore(self, timers: Sequence[Timer]) -> list[CreateResult]:
        """Write timers with the state that they had elsewhere, all in one durable write; one result
        per timer, in order.

        The timers are `transitions.restored`, and their keys are distinct. As in `create`, a key
        counts as existing whether its timer is live or finished; an existing timer is left alone. A
        finished timer goes to the history at the instant it finished, however long ago that is, and
        may be pruned at once. A pending one is due at its `due_at`.
        """
        ...

    async def get(self, key: TimerKey) -> Timer | None:
        """Like every method that answers a single timer, raises `TimerUnreadable` if this release
        cannot read it. A write may have taken place then."""
        ...

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        """Apply `transitions.changed` if `transitions.applies`: the timer is pending, and still
        has the firing that the change is for, if the change names one. None when there is no
        timer."""
        ...

    async def cancel_if_pending(
        self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        """Apply `transitions.canceled` if the timer is pending and, with `only_updated_at`, was not
        changed since. None when there is no timer.

        Once this returns `applied`, no claim can ever return the timer.
        """
        ...

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        """Forget the timer if it is pending; `timer` is then its last state. None when there is
        no timer."""
        ...

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        """Apply `transitions.redriven` to each timer that is failed, all in one durable write.

        One answer per redrive, in order: the timer as it now is, or None where the redrive did not
        apply. An unreadable timer stays failed. When two redrives have the same key, the first
        applies.
        """
        ...

    async def page(self, query: PageQuery) -> Page:
        """Unreadable timers are left out of the page, but count in its total, limit and offset."""
        ...

    async def scan(self, query: ScanQuery) -> list[Timer]:
        """Up to `limit` readable timers after the position; fewer only at the end. The cost
        depends on the number of timers returned only, not on the position or on how many timers
        and namespaces there are."""
        ...

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        """Like `scan`, with every unreadable timer's position in its place. The limit counts
        both."""
        ...

    async def count_scan(self, query: ScanQuery) -> int:
        """The exact number of timers that match; position and limit of the query do not count."""
        ...

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        """Turn timers due at or before `until_inclusive` from pending to executing: up to
        `limit`, or fewer if they are large, but at least one if there is any.

        Timers are taken in the order of (due_at, timer_uuid), only from shards whose current epoch
        is the leased one. Each becomes `transitions.claimed` under its lease's epoch.

        With `start` the caller has claimed everything before, and looks for stragglers with
        `first_due`: a store that would have to read past claimed timers may leave out those
        before the start, and ignore them in `next_due_at`.
        """
        ...

    async def first_due(
        self, leases: Leases, *, before_exclusive: Instant
    ) -> dict[ShardNumber, Instant]:
        """The leased shards with timers that are pending and due before `before_exclusive`, each
        with the earliest of their due instants. If there are several such shards, some may be
        left out, but not all of those with the earliest instant. The epochs do not matter.

        May take long where the store has to read past claimed timers. Claims go on meanwhile.
        """
        ...

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        """The claims that are executing under exactly these leases, in no particular order.

        For an owner that does not know whether its claim took place: `claim_due` may raise
        `StoreUnavailable` after the claim was written.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        """Apply a batch of settlements; one answer per settlement: whether it applied.

        A settlement applies only if the timer was created at its `created_at` and is executing
        under its claim number and epoch, and the epoch is still the shard's or that of an
        unfinished lease (`membership.UnfinishedLease`). A settlement that does not apply changes
        nothing and does not hinder others.
        """
        ...

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        """Apply `transitions.recovered` to timers of the leased shards that are executing under
        an older epoch than the lease's, but not under that of an unfinished lease: up to `limit`,
        or fewer if they are large, but at least one if there is any. Returns their due instants;
        none means that none is left.

        A store may leave unreadable timers executing; they count neither as any nor as left."""
        ...

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        """The number of timers of each status, including 0, in one namespace or in all.

        A store may estimate large numbers, as in `Page.total`."""
        ...

    async def count_unfinished(self, namespace: str, *, exact_up_to: int) -> int:
        """The number of pending and executing timers. A store may estimate a number that is larger
        than `exact_up_to`; it is then still larger. Lists do not delay it."""
        ...
