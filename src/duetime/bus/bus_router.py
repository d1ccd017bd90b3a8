"""Starts, stops and watches over the commands and events of one broker."""

import structlog
from msgspec import Struct

from duetime.bus.command_audit import CommandAudit
from duetime.bus.command_consumer import CommandConsumer, CommandCounts
from duetime.bus.events import EventDestination
from duetime.bus.lag_watch import LagWatch
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Bus
from duetime.ports.clock import Clock
from duetime.service.bus_scheduling import Scheduling
from duetime.service.reporting.bus_report import BusReport

_log = structlog.get_logger()


class BusHealth(Struct, frozen=True, kw_only=True):
    """Counts cover this process since its start."""

    broker: str
    connected: bool
    consuming: bool
    commands_received: int
    commands_rejected: int
    commands_ignored: int
    events_published: int


class BusRouter:
    """Routes commands from the broker to the service, beside the events of `EventDestination`.

    A broker that is away keeps neither the service from starting nor the HTTP APIs from working:
    commands wait at the broker, and events are retried until they get through."""

    def __init__(
        self,
        bus: Bus,
        events: EventDestination,
        scheduling: Scheduling,
        clock: Clock,
        audit: CommandAudit | None = None,
    ) -> None:
        self._bus = bus
        self.events = events
        self._commands = CommandConsumer(bus, scheduling, clock, audit)
        self._lag = LagWatch(bus, clock)

    @property
    def counts(self) -> CommandCounts:
        return self._commands.counts

    @property
    def is_connected(self) -> bool:
        return self._bus.is_connected

    @property
    def lag(self) -> int | None:
        """The number of commands that wait at the broker, as it was last asked; None if unknown."""
        return self._lag.commands

    def report(self, node: str) -> BusReport:
        """The report of the process that has this name among the members."""
        counts, health = self._commands.counts, self.health()
        return BusReport(
            node=node,
            broker=health.broker,
            is_connected=health.connected,
            is_consuming=health.consuming,
            lag=self.lag,
            received=counts.received,
            scheduled=counts.scheduled,
            canceled=counts.canceled,
            unchanged=counts.unchanged,
            ignored=counts.ignored,
            rejected=counts.rejected,
            events_published=self.events.published,
            events_failed=self.events.failed,
            rejections=self._commands.rejections.latest,
        )

    async def open(self) -> None:
        """Call before the engine starts, so that overdue timers are announced at once."""
        try:
            await self._bus.open()
        except BusUnavailable as error:
            _log.warning("bus.unavailable", broker=self._bus.name, error=error.message)
        else:
            _log.info("bus.opened", broker=self._bus.name)

    def start(self) -> None:
        """Begin to consume commands."""
        self._commands.start()
        self._lag.start()

    async def stop(self) -> None:
        """Consume no more commands. Events can still be published."""
        await self._lag.abandon()
        await self._commands.stop()

    async def close(self) -> None:
        await self._bus.close()

    def health(self) -> BusHealth:
        counts = self._commands.counts
        return BusHealth(
            broker=self._bus.name,
            connected=self._bus.is_connected,
            consuming=self._commands.is_working,
            commands_received=counts.received,
            commands_rejected=counts.rejected,
            commands_ignored=counts.ignored,
            events_published=self.events.published,
        )
