"""Judges which members live, by what it sees of their heartbeats."""

from collections.abc import Callable, Sequence

from duetime.ports.membership import Member


class MemberWatch:
    """A member is dead when its beat has stood still for too long by the observer's monotonic
    time, or when its process is known not to exist any more.

    Only time in which the observer itself could look counts: when the store was away, the beats
    of all others stood still too, and everyone gets a new chance.
    """

    def __init__(
        self,
        dead_after_seconds: float,
        longest_gap_seconds: float,
        is_gone: Callable[[Member], bool],
    ) -> None:
        self._dead_after_seconds = dead_after_seconds
        self._longest_gap_seconds = longest_gap_seconds
        self._is_gone = is_gone
        self._stands_since: dict[str, tuple[int, float]] = {}
        self._looked_seconds: float | None = None

    def look(self, members: Sequence[Member], now_seconds: float) -> list[Member]:
        """Take a fresh view into account; answers the dead."""
        if self._looked_seconds is None or (
            now_seconds - self._looked_seconds > self._longest_gap_seconds
        ):
            self._stands_since.clear()
        self._looked_seconds = now_seconds
        stood = self._stands_since
        self._stands_since = {}
        for member in members:
            beat, since_seconds = stood.get(member.node, (None, now_seconds))
            if beat != member.beat:
                since_seconds = now_seconds
            self._stands_since[member.node] = member.beat, since_seconds
        return [member for member in members if self._is_dead(member, now_seconds)]

    def _is_dead(self, member: Member, now_seconds: float) -> bool:
        _, since_seconds = self._stands_since[member.node]
        return now_seconds - since_seconds >= self._dead_after_seconds or self._is_gone(member)
