"""The clock of this machine, and the only place where time is read."""

import asyncio
import time

from duetime.domain.instants import Instant


class SystemClock:
    """Implements the clock port with the machine's wall and monotonic clocks."""

    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
