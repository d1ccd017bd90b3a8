"""An event loop that can be paused, as SIGSTOP or a busy host pauses a process."""

import asyncio
import selectors
from threading import Event

from tests.polling import PATIENCE_SECONDS


class PausingSelector(selectors.DefaultSelector):
    """After `pause`, the loop stands still until bytes have arrived and `seconds` have passed.

    A wait that a signal ends reports nothing, even if something has arrived meanwhile. So the loop
    finds that its timers are due before it reads from its sockets.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pause_seconds = 0.0

    def pause(self, seconds: float) -> None:
        """Pause the loop in its next turn."""
        self._pause_seconds = seconds

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._pause_seconds:
            return super().select(timeout)
        assert super().select(PATIENCE_SECONDS), "nothing arrived"
        Event().wait(self._pause_seconds)
        self._pause_seconds = 0.0
        return []

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.SelectorEventLoop(self)
