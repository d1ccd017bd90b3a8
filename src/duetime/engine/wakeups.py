"""Wakes the due reader of this process: for an announced instant, or for room for more claims."""

import asyncio
from collections.abc import Callable

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber


class LocalWakeUps:
    """Implements the wake-ups port for this process. The due reader waits for `woken`."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.announced_at: Instant | None = None
        """The earliest instant announced since the reader's last look at the store."""
        self.claimed_until: Instant | None = None
        """The instant until which the reader claims or has claimed; timers that are announced for
        earlier have to be looked for."""
        self._behind: dict[ShardNumber, Instant] = {}
        self.sleeping_for: Instant | None = None
        """The instant for which the reader sleeps; an earlier one wakes it."""
        self._has_room: Callable[[], bool] | None = None

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        if self.claimed_until is not None and due_at <= self.claimed_until:
            behind = self._behind.get(shard)
            if behind is None or due_at < behind:
                self._behind[shard] = due_at
        if self.announced_at is None or due_at < self.announced_at:
            self.announced_at = due_at
            if self.sleeping_for is None or due_at < self.sleeping_for:
                self.woken.set()

    def take_announced(self) -> dict[ShardNumber, Instant]:
        """The earliest instant announced in each shard that was claimed beyond it."""
        behind, self._behind = self._behind, {}
        self.announced_at = None
        return behind

    def wake_when(self, has_room: Callable[[], bool]) -> None:
        """Wake the reader, once, when there is room."""
        self._has_room = has_room
        self.check_room()

    def check_room(self) -> None:
        """Called wherever claims leave memory."""
        if self._has_room is not None and self._has_room():
            self._has_room = None
            self.woken.set()
