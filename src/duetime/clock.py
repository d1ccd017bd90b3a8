"""The clock of this machine: the only module that reads the time."""

import asyncio
import time

from duetime.domain.instants import Instant

# A lease expires while the machine sleeps, too; on Linux CLOCK_MONOTONIC leaves that time out.
_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Implements the clock port with the machine's wall and monotonic clocks."""

    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000)

    def monotonic(self) -> float:
        """Includes the time in which the machine was suspended, where the system can tell."""
        return time.clock_gettime(_MONOTONIC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def thread_seconds() -> float:
    """The time for which this thread has worked, from an arbitrary origin. Waiting is no work."""
    return time.thread_time()
