"""Deferrals: the time for which claims of a busy endpoint stay in the store once handed back."""

from collections import deque

from duetime.domain.instants import MICROSECONDS_PER_MS, Instant

FIRST_DEFERRAL_MS = 250.0
LONGEST_DEFERRAL_MS = 5_000.0
"""Bounds of a deferral while few claims are handed back."""

RETURNS_PER_SECOND = 1_000.0
"""Claims of one endpoint that return in a second, unless the endpoint takes more. Without this
bound the backlog of a dead endpoint would take up all claiming."""

LONGEST_SPREAD_MS = 60_000.0
"""Time within which deferred claims return, however many they are."""

RETURN_EVERY_MS = 50
"""Interval at which claims return, in groups. One by one, each would cost a write of its own to be
claimed, and another one to be handed back."""


def returning_at(instant: Instant) -> Instant:
    """The next instant at which a group returns."""
    every = RETURN_EVERY_MS * MICROSECONDS_PER_MS
    return Instant(-(-instant // every) * every)


class Away:
    """Counts deferred claims until they return."""

    def __init__(self) -> None:
        self._groups: deque[tuple[float, int]] = deque()
        """Groups of deferred claims: when they return, and their number."""

    def count(self, now_seconds: float) -> int:
        """The number of deferred claims that have not returned yet."""
        return sum(
            count for returns_seconds, count in self._groups if returns_seconds > now_seconds
        )

    def note(self, now_seconds: float, returns_seconds: float) -> None:
        """One more claim is away until then."""
        groups = self._groups
        while groups and groups[0][0] <= now_seconds:
            groups.popleft()
        group_seconds = returns_seconds - returns_seconds % (RETURN_EVERY_MS / 1_000)
        if groups and group_seconds < groups[-1][0]:
            last_seconds, count = groups.pop()
            groups.append((max(last_seconds, returns_seconds), count + 1))
        else:
            groups.append((group_seconds + RETURN_EVERY_MS / 1_000, 1))


class Deferrals:
    """The deferrals of one namespace's claims to one endpoint.

    They go by rounds: all claims handed back before the first of them returns stay away equally
    long. If a claim got its turn meanwhile, the next round is as long as the next claim is likely
    to wait for its turn; otherwise it is twice as long as the round before. If many claims are
    deferred, they return one after the other.
    """

    def __init__(self, longest_ms: float = LONGEST_DEFERRAL_MS) -> None:
        self._longest_ms = longest_ms
        self._ms = FIRST_DEFERRAL_MS
        self._has_begun = self._has_moved = False
        self._round_ends_seconds = 0.0
        self._next_return_seconds = 0.0
        self._away = Away()

    def moved(self) -> None:
        """A claim got its turn."""
        self._has_moved = True

    def next_ms(
        self, now_seconds: float, *, turn_in_seconds: float, returns_per_second: float
    ) -> float:
        """The deferral of one more claim, which would get its turn in `turn_in_seconds`."""
        if now_seconds >= self._round_ends_seconds:
            self._begin_round(now_seconds, turn_in_seconds)
        spread_ms = min((self._next_return_seconds - now_seconds) * 1_000, LONGEST_SPREAD_MS)
        deferral_ms = max(self._ms, spread_ms)
        self._next_return_seconds = now_seconds + deferral_ms / 1_000 + 1 / returns_per_second
        self._away.note(now_seconds, now_seconds + deferral_ms / 1_000)
        return deferral_ms

    def away(self, now_seconds: float) -> int:
        """The number of deferred claims that have not returned yet."""
        return self._away.count(now_seconds)

    def expect_more(self, now_seconds: float) -> bool:
        """Some deferred claims may not have had the time to return."""
        last_return_seconds = max(self._round_ends_seconds, self._next_return_seconds)
        return self._has_begun and now_seconds < last_return_seconds + self._ms / 1_000

    def _begin_round(self, now_seconds: float, turn_in_seconds: float) -> None:
        if self._has_moved:
            self._ms = max(FIRST_DEFERRAL_MS, min(turn_in_seconds * 1_000, self._longest_ms))
        elif self._has_begun:
            self._ms = min(2 * self._ms, self._longest_ms)
        self._has_begun, self._has_moved = True, False
        self._round_ends_seconds = now_seconds + self._ms / 1_000
