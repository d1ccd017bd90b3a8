"""What the engine tells of the endpoints it calls."""

from enum import Enum

from msgspec import Struct

from duetime.domain.instants import Instant


class EndpointState(Enum):
    CLOSED = "closed"
    """Called as usual."""

    OPEN = "open"
    """It keeps failing or hanging: only a few attempts at a time go there, to see whether it
    is back."""

    HALF_OPEN = "half_open"
    """Open, and such an attempt is under way."""


class EndpointStatus(Struct, frozen=True, kw_only=True):
    """An endpoint as one node sees it.

    `waiting` counts the claims that wait in this process; what was handed back waits in the
    store and is not known here. `last_error` is that of the last attempt that blamed the
    endpoint, even if others went well since; `consecutive_failures` tells whether they did.
    """

    endpoint: str
    state: EndpointState
    in_flight: int
    waiting: int
    consecutive_failures: int
    last_error: str | None
    opened_at: Instant | None
