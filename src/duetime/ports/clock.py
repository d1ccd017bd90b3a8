"""Time, as an argument."""

from typing import Protocol

from duetime.domain.instants import Instant


class Clock(Protocol):
    """The only source of time. Wall time and monotonic time are separate on purpose.

    A timer is due by wall time; timeouts, leases and pauses are measured by monotonic time, so
    that a jump of the wall clock can neither lengthen nor shorten them.
    """

    def now(self) -> Instant:
        """The wall-clock instant. It may jump in either direction between two calls."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary origin. Never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return no earlier than `seconds` of monotonic time from now."""
        ...
