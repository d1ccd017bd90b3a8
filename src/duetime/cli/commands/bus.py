"""`duetime bus`: publish commands on the message bus, and watch its messages."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from msgspec import UNSET
from uuid_utils import uuid7

from duetime.bus.messages import (
    CANCEL_TIMER,
    SCHEDULE_TIMER,
    CancelTimer,
    CancelTimerEnvelope,
    ScheduleTimer,
    ScheduleTimerEnvelope,
    encode,
    key_of,
)
from duetime.cli.commands.number_options import whole_number
from duetime.cli.commands.options import (
    AtOption,
    ConfigOption,
    InOption,
    read_instant,
    read_json,
)
from duetime.cli.output.bus_lines import json_line, readable_line, tenant_of
from duetime.cli.terminal import ExitCode, console, fail, printable, refuse
from duetime.clock import SystemClock
from duetime.domain.errors import BusUnavailable, SettingsError
from duetime.domain.instants import MICROSECONDS_PER_MS, format_instant
from duetime.domain.limits import MAX_OLD_MESSAGES
from duetime.domain.wording import relative
from duetime.event_loop import run, until_stopped
from duetime.ports.bus import Bus, Channel, OutgoingMessage, ReceivedCommand
from duetime.settings import BrokerSettings, MemoryBrokerSettings, load_broker
from duetime.settings.broker_address import SERVER_ACCEPTED, broker_url

OPEN_SECONDS = 10.0
"""Time limit for connecting to the broker."""

ResultT = TypeVar("ResultT")

BrokerOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="URL of the broker (default: TIMER_BROKER_URL)."),
]

CorrelationOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Id that the event or a rejection will carry.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the envelope as JSON.")]

bus = typer.Typer(
    help="Publish commands on the message bus, and watch its messages.",
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
_OLD_REJECTIONS = 10
_LAST = {ChannelName.REJECTED: _OLD_REJECTIONS}
"""Old messages that `tail` shows first: a rejection is looked up after it has happened."""


@bus.command()
def schedule(
    call: Annotated[str, typer.Argument(metavar="CALL", help="The serviceCallId.")],
    tenant: Annotated[str, typer.Option(metavar="NAME", help="The tenantId.")],
    at: AtOption = None,
    after: InOption = None,
    payload: Annotated[
        str | None,
        typer.Option(metavar="JSON|@FILE|-", help="Payload of the event; - reads stdin."),
    ] = None,
    correlation: CorrelationOption = None,
    broker: BrokerOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a ScheduleTimer command.

    A second command for the same call replaces the first, unless the timer has fired or was
    canceled. A timer whose instant has passed fires at once. A command carries an instant, so
    `--in` counts by the clock of this machine.

    Examples:

    * `duetime bus schedule call-42 --tenant acme --in 10s --broker nats://127.0.0.1:4222`
    * `duetime bus schedule call-42 --tenant acme --at 2030-01-31T12:00:00Z --correlation req-7`
    * `duetime bus schedule call-42 --tenant acme --in 1h --payload '{"order": 4711}'`
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
            tenant_id=tenant,
            service_call_id=call,
            due_at=format_instant(due_at),
            payload=UNSET if payload is None else read_json("--payload", payload),
        ),
    )
    data = _send(envelope, call, broker_settings(broker, config))
    if as_json:
        print(data.decode())
    else:
        print(
            f"ScheduleTimer {envelope.id} published: {printable(f'{tenant}/{call}')} "
            f"is due {envelope.payload.due_at} ({relative(due_at, now)})"
        )


@bus.command()
def cancel(
    call: Annotated[str, typer.Argument(metavar="CALL", help="The serviceCallId.")],
    tenant: Annotated[str, typer.Option(metavar="NAME", help="The tenantId.")],
    correlation: CorrelationOption = None,
    broker: BrokerOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a CancelTimer command.

    The timer of the call is canceled if it is pending. A canceled timer stays canceled: a later
    ScheduleTimer command for the call is ignored.

    Examples:

    * `duetime bus cancel call-42 --tenant acme --broker nats://127.0.0.1:4222`
    """
    envelope = CancelTimerEnvelope(
        id=str(uuid7()),
        type=CANCEL_TIMER,
        tenant_id=tenant,
        aggregate_id=call,
        timestamp_ms=SystemClock().now() // MICROSECONDS_PER_MS,
        correlation_id=UNSET if correlation is None else correlation,
        payload=CancelTimer(tenant_id=tenant, service_call_id=call),
    )
    data = _send(envelope, call, broker_settings(broker, config))
    if as_json:
        print(data.decode())
    else:
        print(f"CancelTimer {envelope.id} published: {printable(f'{tenant}/{call}')}")


