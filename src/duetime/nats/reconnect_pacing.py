"""How long the connections to a server last, and so how eagerly they are made again."""

SHORT_SECONDS = 5.0
"""A connection that ends earlier has hardly been one: something closes it."""

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 2.0
TELL_AGAIN_SECONDS = 10.0


class Steadiness:
    """Tells a server that was away for once from one that accepts connections and does not keep
    them, which would see dozens a second, and the log two lines for each.

    All instants are those of a clock that only goes forward.
    """

    def __init__(self) -> None:
        self.pause_seconds = 0.0
        """How long to wait before the next connection."""

        self._told_at: float | None = None

    @property
    def is_steady(self) -> bool:
        return self.pause_seconds == 0

    def note_end(self, made_at: float, now: float) -> None:
        """A connection has ended."""
        if now - made_at >= SHORT_SECONDS:
            self.pause_seconds = 0.0
        else:
            longer = max(2 * self.pause_seconds, FIRST_PAUSE_SECONDS)
            self.pause_seconds = min(longer, LONGEST_PAUSE_SECONDS)

    def is_time_to_tell(self, now: float) -> bool:
        """Whether people should hear now that there is no connection."""
        return self.is_steady or self._told_at is None or now >= self._told_at + TELL_AGAIN_SECONDS

    def note_told(self, now: float) -> None:
        self._told_at = now
