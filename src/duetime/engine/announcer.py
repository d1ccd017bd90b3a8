"""Announces new due instants to the due reader here or to the nodes that own the shards."""

from duetime.background import BackgroundLoop
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import ShardNumber
from duetime.engine.held_leases import HeldLeases
from duetime.engine.options import EngineOptions
from duetime.engine.wakeups import LocalWakeUps
from duetime.ports.clock import Clock
from duetime.ports.signals import NodeSignals

MARGIN_SECONDS = 1.0
"""Time beyond the owner's poll interval for which instants are still announced."""


class Announcer(BackgroundLoop):
    """Implements the wake-ups port for a cluster.

    While one signal is being sent, the next one gathers: one instant for each shard, however
    many timers. A signal that cannot be sent is not kept: the owner finds the timers by its next
    poll, or by its search for stragglers if they are due before what it has claimed.
    """

    name = "announcer"

    def __init__(
        self,
        local: LocalWakeUps,
        held: HeldLeases,
        signals: NodeSignals,
        clock: Clock,
        options: EngineOptions,
    ) -> None:
        super().__init__(clock)
        self._local = local
        self._held = held
        self._signals = signals
        self._soon_ms = (options.poll_seconds + MARGIN_SECONDS) * 1_000
        self._gathered: dict[ShardNumber, Instant] = {}
        self._shards_changed = False

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        if shard in self._held.claimable:
            self._local.announce(shard, due_at)
            return
        # The owner's polls find later timers in time.
        if due_at > plus_ms(self._clock.now(), self._soon_ms):
            return
        gathered = self._gathered.get(shard)
        if gathered is None or due_at < gathered:
            self._gathered[shard] = due_at
            self.wake()

    def announce_shards_changed(self) -> None:
        """Tell all nodes that a node joined, left or released shards."""
        self._shards_changed = True
        self.wake()

    async def step(self) -> None:
        if self._shards_changed:
            self._shards_changed = False
            await self._signals.announce_shards_changed()
        elif self._gathered:
            due, self._gathered = self._gathered, {}
            await self._signals.announce_due(due)
        else:
            await self.wait(None)
