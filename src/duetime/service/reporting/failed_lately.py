"""The timers that failed within the last hour, from the numbers of failed timers by namespace."""

from collections import deque
from collections.abc import Mapping

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant

SAMPLE_SECONDS = 60
SAMPLES = 61
"""Numbers that are remembered: those of an hour, and the ones to compare them with."""


class FailedLately:
    """Compares the numbers with those of an hour ago, or of the start of the process. A namespace
    that is pruned or redriven meanwhile shows fewer than failed, never more."""

    def __init__(self) -> None:
        self._samples: deque[tuple[Instant, Mapping[str | None, int]]] = deque(maxlen=SAMPLES)

    def see(self, now: Instant, failed: Mapping[str | None, int]) -> None:
        """Take in the latest numbers."""
        if not self._samples or now - self._samples[-1][0] >= (
            SAMPLE_SECONDS * MICROSECONDS_PER_SECOND
        ):
            self._samples.append((now, dict(failed)))

    def increase(self, failed: Mapping[str | None, int]) -> dict[str, int]:
        """The increase by namespace."""
        if not self._samples:
            return {}
        before = self._samples[0][1]
        return {
            name: more
            for name, count in failed.items()
            if name is not None and (more := count - before.get(name, 0)) > 0
        }
