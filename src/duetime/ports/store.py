"""The store: the only truth about timers.

Every instant is an argument; no store reads a clock. Every method is atomic: it is durable in
full when it returns, and a crash at any point before that leaves either all of it or nothing.
Methods raise `StoreUnavailable` when the store cannot do its work now; then it is unknown only
to the caller, never to the store, whether the write took place.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement

Leases = Mapping[ShardNumber, Epoch]
"""The shards an engine owns, each with the epoch under which it owns it."""


class OnExisting(Enum):
    """What a create does when a timer of the same key exists."""

    KEEP = "keep"
    """Leave it alone."""

    REPLACE = "replace"
    """Take its place if it is pending, else leave it alone."""


class Existence(Enum):
    CREATED = "created"
    REPLACED = "replaced"
    EXISTING = "existing"


class CreateRequest(Struct, frozen=True, gc=False):
    """`id_is_new` says that the id was made up for this timer just now, so that no other timer
    can have it: a store need not look for one among those that have finished."""

    timer: Timer
    on_existing: OnExisting
    id_is_new: bool = False


class CreateResult(Struct, frozen=True, gc=False):
    """`timer` is what the store now holds under the key: the new one or the existing one."""

    existence: Existence
    timer: Timer


class ConditionalResult(Struct, frozen=True):
    """`timer` is what the store holds afterwards; its status tells why a write did not apply."""

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
    """`total` counts all timers that match, not only those on the page. A store that would have
    to read them all for it may estimate large ones; then `total_is_estimated`."""

    timers: list[Timer]
    total: int
    total_is_estimated: bool = False


class Position(Struct, frozen=True):
    """A place in the order of (execute_at, timer_uuid)."""

    execute_at: Instant
    timer_uuid: bytes


class ScanQuery(Struct, frozen=True, kw_only=True):
    """Timers of one namespace in the order of (execute_at, timer_uuid), or wholly reversed.

    `after_exclusive` is where the scan goes on: beyond it in the direction of the scan. Because
    it is a place and not a number of timers to skip, a scan neither repeats nor leaves out a timer
    that keeps its instant, whatever is written meanwhile.
    """

    namespace: str
    status: TimerStatus | None = None
    execute_from_inclusive: Instant | None = None
    execute_until_exclusive: Instant | None = None
    after_exclusive: Position | None = None
    descending: bool = False
    limit: int = 50


class ClaimBatch(Struct, frozen=True):
    """`next_due_at` is the earliest due instant left pending in the leased shards, if any.

    Only leases whose epoch is current count. After a batch that reached its limit it may be in
    the past.
    """

    claims: Sequence[Claim]
    next_due_at: Instant | None


class Capabilities(Struct, frozen=True, kw_only=True):
    """What differs between stores and matters to the caller.

    `history_step` is the stretch of time, in microseconds, whose finished timers are kept
    together; 1 when each is kept on its own. Pruning up to a multiple of it is cheap.
    """

    name: str
    durable: bool
    shared_by_nodes: bool
    history_step: int = 1


class TimerStore(Protocol):
    """Timers, kept durably. One contract suite (`duetime.testing`) defines it in practice."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date. Raises `StoreUnavailable` with a message
        that says what to do when that is impossible, for example because another process
        holds an exclusive store or because the schema is newer than this release."""
        ...

    async def close(self) -> None:
        """Finish what was submitted, then let go. Idempotent."""
        ...

    async def ping(self) -> None:
        """Prove that the store answers."""
        ...

    async def add_namespace(self, namespace: Namespace) -> Namespace:
        """Create the namespace and its shards if it is absent; answer what the store holds.

        Neither the shards nor the options of an existing namespace change: the caller compares.
        """
        ...

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        """Give an existing namespace other options. None when there is no such namespace."""
        ...

    async def namespaces(self) -> Sequence[Namespace]:
        """All of them, in the order of their names by code point."""
        ...

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        """Create a batch of timers, all in one durable write; one result per request, in order.

        A key counts as existing whether its timer is live or finished. Requests for the same
        key within a batch take effect one after the other. What takes the
        place of another is `transitions.replaced`.
        """
        ...

    async def get(self, key: TimerKey) -> Timer | None: ...

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        """Apply `transitions.changed` if `transitions.applies`: if the timer is pending, and has
        the firing that the change is for, if it is for one. None when there is no timer."""
        ...

    async def cancel_if_pending(self, key: TimerKey, now: Instant) -> ConditionalResult | None:
        """Apply `transitions.canceled` if the timer is pending. None when there is no timer.

        Once this returns `applied`, no claim can ever return the timer.
        """
        ...

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        """Forget the timer if it is pending; `timer` is then what it was. None when there is
        no timer."""
        ...

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        """Apply `transitions.redriven` to each timer that is failed, all in one durable write.

        One answer per redrive, in order: the timer as it now is, or None where nothing applied.
        Of two redrives of one key the first applies.
        """
        ...

    async def page(self, query: PageQuery) -> Page: ...

    async def scan(self, query: ScanQuery) -> list[Timer]:
        """Up to `limit` timers from the place on. Costs what it answers, wherever it starts and
        however many timers and namespaces there are."""
        ...

    async def count_scan(self, query: ScanQuery) -> int:
        """How many timers the query matches, exactly; neither its place nor its limit count."""
        ...

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        since_inclusive: Instant | None = None,
    ) -> ClaimBatch:
        """Turn timers due at or before `until_inclusive` from pending to executing: up to
        `limit`, or fewer if they are large, but at least one if there is any.

        Takes them in the order of (due_at, timer_uuid), from shards whose current epoch is the
        leased one only. Each becomes `transitions.claimed` under its lease's epoch.

        With `since_inclusive` the caller has claimed all that was due before it and will look for
        stragglers another time: a store that would have to read past what is gone may leave out
        what is due before, also from `next_due_at`.
        """
        ...

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        """The claims that are executing under exactly these leases, in no particular order.

        For an owner that does not know whether a claim of its own took place: `claim_due` may
        raise `StoreUnavailable` after it did.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        """Apply a batch of settlements; one answer per settlement: whether it applied.

        Each applies only if the timer was created at its `created_at`, is executing under its
        claim number and epoch, and the epoch is still the shard's. Those that do not apply change
        nothing and do not hinder others.
        """
        ...

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        """Apply `transitions.recovered` to timers of the leased shards that are executing under
        an older epoch than the lease's: up to `limit`, or fewer if they are large, but at least
        one if there is any. Answers their due instants; none means that none is left."""
        ...

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        """Forget up to `limit` timers that finished before the instant, of one namespace or of
        all; answers how many. Of all namespaces together the earliest go first.

        Without a namespace, and when the instant is a multiple of `capabilities.history_step`
        larger than one, whole steps are forgotten at once, however many timers that are.
        """
        ...

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        """How many timers have each status, none left out, in one namespace or in all.

        A store may estimate large numbers, as in `Page.total`."""
        ...
