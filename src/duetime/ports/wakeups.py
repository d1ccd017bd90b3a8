"""Wake-ups: why the engine looks at the store sooner than planned."""

from typing import Protocol

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber


class WakeUps(Protocol):
    """Announcements of new due instants.

    An announcement is a hint, never the truth: a lost one costs at most the time until the
    next fallback poll or search for stragglers, a superfluous one costs one look at the store.
    """

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        """A timer of `shard` may now be due at `due_at`.

        Called after the write is durable, so that a reader that looks because of it finds the
        timer. Returns at once and never raises.
        """
        ...
