"""Why claims wait, for as long as they are not sent. The attempt keeps it afterwards."""

from collections import deque
from collections.abc import Iterable

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.lateness.waits import (
    SHORTEST_WAIT,
    Interval,
    WaitCause,
    waiting_since,
    with_time,
    with_wait,
)
from duetime.domain.timer import Claim, Wait, Waits

MAX_REMEMBERED = 10_000
"""Timers that were handed back and whose waits are remembered. Beyond that, the oldest record goes,
and its timer shows that time as not recorded."""

REMEMBERED_INTERVALS = 64

SLOW_CLAIM = 100_000
"""Microseconds. A claim that takes longer shows that the store is slow, or was away."""

CLOCK_JUMP = MICROSECONDS_PER_SECOND
"""Change of the wall clock against the monotonic one from which it counts as set forward."""

_LONG_AGO = Instant(0)

Waited = tuple[WaitCause, float]
"""The cause for which a claim waited in this process, and the seconds."""


class WaitLog:
    """Kept in memory: to write it down would cost as much as the attempts. An end of the process
    loses it, and then the time shows as `not_recorded` or `node_down`, never as a guess.

    A timer that is sent in time costs nothing here.
    """

    def __init__(self) -> None:
        self.remembered: dict[str, tuple[list[Wait], Instant]] = {}
        """By delivery id: the waits of a timer that was handed back, and the instant at which they
        end. To be read only."""
        self._intervals: deque[Interval] = deque(maxlen=REMEMBERED_INTERVALS)
        self._taken: dict[ShardNumber, Interval] = {}
        self._asked_at: Instant | None = None
        self._clock_offset: int | None = None

    def shards_taken(self, shards: Iterable[ShardNumber], now: Instant, cause: WaitCause) -> None:
        """Until now nobody, or another node, looked after these shards."""
        interval = Interval(_LONG_AGO, now, cause)
        self._taken.update(dict.fromkeys(shards, interval))

    def asks_for_claims(self, now: Instant, now_seconds: float) -> None:
        if self._asked_at is None:
            self._asked_at = now
        offset = now - round(now_seconds * MICROSECONDS_PER_SECOND)
        if self._clock_offset is not None and (jump := offset - self._clock_offset) >= CLOCK_JUMP:
            self._intervals.append(Interval(Instant(now - jump), now, WaitCause.CLOCK))
        self._clock_offset = offset

    def got_claims(self, now: Instant) -> None:
        asked_at, self._asked_at = self._asked_at, None
        if asked_at is not None and now - asked_at >= SLOW_CLAIM:
            self._intervals.append(Interval(asked_at, now, WaitCause.STORE))

    def take_waits(self, claim: Claim, now: Instant, late: int, waited: Waited | None) -> Waits:
        """The waits of a claim that is sent now, `late` by so many microseconds. None if its
        instants tell as much."""
        waited_since = now
        if waited is not None:
            waited_since = Instant(now - int(waited[1] * MICROSECONDS_PER_SECOND))
        remembered = self.remembered.pop(claim.delivery_id, None)
        since = waiting_since(claim) if claim.attempts else Instant(now - late)
        if remembered is None and not self._knows_more(claim, since):
            if waited is None:
                return ()
            before, claimed_at = waited_since - since, claim.claimed_at
            if before < SHORTEST_WAIT:
                return (Wait(waited[0], now - since),)
            # The long way below says the same, but not as quickly: in a burst most timers wait
            # for their claim, and then in their lane.
            last = Wait(waited[0], now - waited_since)
            if last.microseconds >= SHORTEST_WAIT:
                if claimed_at <= since:
                    return (Wait(WaitCause.ENGINE, before), last)
                engine = waited_since - claimed_at
                if engine < SHORTEST_WAIT:
                    return (Wait(WaitCause.CLAIM, before), last)
                if before - engine >= SHORTEST_WAIT:
                    first = Wait(WaitCause.CLAIM, before - engine)
                    return (first, Wait(WaitCause.ENGINE, engine), last)
        waits, until = self._begun(claim, since, remembered)
        waited_since = Instant(max(waited_since, until))
        with_time(waits, until, waited_since, claim.claimed_at, self._known(claim, until))
        if waited is not None:
            with_wait(waits, waited[0], now - waited_since)
        return tuple(waits)

    def handed_back(
        self,
        claim: Claim,
        cause: WaitCause,
        *,
        now: Instant,
        due_at: Instant,
        tried: tuple[Waits, Instant] | None = None,
    ) -> None:
        """The claim goes back to the store until `due_at`. It waited for the same cause since its
        turn came, or since it was `tried`: after these waits, at that instant."""
        since = waiting_since(claim)
        if due_at <= since:
            return
        remembered = self.remembered.pop(claim.delivery_id, None)
        if tried is not None and tried[0]:
            waits, begin = list(tried[0]), tried[1]
        else:
            waits, until = self._begun(claim, since, remembered)
            # Its turn came when it was claimed and due.
            turn_at = min(now, max(claim.claimed_at, claim.due_at)) if tried is None else tried[1]
            begin = Instant(max(until, turn_at))
            with_time(waits, until, begin, claim.claimed_at, self._known(claim, until))
        with_wait(waits, cause, due_at - begin)
        self.remembered[claim.delivery_id] = waits, due_at
        if len(self.remembered) > MAX_REMEMBERED:
            del self.remembered[next(iter(self.remembered))]

    def waits_so_far(self, claim: Claim, now: Instant, cause: WaitCause | None) -> Waits:
        """The waits of a claim up to now. `cause` is given if it waits in this process."""
        remembered = self.remembered.get(claim.delivery_id)
        since = waiting_since(claim)
        if remembered is not None:
            remembered = list(remembered[0]), remembered[1]
        waits, until = self._begun(claim, since, remembered)
        if until >= now:
            _cut(waits, until - now)
            return tuple(waits)
        turn_at = now
        if cause is not None:
            turn_at = Instant(max(until, min(now, max(claim.claimed_at, claim.due_at))))
        with_time(waits, until, turn_at, claim.claimed_at, self._known(claim, until))
        if cause is not None:
            with_wait(waits, cause, now - turn_at)
        return tuple(waits)

    def waits_for(self, claim: Claim, now: Instant) -> WaitCause | None:
        """The cause for which a timer stays in the store now, if it was handed back."""
        remembered = self.remembered.get(claim.delivery_id)
        if remembered is None or remembered[1] <= now or not remembered[0]:
            return None
        return WaitCause(remembered[0][-1].cause)

    def _begun(
        self, claim: Claim, since: Instant, remembered: tuple[list[Wait], Instant] | None
    ) -> tuple[list[Wait], Instant]:
        if remembered is not None:
            waits, until = remembered
            return waits, until
        waits = []
        if _was_handed_back(claim) and claim.due_at > since:
            with_wait(waits, WaitCause.NOT_RECORDED, claim.due_at - since)
            return waits, claim.due_at
        return waits, since

    def _knows_more(self, claim: Claim, since: Instant) -> bool:
        """Whether the instants of the claim do not tell everything."""
        taken = self._taken.get(claim.shard)
        return (
            (taken is not None and taken.to_at > since)
            or (bool(self._intervals) and self._intervals[-1].to_at > since)
            or _was_handed_back(claim)
        )

    def _known(self, claim: Claim, since: Instant) -> list[Interval]:
        known = [interval for interval in self._intervals if interval.to_at > since]
        taken = self._taken.get(claim.shard)
        if taken is not None and taken.to_at > since:
            known.append(taken)
        return known


def _cut(waits: list[Wait], microseconds: int) -> None:
    """Take so much off the end."""
    while waits and microseconds > 0:
        cause, length = waits.pop()
        if length > microseconds:
            waits.append(Wait(cause, length - microseconds))
        microseconds -= length


def _was_handed_back(claim: Claim) -> bool:
    """Whether the timer was claimed more often than attempts of it are remembered."""
    return claim.claim_number > len(claim.attempts) + 1
