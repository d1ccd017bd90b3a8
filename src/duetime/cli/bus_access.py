"""The configured broker, for commands that talk to it without a server."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from duetime.cli.output.terminal import ExitCode, fail, printable, refuse
from duetime.domain.errors import BusUnavailable, SettingsError
from duetime.ports.bus import Bus
from duetime.server.event_loop import run
from duetime.settings import BrokerSettings, MemoryBrokerSettings, load_broker
from duetime.settings.broker_address import SERVER_ACCEPTED, broker_url

OPEN_SECONDS = 10.0
"""How long a broker may take to let somebody in."""

ResultT = TypeVar("ResultT")


def broker_settings(url: str | None, config: Path | None) -> BrokerSettings:
    """The broker that was named, else that of the settings, of which no others are needed. Ends
    the command if there is none that could be reached."""
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
            "no broker: use --broker, or set TIMER_BROKER_URL (in .env, too), "
            "such as nats://127.0.0.1:4222",
            ExitCode.USAGE,
        )
    if isinstance(broker, MemoryBrokerSettings):
        refuse(source, "a broker in memory can be reached by nobody but the server itself")
    return broker


def _check_url(url: str) -> None:
    try:
        broker_url(url, SERVER_ACCEPTED)
    except ValueError as error:
        refuse("--broker", f"must be {error}")


def run_on_bus(main: Coroutine[None, None, ResultT]) -> ResultT:
    """Run to the end, which a broker that cannot be reached brings early."""
    try:
        return run(main)
    except BusUnavailable as error:
        fail(printable(error.message), ExitCode.UNREACHABLE)


@asynccontextmanager
async def opened_bus(broker: BrokerSettings) -> AsyncIterator[Bus]:
    # Imported here, because the other commands need nothing of all this.
    from duetime.bus.brokers import bus_of

    bus = bus_of(broker, f"cli:{socket.gethostname()}:{os.getpid()}")
    try:
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await bus.open()
        except TimeoutError:
            raise BusUnavailable(f"{bus.name} did not answer within {OPEN_SECONDS:g} s") from None
        yield bus
    finally:
        await bus.close()
