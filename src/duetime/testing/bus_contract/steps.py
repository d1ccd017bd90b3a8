"""Steps that tests of the suite share."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager

from duetime.ports.bus import Bus, Channel, OutgoingMessage, ReceivedCommand

PATIENCE_SECONDS = 10.0
"""Time that a broker may take for an immediate action."""

SHORT_SECONDS = 0.05
"""Time to wait for something that should not happen."""


def message(
    data: bytes | str,
    *,
    channel: Channel = Channel.COMMANDS,
    id: str | None = None,
    key: str = "acme.call-1",
    traceparent: str | None = None,
) -> OutgoingMessage:
    """A message with this content, which is also its id by default."""
    content = data.encode() if isinstance(data, str) else data
    return OutgoingMessage(
        channel=channel,
        id=content[:100].decode(errors="replace") if id is None else id,
        key=key,
        data=content,
        traceparent=traceparent,
    )


async def publish(bus: Bus, *contents: str, channel: Channel = Channel.COMMANDS) -> None:
    """Publish one message after the other."""
    for content in contents:
        await bus.publish(message(content, channel=channel))


async def publish_at_once(bus: Bus, contents: Iterable[str]) -> None:
    await asyncio.gather(*(bus.publish(message(content)) for content in contents))


async def take(bus: Bus, count: int) -> list[ReceivedCommand]:
    """Receive `count` commands, in any number of steps."""
    taken: list[ReceivedCommand] = []
    while len(taken) < count:
        received = await bus.receive(count - len(taken), PATIENCE_SECONDS)
        assert received, f"only {len(taken)} of {count} commands came"
        taken += received
    return taken


async def take_nothing(bus: Bus) -> None:
    assert contents(await bus.receive(10, SHORT_SECONDS)) == []


def contents(commands: Sequence[ReceivedCommand]) -> list[str]:
    return [command.data.decode() for command in commands]


@asynccontextmanager
async def watching(bus: Bus, channel: Channel) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """Watch a channel, once the watch is known to have begun."""
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


async def see_until(watch: AsyncGenerator[bytes, None], last: str) -> list[str]:
    """The messages up to `last`."""
    seen: list[str] = []
    while last not in seen:
        seen += await see(watch, 1)
    return seen


async def see(watch: AsyncGenerator[bytes, None], count: int) -> list[str]:
    """The next `count` messages."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [(await anext(watch)).decode() for _ in range(count)]
