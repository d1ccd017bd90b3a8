"""Claims of endpoints without a slot that wait for one of those that many endpoints share."""

from collections import deque
from collections.abc import Callable, Collection, Iterator

from duetime.domain.keys import ShardNumber
from duetime.domain.timer import Claim
from duetime.engine.lanes.deferrals import LONGEST_DEFERRAL_MS, RETURNS_PER_SECOND, Deferrals
from duetime.engine.lanes.slots import MAX_WAITING, MAX_WAITING_BYTES, Slots, size_of
from duetime.engine.lanes.standing import Standing
from duetime.engine.lanes.waiting_claims import GIVE_UP_AFTER_SECONDS, MEASURED_SECONDS

Waiting = tuple[str, Claim, float]
"""An endpoint, a claim for it, and the time since which the claim waits."""


class Line:
    """The claims of endpoints of one standing, first come, first served.

    Claims wait here for as long as slots become free one after the other, and only if they are
    likely to get theirs within a few seconds. The others are handed back to the store.
    """

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._bytes = 0
        self._freed = 0.0
        self._measured_since_seconds = 0.0
        self._progress_seconds = 0.0
        self._deferrals = Deferrals()
        self.stands = False
        """No slot became free for a while: nobody may line up until one does."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Claim]:
        return (claim for _, claim, _ in self._waiting)

    def add(self, endpoint: str, claim: Claim, now_seconds: float) -> bool:
        """False when the claim must be handed back."""
        size = size_of(claim)
        if self.stands or len(self._waiting) >= MAX_WAITING:
            return False
        if self._bytes and self._bytes + size > MAX_WAITING_BYTES:
            return False
        if not self._waiting:
            self._progress_seconds = self._measured_since_seconds = now_seconds
            self._freed = 0.0
        self._waiting.append((endpoint, claim, now_seconds))
        self._bytes += size
        return True

    def take_first(self) -> Waiting:
        waiting = self._waiting.popleft()
        self._bytes -= size_of(waiting[1])
        return waiting

    def take(self, is_taken: Callable[[Claim], bool]) -> list[Claim]:
        taken = [claim for _, claim, _ in self._waiting if is_taken(claim)]
        if taken:
            self._waiting = deque(each for each in self._waiting if not is_taken(each[1]))
            self._bytes -= sum(map(size_of, taken))
        return taken

    def slot_freed(self, now_seconds: float) -> None:
        self.stands = False
        self._progress_seconds = now_seconds
        self._freed += 1
        self._deferrals.moved()

    def take_beyond_reach(self, now_seconds: float) -> list[Claim]:
        """Take out the claims that do not get a slot soon, to hand them back."""
        if now_seconds - self._progress_seconds >= GIVE_UP_AFTER_SECONDS:
            self.stands = True
            return self._take_last(len(self._waiting))
        if now_seconds - self._measured_since_seconds < GIVE_UP_AFTER_SECONDS:
            return []
        reach = 1 + int(self._freed_per_second(now_seconds) * LONGEST_DEFERRAL_MS / 1_000)
        return self._take_last(max(0, len(self._waiting) - reach))

    def next_deferral_ms(self, now_seconds: float) -> float:
        per_second = max(1.0, self._freed_per_second(now_seconds))
        return self._deferrals.next_ms(
            now_seconds,
            turn_in_seconds=len(self._waiting) / per_second,
            returns_per_second=max(RETURNS_PER_SECOND, per_second),
        )

    def _freed_per_second(self, now_seconds: float) -> float:
        measured_seconds = now_seconds - self._measured_since_seconds
        while measured_seconds > MEASURED_SECONDS:
            self._freed /= 2
            measured_seconds /= 2
            self._measured_since_seconds = now_seconds - measured_seconds
        return self._freed / max(measured_seconds, GIVE_UP_AFTER_SECONDS)

    def _take_last(self, count: int) -> list[Claim]:
        taken = [self._waiting.pop()[1] for _ in range(count)]
        taken.reverse()
        self._bytes -= sum(map(size_of, taken))
        return taken


class Crowd:
    """One line for each standing. Endpoints that are more likely to answer go first."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._lines = {standing: Line() for standing in Standing}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __iter__(self) -> Iterator[Claim]:
        for line in self._lines.values():
            yield from line

    def add(self, standing: Standing, endpoint: str, claim: Claim, now_seconds: float) -> bool:
        """False when the claim must be handed back."""
        self._slots.is_crowded = True
        return self._lines[standing].add(endpoint, claim, now_seconds)

    def slot_freed(self, now_seconds: float) -> None:
        for line in self._lines.values():
            line.slot_freed(now_seconds)

    def take_next(self) -> Waiting | None:
        """The next claim that there is a slot for, with its endpoint."""
        for standing, line in self._lines.items():
            if line and self._slots.limit(standing) > 0:
                return line.take_first()
        self._slots.is_crowded = any(line or line.stands for line in self._lines.values())
        return None

    def take(self, shards: Collection[ShardNumber] | None = None) -> list[Claim]:
        """Take out all claims, or those of some shards, to hand them back."""
        return [
            claim
            for line in self._lines.values()
            for claim in line.take(lambda claim: shards is None or claim.shard in shards)
        ]

    def take_beyond_reach(self, now_seconds: float) -> list[tuple[Standing, Claim]]:
        """Take out the claims that do not get a slot soon, to hand them back."""
        return [
            (standing, claim)
            for standing, line in self._lines.items()
            if line
            for claim in line.take_beyond_reach(now_seconds)
        ]

    def next_deferral_ms(self, standing: Standing, now_seconds: float) -> float:
        """The deferral of a claim that is handed back now."""
        return self._lines[standing].next_deferral_ms(now_seconds)
