"""Finds pending timers that claims have passed by."""

from duetime.background import BackgroundLoop
from duetime.engine.claim_progress import ClaimProgress
from duetime.engine.held_leases import HeldLeases
from duetime.engine.options import EngineOptions
from duetime.engine.wakeups import LocalWakeUps
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore

REST_PER_SEARCH = 19
"""Rest after a search, in multiples of the time that it took: searches take a twentieth of one
database connection's time, however many dead rows they have to read past."""

LONGEST_REST_SECONDS = 60.0
"""Rest after a search, unless the polling interval is longer. Together with the time of a search
itself this bounds the lateness of a timer whose announcement got lost."""


class StragglerFinder(BackgroundLoop):
    """Searches below the position up to which everything is claimed, beside the claims.

    A timer gets there if it is written with an earlier instant. The writer announces it, so there
    is nothing to find, unless the writer died before, or its signal got lost.
    """

    name = "straggler_finder"

    def __init__(
        self,
        store: TimerStore,
        leases: HeldLeases,
        progress: ClaimProgress,
        wakeups: LocalWakeUps,
        clock: Clock,
        options: EngineOptions,
    ) -> None:
        super().__init__(clock, progress.doubted)
        self._store = store
        self._leases = leases
        self._progress = progress
        self._wakeups = wakeups
        self._poll_seconds = options.poll_seconds
        self._rest_seconds = options.poll_seconds

    async def step(self) -> None:
        await self.wait(self._rest_seconds)
        before = self._progress.due_at
        leases = self._leases.claimable
        if self._stopping or before is None or not leases:
            return
        began_seconds = self._clock.monotonic()
        found = await self._store.first_due(leases, before_exclusive=before)
        took_seconds = self._clock.monotonic() - began_seconds
        self._rest_seconds = max(
            self._poll_seconds, min(REST_PER_SEARCH * took_seconds, LONGEST_REST_SECONDS)
        )
        for shard, due_at in found.items():
            self._wakeups.announce(shard, due_at)
