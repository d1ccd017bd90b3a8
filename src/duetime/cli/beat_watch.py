"""Whether members live, as far as somebody who only looks can tell."""

from collections.abc import Sequence

from duetime.ports.membership import Member


class BeatWatch:
    """For how long each member's beat has stood still, by the observer's monotonic time."""

    def __init__(self) -> None:
        self._last_moved: dict[str, tuple[int, float]] = {}

    def look(self, members: Sequence[Member], now_seconds: float) -> None:
        """Take a fresh view into account. Who is seen first may have moved just now."""
        seen = self._last_moved
        self._last_moved = {}
        for member in members:
            beat, moved_seconds = seen.get(member.node, (None, now_seconds))
            if beat != member.beat:
                moved_seconds = now_seconds
            self._last_moved[member.node] = member.beat, moved_seconds

    def still_seconds(self, node: str, now_seconds: float) -> float:
        return now_seconds - self._last_moved[node][1]

    def forgive(self) -> None:
        """The store could not be asked: nobody's beat could be seen to move meanwhile."""
        self._last_moved.clear()
