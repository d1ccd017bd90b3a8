"""How soon a lost connection is made again, and how often its loss is logged."""

SHORT_SECONDS = 5.0
"""Life of a connection below which the server is taken to drop connections on purpose."""

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 2.0
LOG_AGAIN_SECONDS = 10.0


class ReconnectPacing:
    """Distinguishes a server that was away once from one that accepts connections and drops them.

    Without a pause the latter would see dozens of connections a second, and the log two lines
    for each. All instants are those of a monotonic clock.
    """

    def __init__(self) -> None:
        self.pause_seconds = 0.0
        """Time to wait before the next connection."""

        self._logged_at: float | None = None

    @property
    def is_steady(self) -> bool:
        return self.pause_seconds == 0

    def note_end(self, connected_at: float, now: float) -> None:
        """A connection has ended."""
        if now - connected_at >= SHORT_SECONDS:
            self.pause_seconds = 0.0
        else:
            longer = max(2 * self.pause_seconds, FIRST_PAUSE_SECONDS)
            self.pause_seconds = min(longer, LONGEST_PAUSE_SECONDS)

    def is_time_to_log(self, now: float) -> bool:
        """Whether to log now that there is no connection."""
        return (
            self.is_steady or self._logged_at is None or now >= self._logged_at + LOG_AGAIN_SECONDS
        )

    def note_logged(self, now: float) -> None:
        self._logged_at = now
