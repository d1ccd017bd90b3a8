"""What nodes that share a store tell each other. Hints only: any of them may get lost."""

from collections.abc import Mapping
from typing import Protocol

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber


class SignalReceiver(Protocol):
    """Called on the event loop. Returns at once and never raises."""

    def due_announced(self, due: Mapping[ShardNumber, Instant]) -> None:
        """Timers of these shards may now be due at these instants."""
        ...

    def shards_changed(self) -> None:
        """Somebody joined, left or released shards."""
        ...

    def signals_missed(self) -> None:
        """Signals may have got lost until now: look at everything once."""
        ...


class NodeSignals(Protocol):
    """A channel to all nodes of the store. What a node sends may come back to itself."""

    async def start(self, receiver: SignalReceiver) -> None:
        """Receive from now on. A connection that breaks is made again in the background, and
        `signals_missed` is called once it is there."""
        ...

    async def stop(self) -> None:
        """Receive nothing more. Idempotent."""
        ...

    async def announce_due(self, due: Mapping[ShardNumber, Instant]) -> None:
        """Raises `StoreUnavailable` when the signal cannot be sent."""
        ...

    async def announce_shards_changed(self) -> None:
        """Raises `StoreUnavailable` when the signal cannot be sent."""
        ...
