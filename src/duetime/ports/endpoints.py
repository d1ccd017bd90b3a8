"""The engine's report about the endpoints it calls."""

from enum import Enum

from msgspec import Struct

from duetime.domain.instants import Instant


class EndpointState(Enum):
    CLOSED = "closed"
    """Called as usual."""

    OPEN = "open"
    """The endpoint keeps failing or hanging: only a few attempts at a time go there, to see whether
    it is back."""

    HALF_OPEN = "half_open"
    """Open, with such an attempt under way."""


class EndpointStatus(Struct, frozen=True, kw_only=True):
    """An endpoint as one node sees it.

    `waiting` counts the claims that wait in this process, not those that were handed back to the
    store. `last_error` is the error of the last attempt that blamed the endpoint, even if others
    succeeded since; then `consecutive_failures` is 0.
    """

    endpoint: str
    state: EndpointState
    in_flight: int
    waiting: int
    consecutive_failures: int
    last_error: str | None
    opened_at: Instant | None