@bus.command()
def tail(
    channel: Annotated[ChannelName, typer.Option(help="Messages to show.")] = ChannelName.EVENTS,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Only this tenantId.")] = None,
    last: Annotated[
        int | None,
        whole_number(
            0,
            MAX_OLD_MESSAGES,
            show_default=False,
            help=f"Old messages to show first [0; {_OLD_REJECTIONS} for rejected commands].",
        ),
    ] = None,
    count: Annotated[
        int | None, whole_number(1, help="Messages to show before ending, including old ones.")
    ] = None,
    broker: BrokerOption = None,
    config: ConfigOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each envelope as one JSON line.")
    ] = False,
) -> None:
    """Show messages as they arrive. Other consumers still receive them.

    With `--last`, messages that are already on the bus are shown first. Commands stay there until
    the service has created their timers.

    Examples:

    * `duetime bus tail`
    * `duetime bus tail --channel rejected` shows rejected commands, and why they were rejected
    * `duetime bus tail --last 100` shows the last 100 events, and then new ones
    * `duetime bus tail --tenant acme --count 1 --json`
    """
    shown = _Shown(tenant, count, as_json)
    old = _LAST.get(channel, 0) if last is None else last
    settings = broker_settings(broker, config)
    run_on_bus(until_stopped(_tail(settings, _CHANNELS[channel], old, shown)))


class _Shown:
    """The messages to show, their format, and the number left."""

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
        """Show the message if its tenant matches. Returns whether it was the last one."""
        if self._tenant is not None and tenant_of(data) != self._tenant:
            return False
        if self._as_json:
            print(json_line(data), flush=True)
        else:
            self._output.print(readable_line(data, self._clock.now()), soft_wrap=True)
        if self._left is not None:
            self._left -= 1
        return self._left == 0


def _encoded(envelope: ScheduleTimerEnvelope | CancelTimerEnvelope) -> bytes:
    """The encoded command. Ends the program if the service would reject it."""
    # Imported here so that `duetime --help` starts quickly.
    from duetime.bus.commands import Rejection, read_command

    try:
        data = encode(envelope)
        read_command(ReceivedCommand(data=data, order=0))
    except UnicodeEncodeError:
        fail("CALL, --tenant and --correlation must be UTF-8", ExitCode.USAGE)
    except Rejection as rejection:
        fail(f"the service would reject this command: {printable(str(rejection))}", ExitCode.USAGE)
    return data


def _send(
    envelope: ScheduleTimerEnvelope | CancelTimerEnvelope, call: str, broker: BrokerSettings
) -> bytes:
    """Publish the command, and return it as sent."""
    message = OutgoingMessage(
        channel=Channel.COMMANDS,
        id=envelope.id,
        key=key_of(envelope.tenant_id, call),
        data=_encoded(envelope),
    )
    run_on_bus(_publish(broker, message))
    return message.data


async def _publish(broker: BrokerSettings, message: OutgoingMessage) -> None:
    async with opened_bus(broker) as opened:
        await opened.publish(message)


async def _tail(broker: BrokerSettings, channel: Channel, last: int, shown: _Shown) -> None:
    async with opened_bus(broker) as opened, aclosing(opened.watch(channel, last)) as messages:
        shown.greet(channel, opened.name)
        async for data in messages:
            if shown.show(data):
                return


def broker_settings(url: str | None, config: Path | None) -> BrokerSettings:
    """The broker that `--broker` names, else the one in the settings; other settings are not
    checked. Ends the command if there is no broker that it could reach."""
    environ = dict(os.environ)
    source = "TIMER_BROKER_URL"
    if url is not None:
        source = "--broker"
        _check_url(url)
        environ["TIMER_BROKER_URL"] = url
    try:
        broker = load_broker(environ, toml_path=config)
    except SettingsError as error:
        fail(error.message, ExitCode.USAGE)
    if broker is None:
        fail(
            "no broker: use --broker, or set TIMER_BROKER_URL (.env works too), "
            "such as nats://127.0.0.1:4222",
            ExitCode.USAGE,
        )
    if isinstance(broker, MemoryBrokerSettings):
        refuse(source, "only the server itself can reach a broker in memory")
    return broker


def _check_url(url: str) -> None:
    try:
        broker_url(url, SERVER_ACCEPTED)
    except ValueError as error:
        refuse("--broker", f"must be {error}")


def run_on_bus(main: Coroutine[None, None, ResultT]) -> ResultT:
    """Run the coroutine. Ends the command if the broker cannot be reached."""
    try:
        return run(main)
    except BusUnavailable as error:
        fail(printable(error.message), ExitCode.UNREACHABLE)


@asynccontextmanager
async def opened_bus(broker: BrokerSettings) -> AsyncIterator[Bus]:
    # Imported here so that `duetime --help` starts quickly.
    from duetime.broker_adapters import bus_of

    bus = bus_of(broker, f"cli:{socket.gethostname()}:{os.getpid()}", SystemClock())
    try:
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await bus.open()
        except TimeoutError:
            raise BusUnavailable(f"{bus.name} did not answer within {OPEN_SECONDS:g} s") from None
        yield bus
    finally:
        await bus.close()
