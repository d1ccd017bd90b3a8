"""Tells the senders of commands that cannot be accepted why not."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec import Struct

from duetime.bus.commands import rejection_message
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Bus, ReceivedCommand
from duetime.ports.clock import Clock

_log = structlog.get_logger()

LOG_SECONDS = 10.0
"""There may be thousands of them a second, and one line says it."""

QUOTED_BYTES = 200


class Rejected(Struct, frozen=True):
    command: ReceivedCommand
    reason: str


class Rejections:
    """What is told is done with. So is what the broker refuses to take although it is there, for
    example because the channel is full: bad commands must never keep good ones from coming. It is
    in the log then. While the broker is away they are not done with, and come again.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._told = _Line(clock)
        self._lost = _Line(clock)

    async def tell(self, rejected: Sequence[Rejected]) -> list[ReceivedCommand]:
        """Answers those that are done with."""
        now = self._clock.now()
        problems = await asyncio.gather(
            *(
                self._bus.publish(rejection_message(each.command, each.reason, now))
                for each in rejected
            ),
            return_exceptions=True,
        )
        told, refused = [], []
        for each, problem in zip(rejected, problems, strict=True):
            if problem is None:
                told.append(each)
            elif not isinstance(problem, BusUnavailable):
                raise problem
            elif self._bus.is_connected:
                refused.append((each, problem.message))
        if told and self._told.is_due(len(told)):
            _log.warning("bus.commands_rejected", count=self._told.take(), reason=told[-1].reason)
        if refused and self._lost.is_due(len(refused)):
            last, why = refused[-1]
            _log.error(
                "bus.rejections_lost",
                count=self._lost.take(),
                error=why,
                reason=last.reason,
                command=last.command.data[:QUOTED_BYTES].decode(errors="replace"),
            )
        return [each.command for each in told] + [each.command for each, _ in refused]


class _Line:
    """A line of the log that is written now and then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._written_seconds: float | None = None

    def is_due(self, count: int) -> bool:
        """So many more are to be told of."""
        self._count += count
        now_seconds = self._clock.monotonic()
        if self._written_seconds is not None and now_seconds - self._written_seconds < LOG_SECONDS:
            return False
        self._written_seconds = now_seconds
        return True

    def take(self) -> int:
        """How many there were since the last line."""
        count, self._count = self._count, 0
        return count
