"""Claims of one namespace that wait for their turn at one endpoint."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator

from duetime.domain.keys import ShardNumber
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Claim
from duetime.engine.lanes.deferrals import LONGEST_DEFERRAL_MS, Deferrals
from duetime.engine.lanes.quota import Quota
from duetime.engine.lanes.slots import Slots, WaitingRoom, size_of
from duetime.engine.wait_log import Waited

GIVE_UP_AFTER_SECONDS = 0.25
"""Time without an answer after which a lane that cannot grow hands back its waiting claims. Where
the first claim waits for this long, claims are sent too slowly for others to wait behind it."""

MEASURED_SECONDS = LONGEST_DEFERRAL_MS / 1_000
"""Longest time over which the rate of starts is measured."""


class WaitingClaims:
    """The queue of one namespace in one lane. Each namespace has its own, so that a
    namespace at its limit does not hold up others that call the same endpoint.

    The queue flows as long as its first claim gets its turn soon. Waiting claims count against
    the claims that the engine may hold, but only while their queue flows.
    """

    def __init__(
        self,
        slots: Slots,
        room: WaitingRoom,
        quota: Quota,
        resume: Callable[["WaitingClaims", float], None],
    ) -> None:
        self._slots = slots
        self._room = room
        self._resume = resume
        self._claims: deque[tuple[Claim, float, int, WaitCause]] = deque()
        """Each claim with the time it was added at, its size, and why it waits."""
        self._started = 0.0
        self._measured_since_seconds = 0.0
        self._deferrals = Deferrals()
        self.quota = quota
        self.flow = True
        """Claims get their turn soon here, so they count against the claims the engine may hold."""
        self.has_reservation = False
        """The quota has room for the first claim as soon as the lane has a turn for it."""
        self.is_in_line = False
        """The queue waits for its turn in the lane or in the quota."""

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Claim]:
        return (entry[0] for entry in self._claims)

    def add(self, claim: Claim, now_seconds: float, cause: WaitCause) -> bool:
        """False when there is no room."""
        size = size_of(claim)
        if not self._room.has_room(size, len(self._claims)):
            return False
        if not self._claims:
            self._started, self._measured_since_seconds = 0.0, now_seconds
        self._claims.append((claim, now_seconds, size, cause))
        self._room.enter(size)
        self._slots.waiting += self.flow
        self.quota.waiting += 1
        return True

    def start_first(self, now_seconds: float) -> tuple[Claim, Waited]:
        """Take out the first claim, with its wait; its attempt begins now and counts in the
        quota."""
        if self.has_reservation:
            self.has_reservation = False
        else:
            self.quota.in_flight += 1
        claim, since_seconds, size, cause = self._claims.popleft()
        self._slots.waiting -= self.flow
        self.quota.waiting -= 1
        self._room.leave(size)
        self._started += 1
        self._deferrals.moved()
        return claim, (cause, now_seconds - since_seconds)

    def reserve(self) -> None:
        """Keep room in the quota until the lane has a turn. Otherwise the two might never come
        together while others use both."""
        self.quota.in_flight += 1
        self.has_reservation = True

    def resume(self, now_seconds: float) -> None:
        self.is_in_line = False
        if self._claims:
            self._resume(self, now_seconds)

    def take(self, shards: Collection[ShardNumber] | None = None) -> list[Claim]:
        """Take out all claims, or those of some shards, to hand them back."""
        if shards is None:
            return self._take_last(len(self._claims))
        taken = [entry for entry in self._claims if entry[0].shard in shards]
        kept = [entry for entry in self._claims if entry[0].shard not in shards]
        self._claims = deque(kept + taken)
        return self._take_last(len(taken))

    def take_beyond_reach(self, under_way: float, now_seconds: float) -> list[Claim]:
        """Take out, to hand back, the claims that would wait here longer than the longest deferral
        lasts. A turn comes when one of the `under_way` attempts ends."""
        if now_seconds - self._measured_since_seconds < GIVE_UP_AFTER_SECONDS:
            return []
        per_second = self._starts_per_second(under_way, now_seconds)
        reach = math.ceil(per_second * LONGEST_DEFERRAL_MS / 1_000)
        return self._take_last(max(0, len(self._claims) - reach))

    def first_waits_too_long(self, now_seconds: float) -> bool:
        """The first claim has waited for too long."""
        return bool(self._claims) and now_seconds - self._claims[0][1] >= GIVE_UP_AFTER_SECONDS

    def set_flow(self, flow: bool) -> None:
        if flow is not self.flow:
            self._slots.waiting += len(self._claims) * (flow - self.flow)
            self.flow = flow

    def next_deferral_ms(
        self, under_way: float, returns_per_second: float, now_seconds: float, *, may_grow: bool
    ) -> float:
        """The deferral of a claim that is handed back now.

        `under_way` attempts are under way. `returns_per_second` claims may return in a second even
        if fewer get their turn. With `may_grow` more attempts may soon be under way, so the wait
        for a turn is unknown.
        """
        per_second = self._starts_per_second(under_way, now_seconds)
        return self._deferrals.next_ms(
            now_seconds,
            turn_in_seconds=0.0 if may_grow else len(self._claims) / per_second,
            returns_per_second=max(returns_per_second, per_second),
        )

    def expect_more(self, now_seconds: float) -> bool:
        """Some deferred claims may not have had the time to return."""
        return self._deferrals.expect_more(now_seconds)

    def held(self, now_seconds: float) -> int:
        """The number of claims that wait here or were deferred."""
        return len(self._claims) + self._deferrals.away(now_seconds)

    def _starts_per_second(self, under_way: float, now_seconds: float) -> float:
        """The best rate to expect: every attempt under way may end at any moment. Too many waiting
        claims cost little; too few leave slots unused until others return."""
        measured_seconds = now_seconds - self._measured_since_seconds
        while measured_seconds > MEASURED_SECONDS:
            self._started /= 2
            measured_seconds /= 2
            self._measured_since_seconds = now_seconds - measured_seconds
        return (max(1, under_way) + self._started) / max(measured_seconds, GIVE_UP_AFTER_SECONDS)

    def _take_last(self, count: int) -> list[Claim]:
        taken = [self._claims.pop() for _ in range(count)]
        taken.reverse()
        self._slots.waiting -= count * self.flow
        self.quota.waiting -= count
        for entry in taken:
            self._room.leave(entry[2])
        if self.has_reservation and not self._claims:
            self.has_reservation = False
            self.quota.in_flight -= 1
        return [entry[0] for entry in taken]
