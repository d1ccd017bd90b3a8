"""Signals between the nodes that share a store. They are hints: any of them may be lost."""

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
        """A node joined, left or released shards."""
        ...

    def signals_missed(self) -> None:
        """Signals may have been lost until now: look at everything once."""
        ...


class NodeSignals(Protocol):
    """A channel to all nodes of the store. A node may receive its own signals."""

    async def start(self, receiver: SignalReceiver) -> None:
        """Receive from now on. A broken connection is made again in the background, and then
        `signals_missed` is called."""
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
