"""One shard: its lease and its live timers."""

from duetime.domain.keys import Epoch, TimerKey
from duetime.stores.memory.due_queue import DueQueue


class Shard:
    """`pending` and `executing` together hold the keys of all live timers of the shard."""

    __slots__ = ("epoch", "executing", "owner", "pending")

    def __init__(self) -> None:
        self.epoch = Epoch(0)
        self.owner: str | None = None
        self.pending = DueQueue()
        self.executing: set[TimerKey] = set()
