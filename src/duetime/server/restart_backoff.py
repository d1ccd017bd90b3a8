"""How long a worker that died stays away."""

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONG_RUN_SECONDS = 60.0
"""After so long a run a death says nothing about the next start."""


class RestartBackoff:
    """The first restart is at once; each that soon follows waits twice as long as the last."""

    def __init__(self) -> None:
        self._next_pause_seconds = 0.0

    def pause_seconds(self, *, ran_seconds: float) -> float:
        """How long to wait before the next start, after a run of that length."""
        pause_seconds = 0.0 if ran_seconds >= LONG_RUN_SECONDS else self._next_pause_seconds
        self._next_pause_seconds = min(
            max(2 * pause_seconds, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS
        )
        return pause_seconds
