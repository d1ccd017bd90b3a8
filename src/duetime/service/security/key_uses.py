"""The background loop that notes when keys were used last, and logs which were refused."""

from duetime.background import BackgroundLoop
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore
from duetime.service.security.key_ring import KeyRing

WRITE_SECONDS = 60.0
"""Time between two writes of last uses, and between two log lines about refused keys."""

LAST_WRITE_SECONDS = 1.0
"""Time for the last write when the service stops."""


class KeyUses(BackgroundLoop):
    """Writes the uses of all keys together, so that no request waits for it, and sums refusals up,
    so that no attack fills the log. When it stops, it does both once more."""

    name = "key-uses"

    def __init__(self, store: SecurityStore, ring: KeyRing, clock: Clock) -> None:
        super().__init__(clock)
        self._store = store
        self._ring = ring

    async def step(self) -> None:
        await self.wait(WRITE_SECONDS)
        self._ring.report_refusals()
        await self._ring.write_uses(self._store)
