"""The engine's reports: about the endpoints it calls, and about a single timer; and the pauses of
endpoints."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Waits


class EndpointState(Enum):
    CLOSED = "closed"
    """Called as usual."""

    OPEN = "open"
    """The endpoint keeps failing or hanging: only a few attempts at a time go there, to see whether
    it is back."""

    HALF_OPEN = "half_open"
    """Open, with such an attempt under way."""


class EndpointPause(Struct, frozen=True, kw_only=True, order=True):
    """An operator wants nothing to be sent to the endpoint. `paused_by` is the name of a key."""

    endpoint: str
    paused_at: Instant
    paused_by: str
    reason: str | None = None


class PauseStore(Protocol):
    """The pauses of endpoints, for all nodes. Every method is atomic and durable, and raises
    `StoreUnavailable`. A store that is short of room still takes them."""

    async def pauses(self) -> Sequence[EndpointPause]:
        """All pauses, in the order of their endpoints by code point."""
        ...

    async def add_pause(self, pause: EndpointPause) -> bool:
        """Keep the pause. False if the endpoint is paused already; then nothing changed. Text that
        no store can hold is replaced."""
        ...

    async def remove_pause(self, endpoint: str) -> bool:
        """Forget the pause of the endpoint. False if there is none."""
        ...


FIGURES_MINUTES = 15
"""Minutes that the figures of an endpoint are about; the current one has just begun."""


class EndpointFigures(Struct, frozen=True, kw_only=True):
    """Attempts that were answered, or given up, in the last minutes on one node. `failures` are
    those that blame the endpoint."""

    attempts: int
    failures: int
    p50_ms: float
    p99_ms: float


class EndpointStatus(Struct, frozen=True, kw_only=True):
    """An endpoint as one node sees it.

    `waiting` counts the claims that wait in this process, not those that were handed back to the
    store; but with a `pause` also timers that were handed back because of it. `last_error` is the
    error of the last attempt that blamed the endpoint, even if others succeeded since; then
    `consecutive_failures` is 0.
    """

    endpoint: str
    state: EndpointState
    in_flight: int
    waiting: int
    consecutive_failures: int
    last_error: str | None
    opened_at: Instant | None
    failing_since: Instant | None = None
    pause: EndpointPause | None = None
    figures: EndpointFigures | None = None


def idle_endpoint(endpoint: str) -> EndpointStatus:
    """The status of an endpoint with nothing under way and nothing wrong."""
    return EndpointStatus(
        endpoint=endpoint,
        state=EndpointState.CLOSED,
        in_flight=0,
        waiting=0,
        consecutive_failures=0,
        last_error=None,
        opened_at=None,
    )


class NodeEndpoints(Struct, frozen=True):
    """The endpoints as the node of this name sees them; `more` are not among them."""

    node: str
    endpoints: Sequence[EndpointStatus]
    more: int = 0


class EndpointReporter(Protocol):
    """The part of the engine that knows the endpoints. Pure and quick, but for `set_pauses`, which
    hands claims back."""

    @property
    def node(self) -> str: ...

    def endpoint_names(self) -> Sequence[str]:
        """The endpoints in use, paused, failing lately or called in the last minutes."""
        ...

    def troubled_endpoints(self, most: int) -> list[EndpointStatus]:
        """Up to `most` endpoints that are paused, open or failing, in this order, without their
        figures."""
        ...

    def status_of(self, endpoint: str) -> EndpointStatus:
        """One of the named endpoints, with its figures."""
        ...

    def set_pauses(self, pauses: Mapping[str, EndpointPause]) -> None:
        """Begin no attempt at these endpoints, and do so again at those that are not among them
        any more."""
        ...


class HeldTimers(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The timers of one namespace that a node knows to wait behind the open breaker of an endpoint:
    in the process, or handed back to the store for a while."""

    endpoint: str
    namespace: str
    timers: int
    since: Instant | None = None


class FiringReport(Struct, frozen=True, kw_only=True):
    """The knowledge of one node, at this moment, of an unfinished timer.

    Only the node that `owns_shard` knows the rest. `owner` is None if no living node owns the
    timer's shard. `owner_url` equals `node_url` if both share an address, as workers do. `sent_at`
    is given once the attempt is under way. `waits` are those of the attempt up to `sent_at` or up
    to now; they are empty if it is not late, or if the instants tell as much. `waits_for` is the
    cause for which the timer waits now.
    """

    node: str
    owns_shard: bool
    node_url: str | None = None
    is_running: bool = True
    owner: str | None = None
    owner_url: str | None = None
    waits: Waits = ()
    waits_for: WaitCause | None = None
    sent_at: Instant | None = None
    endpoint: EndpointStatus | None = None
    quota_in_flight: int = 0
    quota_limit: int | None = None
    clock_ahead_ms: float | None = None
    """Distance of this node's clock from the store's, if that is above the limit."""
    disk_is_full: bool = False
