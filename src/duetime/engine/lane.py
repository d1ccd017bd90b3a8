"""Fairness between endpoints: each has a lane of its own."""

from collections import deque
from collections.abc import Callable, Collection

from msgspec import UNSET

from duetime.domain.callback import BusCallback
from duetime.domain.keys import ShardNumber
from duetime.domain.timer import Claim

FIRST_WINDOW = 64
"""Attempts at once in a new lane. A quick endpoint needs no more; a slow one soon gets more."""

GROW_AFTER_SECONDS = 0.025
"""A full lane in which nothing was answered for so long is given twice the window."""

GIVE_UP_AFTER_SECONDS = 0.25
"""A lane that cannot grow and in which nothing was answered for so long hands back what waits.
One whose first claim waits for so long answers too slowly for others to wait for it."""

FIRST_DEFERRAL_MS = 250.0
LONGEST_DEFERRAL_MS = 5_000.0

MAX_WAITING = 2_048
MAX_WAITING_BYTES = 8 * 2**20
"""Large claims wait in the store rather than here."""

MAX_BYTES_IN_FLIGHT = 64 * 2**20


def size_of(claim: Claim) -> int:
    """The bytes of its payload, which are most of what a large claim keeps in memory."""
    callback = claim.callback
    if isinstance(callback, BusCallback) or callback.payload is UNSET:
        return 0
    return memoryview(callback.payload).nbytes


class Slots:
    """The attempts that may run at the same time, shared by all lanes, and their bytes.

    A lane may have as many of them as are free. So one endpoint that hangs takes at most half,
    two take a third each, and some are always left for the others.
    """

    def __init__(self, total: int, per_endpoint: int) -> None:
        self.total = total
        self.per_endpoint = per_endpoint
        self.used = 0
        self.used_bytes = 0
        self.waiting = 0
        """Claims that wait in lanes that flow."""

    def limit(self) -> int:
        return min(self.per_endpoint, self.total - self.used)

    def byte_limit(self) -> int:
        return MAX_BYTES_IN_FLIGHT - self.used_bytes


class Lane:
    """The attempts under way to one endpoint and the claims that wait for their turn.

    A lane flows as long as its claims get their turn soon; then the engine claims no more than
    the lane can send. A lane that does not flow stops counting against what the engine may
    claim. When no answers come at all it grows, and at last hands its waiting claims back to
    the store, to be claimed again a little later: they are then free to be canceled, and
    nobody waits for them.
    """

    def __init__(
        self, slots: Slots, start: Callable[["Lane", Claim], None], now_seconds: float
    ) -> None:
        self._slots = slots
        self._start = start
        self._window = FIRST_WINDOW
        self._progress_seconds = now_seconds
        self._gave_up = False
        self._deferral_ms = FIRST_DEFERRAL_MS
        self._round_ends_seconds = 0.0
        self.in_flight = 0
        self._bytes_in_flight = 0
        self._waiting_bytes = 0
        self.waiting: deque[Claim] = deque()
        self._waiting_since: deque[float] = deque()
        self._flows = True

    @property
    def is_idle(self) -> bool:
        return self.in_flight == 0 and not self.waiting

    def accept(self, claim: Claim, now_seconds: float) -> bool:
        """Start the claim or let it wait; False when it must be handed back."""
        if not self.waiting and self._may_start():
            self._begin(claim)
            return True
        size = size_of(claim)
        if (
            self._gave_up
            or len(self.waiting) >= MAX_WAITING
            or (self.waiting and self._waiting_bytes + size > MAX_WAITING_BYTES)
        ):
            return False
        self.waiting.append(claim)
        self._waiting_bytes += size
        self._waiting_since.append(now_seconds)
        self._slots.waiting += self._flows
        return True

    def answered(self, claim: Claim, now_seconds: float) -> None:
        """An attempt is over: its slot is free for the next."""
        size = size_of(claim)
        self.in_flight -= 1
        self._slots.used -= 1
        self._bytes_in_flight -= size
        self._slots.used_bytes -= size
        self._progress_seconds = now_seconds
        self._gave_up = False
        self._start_waiting()
        self._set_flows(not self._keeps_waiting(now_seconds))
        if not self.waiting:
            self._deferral_ms = FIRST_DEFERRAL_MS
            self._round_ends_seconds = 0.0

    def look_after(self, now_seconds: float) -> list[Claim]:
        """Use slots that other lanes gave back; grow or give up when nothing was answered for
        a while. Answers the claims to hand back."""
        self._start_waiting()
        quiet_seconds = now_seconds - self._progress_seconds
        if not self.waiting or quiet_seconds < GROW_AFTER_SECONDS:
            self._set_flows(not self._keeps_waiting(now_seconds))
            return []
        self._set_flows(False)
        if self._window < self._slots.limit():
            self._window *= 2
            self._start_waiting()
            return []
        if quiet_seconds < GIVE_UP_AFTER_SECONDS:
            return []
        self._gave_up = True
        return self.take_waiting()

    def take_waiting(self, shards: Collection[ShardNumber] | None = None) -> list[Claim]:
        """Take what waits out of the lane: all of it, or that of some shards."""
        kept: deque[Claim] = deque()
        kept_since: deque[float] = deque()
        taken = []
        for claim, since in zip(self.waiting, self._waiting_since, strict=True):
            if shards is None or claim.shard in shards:
                taken.append(claim)
                self._waiting_bytes -= size_of(claim)
            else:
                kept.append(claim)
                kept_since.append(since)
        self.waiting, self._waiting_since = kept, kept_since
        self._slots.waiting -= len(taken) * self._flows
        return taken

    def next_deferral_ms(self, now_seconds: float) -> float:
        """How long the claims handed back now stay away.

        All that is handed back before the first of it returns stays away equally long; if
        nothing has moved until then, the next round is twice as long.
        """
        if now_seconds >= self._round_ends_seconds:
            if self._round_ends_seconds:
                self._deferral_ms = min(2 * self._deferral_ms, LONGEST_DEFERRAL_MS)
            self._round_ends_seconds = now_seconds + self._deferral_ms / 1_000
        return self._deferral_ms

    def _start_waiting(self) -> None:
        while self.waiting and self._may_start():
            self._slots.waiting -= self._flows
            self._waiting_since.popleft()
            claim = self.waiting.popleft()
            self._waiting_bytes -= size_of(claim)
            self._begin(claim)

    def _keeps_waiting(self, now_seconds: float) -> bool:
        since = self._waiting_since
        return bool(since) and now_seconds - since[0] >= GIVE_UP_AFTER_SECONDS

    def _set_flows(self, flows: bool) -> None:
        self._slots.waiting += len(self.waiting) * (flows - self._flows)
        self._flows = flows

    def _may_start(self) -> bool:
        return self.in_flight < min(self._window, self._slots.limit()) and (
            self._bytes_in_flight == 0 or self._bytes_in_flight < self._slots.byte_limit()
        )

    def _begin(self, claim: Claim) -> None:
        size = size_of(claim)
        self.in_flight += 1
        self._slots.used += 1
        self._bytes_in_flight += size
        self._slots.used_bytes += size
        self._start(self, claim)
