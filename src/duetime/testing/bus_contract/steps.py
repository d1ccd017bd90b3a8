"""Short words for what every test of the suite does."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager

from duetime.ports.bus import Bus, Channel, OutgoingMessage, ReceivedCommand

PATIENCE_SECONDS = 10.0
"""How long a broker may take for what it is to do at once."""

SHORT_SECONDS = 0.05
"""How long to look whether something is there that should not be."""


def message(
    data: bytes | str,
    *,
    channel: Channel = Channel.COMMANDS,
    id: str | None = None,
    key: str = "acme.call-1",
) -> OutgoingMessage:
    """A message with that content, and with an id that says the same unless one is given."""
    content = data.encode() if isinstance(data, str) else data
    return OutgoingMessage(
        channel=channel,
        id=content[:100].decode(errors="replace") if id is None else id,
        key=key,
        data=content,
    )


async def publish(bus: Bus, *contents: str, channel: Channel = Channel.COMMANDS) -> None:
    """One after the other."""
    for content in contents:
        await bus.publish(message(content, channel=channel))


async def publish_at_once(bus: Bus, contents: Iterable[str]) -> None:
    await asyncio.gather(*(bus.publish(message(content)) for content in contents))


async def take(bus: Bus, wanted: int) -> list[ReceivedCommand]:
    """That many commands, in as many steps as the broker likes."""
    taken: list[ReceivedCommand] = []
    while len(taken) < wanted:
        received = await bus.receive(wanted - len(taken), PATIENCE_SECONDS)
        assert received, f"only {len(taken)} of {wanted} commands came"
        taken += received
    return taken


async def take_nothing(bus: Bus) -> None:
    assert contents(await bus.receive(10, SHORT_SECONDS)) == []


def contents(commands: Sequence[ReceivedCommand]) -> list[str]:
    return [command.data.decode() for command in commands]


@asynccontextmanager
async def watching(bus: Bus, channel: Channel) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """Watch a channel, from a moment on at which the watch is known to have begun."""
    async with aclosing(bus.watch(channel)) as watch:
        first = asyncio.ensure_future(anext(watch))
        last_probe = ""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not first.done():
                    last_probe = f"probe {secrets.token_hex(8)}"
                    await publish(bus, last_probe, channel=channel)
                    await asyncio.wait({first}, timeout=SHORT_SECONDS)
        finally:
            first.cancel()
            await asyncio.wait({first})
        if first.result() != last_probe.encode():
            await see_until(watch, last_probe)
        yield watch


async def see_until(watch: AsyncGenerator[bytes, None], wanted: str) -> list[str]:
    """The messages up to that one."""
    seen: list[str] = []
    while wanted not in seen:
        seen += await see(watch, 1)
    return seen


async def see(watch: AsyncGenerator[bytes, None], wanted: int) -> list[str]:
    """The next that many messages."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [(await anext(watch)).decode() for _ in range(wanted)]
