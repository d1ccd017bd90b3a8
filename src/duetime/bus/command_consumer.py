"""Consumes commands from the bus and schedules their timers."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import structlog
from msgspec import Struct

from duetime.background import BackgroundLoop
from duetime.bus.command_audit import CommandAudit
from duetime.bus.commands import Rejection, read_command, reason_of
from duetime.bus.rejections import LogLine, Rejected, Rejections
from duetime.bus.unknown_cancels import NextStep, UnknownCancels
from duetime.domain.errors import BusUnavailable, DuetimeError, InvalidInput, StoreUnavailable
from duetime.ports.bus import Bus, ReceivedCommand
from duetime.ports.clock import Clock
from duetime.service.bus_scheduling import (
    Answer,
    Cancellation,
    Schedule,
    Scheduled,
    Scheduling,
)

_log = structlog.get_logger()

MAX_BATCH = 1_000
WAIT_SECONDS = 0.25
"""Time that an idle node waits for a command before it asks the broker again."""

STOP_SECONDS = 1.0
"""Time that a broker may take to end a wait for commands when the node stops."""

CHECK_CHANNELS_SECONDS = 10.0
"""Time between two checks that all channels exist. If the channel of events were missing, commands
would go on arriving while nothing could be announced."""


class CommandCounts(Struct):
    """Acknowledged commands since the start of this process."""

    scheduled: int = 0
    canceled: int = 0
    unchanged: int = 0
    too_late: int = 0
    unknown: int = 0
    rejected: int = 0

    @property
    def received(self) -> int:
        return self.scheduled + self.canceled + self.unchanged + self.ignored + self.rejected

    @property
    def ignored(self) -> int:
        """Commands for timers that have fired, were canceled, or do not exist."""
        return self.too_late + self.unknown


class CommandConsumer(BackgroundLoop):
    """Acknowledges a command only when its timer is durable. A node that dies in between leaves
    the command to be handed over again, which changes nothing.

    While one batch is written, the next is received. A command that cannot be accepted is
    reported on the channel of rejected commands, then acknowledged.

    A command for a timer that is executing is given back until its outcome is known, and one for a
    tenant that is being deleted until the deletion has ended. A cancellation that finds no timer
    comes again, too (`UnknownCancels`).
    """

    name = "bus-commands"

    def __init__(
        self, bus: Bus, scheduling: Scheduling, clock: Clock, audit: CommandAudit | None = None
    ) -> None:
        super().__init__(clock)
        self._bus = bus
        self._scheduling = scheduling
        self._audit = audit
        self._open_until_seconds = 0.0
        self._receiving: asyncio.Task[Sequence[ReceivedCommand]] | None = None
        self.rejections = Rejections(bus, clock)
        self._ignored_line = LogLine(clock)
        self._unknown = UnknownCancels(clock)
        self.counts = CommandCounts()

    async def step(self) -> None:
        try:
            if self._clock.monotonic() >= self._open_until_seconds:
                opening = asyncio.ensure_future(self._bus.open())
                await self._unless_stopped(opening)
                opening.cancel()
                self._open_until_seconds = self._clock.monotonic() + CHECK_CHANNELS_SECONDS
            commands = await self._next()
            if commands and not self._stopping:
                self._receiving = asyncio.ensure_future(self._receive())
            await self._handle(commands)
        except BusUnavailable:
            self._open_until_seconds = 0.0
            self._unknown.start_over()
            raise

    async def stop(self) -> None:
        """Finish the batch being written, and give back commands received beyond it."""
        await super().stop()
        receiving, self._receiving = self._receiving, None
        if receiving is None:
            return
        await asyncio.wait({receiving}, timeout=STOP_SECONDS)
        if not receiving.done():
            receiving.cancel()
            await asyncio.wait({receiving})
        elif receiving.exception() is None:
            await self._give_back(receiving.result())

    async def _unless_stopped(self, work: "asyncio.Future[Any]") -> None:
        """Wait for `work`, but not while stopping: a broker that hangs would delay the stop."""
        stopped = asyncio.ensure_future(self._stop_asked.wait())
        both: set[asyncio.Future[Any]] = {work, stopped}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        if work.done():
            work.result()

    async def _next(self) -> Sequence[ReceivedCommand]:
        if self._stopping:
            return []
        if self._receiving is None:
            self._receiving = asyncio.ensure_future(self._receive())
        receiving = self._receiving
        try:
            await self._unless_stopped(receiving)
        finally:
            if receiving.done():
                self._receiving = None
        return receiving.result() if receiving.done() else []

    async def _receive(self) -> Sequence[ReceivedCommand]:
        return await self._bus.receive(MAX_BATCH, WAIT_SECONDS)

    async def _handle(self, commands: Sequence[ReceivedCommand]) -> None:
        if not commands:
            return
        accepted: list[ReceivedCommand] = []
        schedules: list[Schedule | Cancellation] = []
        rejected: list[Rejected] = []
        for command in commands:
            try:
                schedules.append(read_command(command))
            except Rejection as rejection:
                rejected.append(Rejected(command, str(rejection)))
            else:
                accepted.append(command)
        try:
            answers = await self._schedule(schedules)
        except StoreUnavailable:
            self._unknown.start_over()
            await self._give_back(commands)
            raise
        if self._audit is not None:
            await self._audit.record(schedules, answers)
        done, outcomes, undecided = [], [], []
        for command, answer in zip(accepted, answers, strict=True):
            if isinstance(answer, DuetimeError):
                rejected.append(Rejected(command, _reason(answer)))
                continue
            step = NextStep.GIVE_BACK if answer is Scheduled.UNDECIDED else NextStep.ACKNOWLEDGE
            if answer is Scheduled.UNKNOWN:
                step = self._unknown.next_step(command)
            if step is NextStep.GIVE_BACK:
                undecided.append(command)
            elif step is NextStep.ACKNOWLEDGE:
                done.append(command)
                outcomes.append(answer)
        if undecided:
            await self._give_back(undecided)
        finished = await self.rejections.publish(rejected)
        await self._bus.acknowledge([*done, *finished])
        # Counted last: a command that is not acknowledged comes again.
        self._count(outcomes)
        self.counts.rejected += len(finished)

    async def _schedule(self, schedules: Sequence[Schedule | Cancellation]) -> list[Answer]:
        """A batch that fails is repeated one by one, so that a bad command harms no other."""
        try:
            return await self._scheduling.handle_all(schedules)
        except StoreUnavailable:
            raise
        except Exception:
            _log.exception("bus.batch_broken", count=len(schedules))
            if len(schedules) == 1:
                return [InvalidInput("command", "could not be handled: internal error")]
        return [answer for each in schedules for answer in await self._schedule([each])]

    async def _give_back(self, commands: Sequence[ReceivedCommand]) -> None:
        try:
            await self._bus.give_back(commands)
        except BusUnavailable as error:
            # The broker hands unacknowledged commands over again anyway.
            _log.debug("bus.not_given_back", count=len(commands), error=error.message)

    def _count(self, outcomes: Sequence[Scheduled]) -> None:
        counted = Counter(outcomes)
        self.counts.scheduled += counted[Scheduled.CREATED] + counted[Scheduled.CHANGED]
        self.counts.canceled += counted[Scheduled.CANCELED]
        self.counts.unchanged += counted[Scheduled.UNCHANGED]
        self.counts.too_late += counted[Scheduled.TOO_LATE]
        self.counts.unknown += counted[Scheduled.UNKNOWN]
        ignored = counted[Scheduled.TOO_LATE] + counted[Scheduled.UNKNOWN]
        if ignored and (count := self._ignored_line.add(ignored)):
            _log.info(
                "bus.commands_ignored",
                count=count,
                too_late=self.counts.too_late,
                unknown=self.counts.unknown,
            )


def _reason(error: DuetimeError) -> str:
    return reason_of(error) if isinstance(error, InvalidInput) else error.message
