"""Reads of the store by requests: what is in memory may be too old, or lack a new credential."""

import asyncio

from duetime.domain.errors import StoreUnavailable
from duetime.domain.security.credentials import RateLimit
from duetime.ports.clock import Clock
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.token_bucket import TokenBucket

OLDEST_SECONDS = 4.0
"""Age of the credentials in memory above which they are read again before one is accepted. With the
time that the read may take, a revoked one stops within 5 seconds even if the watch is stuck."""

REFRESH_TIMEOUT_SECONDS = 4.0
"""Time that a request waits for the credentials to be read."""

UNKNOWN_IDS = RateLimit(per_second=10, burst=20)
"""Reads of the store for ids that are unknown here, by requests of all addresses."""


class FreshCredentials:
    """Lets the watch read when a request needs it: many requests wait for one read."""

    def __init__(self, watch: CredentialWatch, clock: Clock) -> None:
        self._watch = watch
        self._clock = clock
        self._reading: asyncio.Task[None] | None = None
        self._unknown_ids = TokenBucket(UNKNOWN_IDS, clock.monotonic())

    def are_old(self, now_seconds: float) -> bool:
        """Whether the credentials in memory have to be read before one is accepted."""
        refreshed_at_seconds = self._watch.refreshed_at_seconds
        return refreshed_at_seconds is None or now_seconds - refreshed_at_seconds > OLDEST_SECONDS

    async def read(self) -> None:
        """Read the credentials, together with all who wait for that. A read is never given up
        half-way, because others may wait for it. Raises `StoreUnavailable`."""
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._watch.refresh())
            self._reading.add_done_callback(self._has_read)
        reading = self._reading
        done, _ = await asyncio.wait({reading}, timeout=REFRESH_TIMEOUT_SECONDS)
        if not done:
            raise StoreUnavailable("the keys cannot be read now, try again later")
        reading.result()

    async def read_for_unknown(self) -> bool:
        """Read what another node may have added a moment ago. False if there were too many such
        reads; then nothing was read. Raises `StoreUnavailable`."""
        if self._unknown_ids.take(self._clock.monotonic()):
            return False
        if self._reading is not None:
            # It may have read the store before the credential was there.
            await self.read()
        await self.read()
        return True

    def _has_read(self, reading: "asyncio.Task[None]") -> None:
        self._reading = None
        if not reading.cancelled():
            # Nobody may be waiting for it any more.
            reading.exception()
