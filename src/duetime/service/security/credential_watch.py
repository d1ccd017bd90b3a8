"""How a node keeps up with keys and secrets that any node changes."""

import asyncio
from collections.abc import Callable, Sequence

from duetime.background import BackgroundLoop
from duetime.domain.security.credentials import Credential
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore

REFRESH_SECONDS = 1.0
"""Time for which a change on one node may go unnoticed on the others."""

CredentialView = Callable[[Sequence[Credential]], None]
"""Sees all credentials, of every type. It must not raise: other views wait behind it."""


class CredentialWatch(BackgroundLoop):
    """Reads the credentials when they changed, and shows them to every view.

    While the store is away the views keep what they saw last.
    """

    name = "credential-watch"

    def __init__(self, store: SecurityStore, clock: Clock) -> None:
        super().__init__(clock)
        self._store = store
        self._views: list[CredentialView] = []
        self._version: int | None = None
        self._seen: Sequence[Credential] = ()
        self._reading = asyncio.Lock()
        self.refreshed_at_seconds: float | None = None
        """Monotonic instant of the latest read; None before the first one."""

    def subscribe(self, view: CredentialView) -> None:
        """Show all credentials to the view after every change; those already read at once."""
        self._views.append(view)
        if self._version is not None:
            view(self._seen)

    async def refresh(self) -> None:
        """Show the views what the store holds now. Every change that was made before the call is
        seen. Raises `StoreUnavailable`."""
        async with self._reading:
            asked_at_seconds = self._clock.monotonic()
            read = await self._store.credentials(self._version)
            if read is not None:
                for view in self._views:
                    view(read.credentials)
                self._version, self._seen = read.version, read.credentials
            self.refreshed_at_seconds = asked_at_seconds

    @property
    def seconds_since_refresh(self) -> float | None:
        """Age of what the views see; None before the first read."""
        if self.refreshed_at_seconds is None:
            return None
        return self._clock.monotonic() - self.refreshed_at_seconds

    async def step(self) -> None:
        await self.wait(REFRESH_SECONDS)
        await self.refresh()
