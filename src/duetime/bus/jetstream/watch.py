"""Looking at a channel of the bus on NATS."""

import asyncio
from collections import deque
from contextlib import suppress

from nats.aio.msg import Msg

DEDUPLICATION_SECONDS = 120.0
MOST_WAITING = 10_000
MOST_REMEMBERED = 100_000


class Watch:
    """Listens beside the streams, because a stream that is a queue has no room for another
    consumer. So it hears what a stream drops as a repeat, and drops it likewise."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._something = asyncio.Event()
        self._has_ended = False
        self._heard_at: dict[str, float] = {}

    def take(self, message: Msg) -> None:
        """Of those that wait too long for somebody to look at them, the oldest go."""
        if not self._is_repeat((message.headers or {}).get("Nats-Msg-Id")):
            self._waiting.append(message.data)
            self._something.set()

    def drop(self, id: str | None, data: bytes) -> None:
        """One that was looked at already, whether it was heard or is still to be."""
        if id is None or self._is_repeat(id):
            with suppress(ValueError):
                self._waiting.remove(data)

    def end(self) -> None:
        self._has_ended = True
        self._something.set()

    async def next(self) -> bytes | None:
        """None when it has ended."""
        while not self._waiting:
            if self._has_ended:
                return None
            self._something.clear()
            await self._something.wait()
        return self._waiting.popleft()

    def _is_repeat(self, id: str | None) -> bool:
        if id is None:
            return False
        now = asyncio.get_running_loop().time()
        heard_at = self._heard_at.get(id)
        if heard_at is not None and now < heard_at + DEDUPLICATION_SECONDS:
            return True
        self._heard_at.pop(id, None)
        self._heard_at[id] = now
        if len(self._heard_at) > MOST_REMEMBERED:
            del self._heard_at[next(iter(self._heard_at))]
        return False
