"""`duetime bus`: put commands on the bus, and look at what is there."""

import sys
from contextlib import aclosing
from enum import StrEnum
from typing import Annotated

import typer
from msgspec import UNSET
from uuid_utils import uuid7

from duetime.bus.commands import Rejection, read_command
from duetime.bus.messages import (
    SCHEDULE_TIMER,
    ScheduleTimer,
    ScheduleTimerEnvelope,
    encode,
    key_of,
)
from duetime.cli.bus_access import broker_settings, opened_bus, run_on_bus
from duetime.cli.options import AtOption, ConfigOption, InOption, read_instant
from duetime.cli.output.bus_lines import json_line, readable_line, tenant_of
from duetime.cli.output.terminal import ExitCode, console, fail, printable, refuse
from duetime.cli.output.wording import relative
from duetime.clock import SystemClock
from duetime.domain.instants import MICROSECONDS_PER_MS, format_instant
from duetime.ports.bus import Channel, OutgoingMessage, ReceivedCommand
from duetime.server.event_loop import until_stopped
from duetime.settings import BrokerSettings

BrokerOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The broker, as nats://host:port (else TIMER_BROKER_URL)."),
]

bus = typer.Typer(
    help="Put commands on the message bus, and look at what is there.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ChannelName(StrEnum):
    EVENTS = "events"
    COMMANDS = "commands"
    REJECTED = "rejected"


_CHANNELS = {
    ChannelName.EVENTS: Channel.EVENTS,
    ChannelName.COMMANDS: Channel.COMMANDS,
    ChannelName.REJECTED: Channel.REJECTED,
}
_LAST = {ChannelName.REJECTED: 10}
"""Who looks at rejected commands asks why something did not work, which was before."""


@bus.command()
def schedule(
    call: Annotated[str, typer.Argument(metavar="CALL", help="The serviceCallId.")],
    tenant: Annotated[str, typer.Option(metavar="NAME", help="The tenantId.")],
    at: AtOption = None,
    after: InOption = None,
    correlation: Annotated[
        str | None, typer.Option(metavar="ID", help="Carried through to the event.")
    ] = None,
    broker: BrokerOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the envelope as JSON.")] = False,
) -> None:
    """Publish a ScheduleTimer command.

    A second one for the same call takes the place of the first as long as that has not fired. An
    instant that has passed is announced at once.

    Examples:

    * `duetime bus schedule call-42 --tenant acme --in 10s --broker nats://127.0.0.1:4222`
    * `duetime bus schedule call-42 --tenant acme --at 2030-01-31T12:00:00Z --correlation req-7`
    """
    due_at = read_instant(at, after)
    if due_at is None:
        refuse("--at / --in", "one of them is needed")
    now = SystemClock().now()
    envelope = ScheduleTimerEnvelope(
        id=str(uuid7()),
        type=SCHEDULE_TIMER,
        tenant_id=tenant,
        aggregate_id=call,
        timestamp_ms=now // MICROSECONDS_PER_MS,
        correlation_id=UNSET if correlation is None else correlation,
        payload=ScheduleTimer(
            tenant_id=tenant, service_call_id=call, due_at=format_instant(due_at)
        ),
    )
    message = OutgoingMessage(
        channel=Channel.COMMANDS,
        id=envelope.id,
        key=key_of(tenant, call),
        data=_encoded(envelope),
    )
    run_on_bus(_publish(broker_settings(broker, config), message))
    if as_json:
        print(message.data.decode())
    else:
        print(
            f"ScheduleTimer {envelope.id} published: {printable(f'{tenant}/{call}')} "
            f"is due {envelope.payload.due_at} ({relative(due_at, now)})"
        )


@bus.command()
def tail(
    channel: Annotated[
        ChannelName, typer.Option(help="Which messages to show.")
    ] = ChannelName.EVENTS,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Only this tenantId.")] = None,
    last: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10_000,
            show_default=False,
            help="Begin with so many that are there already (0; for rejected commands 10).",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after so many, old ones included.")
    ] = None,
    broker: BrokerOption = None,
    config: ConfigOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the envelopes, one JSON line each.")
    ] = False,
) -> None:
    """Show messages as they come, and take them away from nobody.

    `--last` begins with those that are there already. Of rejected commands these are the last 10
    unless told otherwise. Commands are there until the service has made timers of them.

    Examples:

    * `duetime bus tail`
    * `duetime bus tail --channel rejected` shows which commands could not be accepted, and why
    * `duetime bus tail --last 100` shows the last 100 events, and then those that come
    * `duetime bus tail --tenant acme --count 1 --json`
    """
    shown = _Shown(tenant, count, as_json)
    old = _LAST.get(channel, 0) if last is None else last
    settings = broker_settings(broker, config)
    run_on_bus(until_stopped(_tail(settings, _CHANNELS[channel], old, shown)))


class _Shown:
    """Which messages are shown, how, and until when."""

    def __init__(self, tenant: str | None, count: int | None, as_json: bool) -> None:
        self._tenant = tenant
        self._left = count
        self._as_json = as_json
        self._clock = SystemClock()
        self._output = console()

    def greet(self, channel: Channel, broker: str) -> None:
        greeting = f"Watching {channel} at {printable(broker)} (Ctrl-C stops)"
        print(greeting, file=sys.stderr if self._as_json else sys.stdout, flush=True)

    def show(self, data: bytes) -> bool:
        """Whether it was the last one."""
        if self._tenant is not None and tenant_of(data) != self._tenant:
            return False
        if self._as_json:
            print(json_line(data), flush=True)
        else:
            self._output.print(readable_line(data, self._clock.now()), soft_wrap=True)
        if self._left is not None:
            self._left -= 1
        return self._left == 0


def _encoded(envelope: ScheduleTimerEnvelope) -> bytes:
    """The command, which a server would accept."""
    try:
        data = encode(envelope)
        read_command(ReceivedCommand(data=data, order=0))
    except UnicodeEncodeError:
        fail("CALL, --tenant and --correlation must be UTF-8", ExitCode.USAGE)
    except Rejection as rejection:
        fail(f"such a command is not accepted: {printable(str(rejection))}", ExitCode.USAGE)
    return data


async def _publish(broker: BrokerSettings, message: OutgoingMessage) -> None:
    async with opened_bus(broker) as opened:
        await opened.publish(message)


async def _tail(broker: BrokerSettings, channel: Channel, last: int, shown: _Shown) -> None:
    async with opened_bus(broker) as opened, aclosing(opened.watch(channel, last)) as messages:
        shown.greet(channel, opened.name)
        async for data in messages:
            if shown.show(data):
                return
