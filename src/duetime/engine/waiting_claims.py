"""Claims of one namespace that wait for their turn at one endpoint."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator

from duetime.domain.keys import ShardNumber
from duetime.domain.timer import Claim
from duetime.engine.quota import Quota
from duetime.engine.slots import Slots, size_of

GIVE_UP_AFTER_SECONDS = 0.25
"""A lane that cannot grow and in which nothing was answered for so long hands back what waits.
Where the first claim waits for so long, claims are sent too slowly for others to wait for it."""

FIRST_DEFERRAL_MS = 250.0
LONGEST_DEFERRAL_MS = 5_000.0

MAX_WAITING = 2_048
MAX_WAITING_BYTES = 8 * 2**20
"""Large claims wait in the store rather than here."""

MEASURED_SECONDS = LONGEST_DEFERRAL_MS / 1_000
"""For how long, at most, one counts what is started to tell how fast that goes."""


class WaitingClaims:
    """A queue of its own for each namespace in each lane, so that a namespace that may not send
    any more keeps nobody waiting who calls the same endpoint.

    They flow as long as the first one gets its turn soon; then the engine claims no more than
    can be sent. Those that do not flow stop counting against what the engine may claim.
    """

    def __init__(
        self, slots: Slots, quota: Quota, resume: Callable[["WaitingClaims", float], None]
    ) -> None:
        self._slots = slots
        self._resume = resume
        self._claims: deque[tuple[Claim, float, int]] = deque()
        """Each with the time since when it waits, and its size."""
        self._bytes = 0
        self._started = 0.0
        self._measured_since_seconds = 0.0
        self._deferral_ms = FIRST_DEFERRAL_MS
        self._round_ends_seconds = 0.0
        self.quota = quota
        self.flow = True
        """Claims get their turn soon here, and so count against what the engine may claim."""
        self.has_reservation = False
        """There is room in the quota for the first one, as soon as it is its turn in the lane."""
        self.is_in_line = False
        """It waits for its turn, be it the lane's or the namespace's."""

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Claim]:
        return (claim for claim, _, _ in self._claims)

    def add(self, claim: Claim, now_seconds: float) -> bool:
        """False when there are too many already."""
        size = size_of(claim)
        if not self._claims:
            self._started, self._measured_since_seconds = 0.0, now_seconds
        elif len(self._claims) >= MAX_WAITING or self._bytes + size > MAX_WAITING_BYTES:
            return False
        self._claims.append((claim, now_seconds, size))
        self._bytes += size
        self._slots.waiting += self.flow
        self.quota.waiting += 1
        return True

    def start_first(self) -> Claim:
        """Take out the first one, whose attempt begins now and counts in the quota."""
        if self.has_reservation:
            self.has_reservation = False
        else:
            self.quota.in_flight += 1
        claim, _, size = self._claims.popleft()
        self._slots.waiting -= self.flow
        self.quota.waiting -= 1
        self._bytes -= size
        self._started += 1
        return claim

    def reserve(self) -> None:
        """Keep room in the quota until the lane has a turn for it. Otherwise the two might never
        come together while others use both."""
        self.quota.in_flight += 1
        self.has_reservation = True

    def resume(self, now_seconds: float) -> None:
        self.is_in_line = False
        if self._claims:
            self._resume(self, now_seconds)

    def take(self, shards: Collection[ShardNumber] | None = None) -> list[Claim]:
        """Take out all, or those of some shards, to hand them back."""
        if shards is None:
            return self._take_last(len(self._claims))
        taken = [entry for entry in self._claims if entry[0].shard in shards]
        kept = [entry for entry in self._claims if entry[0].shard not in shards]
        self._claims = deque(kept + taken)
        return self._take_last(len(taken))

    def take_beyond_reach(self, now_seconds: float) -> list[Claim]:
        """Take out, to hand it back, what will not get its turn before it would return."""
        measured_seconds = now_seconds - self._measured_since_seconds
        if measured_seconds < GIVE_UP_AFTER_SECONDS:
            return []
        rate = self._started / measured_seconds
        if measured_seconds > MEASURED_SECONDS:
            self._started /= 2
            self._measured_since_seconds = now_seconds - measured_seconds / 2
        reach = math.ceil(rate * LONGEST_DEFERRAL_MS / 1_000)
        return self._take_last(max(0, len(self._claims) - reach))

    def keep_waiting(self, now_seconds: float) -> bool:
        """The first one has waited for too long."""
        return bool(self._claims) and now_seconds - self._claims[0][1] >= GIVE_UP_AFTER_SECONDS

    def set_flow(self, flow: bool) -> None:
        if flow is not self.flow:
            self._slots.waiting += len(self._claims) * (flow - self.flow)
            self.flow = flow

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

    def expect_more(self, now_seconds: float) -> bool:
        """What was handed back may not have had the time to return."""
        return now_seconds < self._round_ends_seconds + self._deferral_ms / 1_000

    def _take_last(self, count: int) -> list[Claim]:
        taken = [self._claims.pop() for _ in range(count)]
        taken.reverse()
        self._slots.waiting -= count * self.flow
        self.quota.waiting -= count
        self._bytes -= sum(size for _, _, size in taken)
        if self.has_reservation and not self._claims:
            self.has_reservation = False
            self.quota.in_flight -= 1
        return [claim for claim, _, _ in taken]
