"""The bus on Redis Streams: Valkey, or Redis from 6.2 on.

A channel is the stream of its name; an entry has the fields `id`, `key` and `data`. Commands are
read by the consumer group `duetime`, in which every node is a consumer. Events and rejections are
kept for a week; who wants them reads the stream, with a consumer group of their own if they like.

This broker cannot drop a message that it has already: consumers tell a repeat by the id of its
envelope. And it stores as well as it is set up to: with `appendonly yes` a crash of the server
loses nothing, one of the whole machine what its `appendfsync` allows (a second, as a rule).
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from redis.exceptions import ResponseError

from duetime.bus.redis.connection import Answer, RedisConnection
from duetime.bus.redis.publisher import RedisPublisher
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Channel, OutgoingMessage, ReceivedCommand

GROUP = "duetime"
RETURNED = "duetime:returned"
"""The consumer that commands are given back to. Nobody acts for it, so that they are free."""

REDELIVER_AFTER_SECONDS = 30.0
KEEP_SECONDS = 7 * 24 * 3600.0
MAX_IN_FLIGHT = 4_096
GIVE_BACK_SECONDS = 1.0
"""One that nobody can handle would go round without a pause otherwise."""

LOOK_AGAIN_SECONDS = 1.0
"""How long a node that waits for commands does not notice one that was given back by another."""

RECLAIM_SECONDS = 3.0
"""How often a busy node looks for commands whose holder died."""

FORGET_AFTER_MS = 3_600_000
WATCH_BATCH = 100
MOST_OLD = 10_000

_COMMANDS = Channel.COMMANDS.value
_ORDERS_PER_MS = 1_000_000
_MS = 1_000

# A consumer takes what it holds with it, so it must hold nothing at the moment of its removal.
_REMOVE_IDLE_CONSUMER = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
return 0
"""


class RedisBus:
    """Implements the bus port. `node` tells the nodes of one service apart."""

    def __init__(
        self,
        url: str,
        node: str,
        redeliver_after_seconds: float = REDELIVER_AFTER_SECONDS,
        keep_seconds: float = KEEP_SECONDS,
    ) -> None:
        """Raises `ValueError` if the URL cannot be understood."""
        self._connection = RedisConnection(url)
        self._publisher = RedisPublisher(self._connection, keep_seconds)
        self._node = node
        self._redeliver_after_ms = round(redeliver_after_seconds * _MS)
        self._look_again_seconds = min(LOOK_AGAIN_SECONDS, redeliver_after_seconds / 2)
        self._reclaim_seconds = min(RECLAIM_SECONDS, redeliver_after_seconds / 2)
        self._reclaim_at = 0.0
        self._acknowledged = asyncio.Event()

    @property
    def name(self) -> str:
        return self._connection.name

    @property
    def is_connected(self) -> bool:
        return self._connection.is_connected

    async def open(self) -> None:
        """A stream comes into being with its first entry; only that of commands is made here, for
        the sake of its group."""
        self._connection.open()
        # Asked first, since a server without memory refuses to create even what is there.
        (groups,) = await self._connection.ask_each([("XINFO", "GROUPS", _COMMANDS)])
        if not isinstance(groups, ResponseError) and _has_group(groups):
            await self._forget_dead_nodes()
            return
        create = ("XGROUP", "CREATE", _COMMANDS, GROUP, "0", "MKSTREAM")
        (answer,) = await self._connection.ask_each([create])
        if isinstance(answer, ResponseError) and not str(answer).startswith("BUSYGROUP"):
            raise self._connection.unavailable(answer)

    async def close(self) -> None:
        try:
            await self._give_back_all()
            await self._remove_consumer(self._node)
        except BusUnavailable:
            # Others find out by themselves that nobody acknowledges what this node held.
            pass
        finally:
            await self._connection.close()
            await self._publisher.wait_until_idle()

    async def receive(self, limit: int, wait_seconds: float) -> Sequence[ReceivedCommand]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_seconds
        while True:
            in_flight, returned = await self._in_flight()
            if in_flight and (returned or loop.time() >= self._reclaim_at):
                commands = await self._reclaim(limit)
                if commands:
                    return commands
                self._reclaim_at = loop.time() + self._reclaim_seconds
            room = min(limit, MAX_IN_FLIGHT - in_flight)
            commands = await self._read(room, 0.0)
            wait = min(self._look_again_seconds, until - loop.time())
            if not commands and wait > 0:
                commands = await self._read(room, wait)
                self._reclaim_at = 0.0
            if commands or loop.time() >= until:
                return commands

    async def acknowledge(self, commands: Sequence[ReceivedCommand]) -> None:
        """Entries that are done with are deleted: the channel is ours alone, and a stream keeps
        what was acknowledged until its server has no memory left."""
        if commands:
            ids = _ids_of(commands)
            await self._connection.ask_together(
                ("XACK", _COMMANDS, GROUP, *ids), ("XDEL", _COMMANDS, *ids)
            )
            self._acknowledged.set()

    async def give_back(self, commands: Sequence[ReceivedCommand]) -> None:
        if commands:
            await self._return(_ids_of(commands), GIVE_BACK_SECONDS)

    async def publish(self, message: OutgoingMessage) -> None:
        await self._publisher.publish(message)

    async def watch(self, channel: Channel, last: int = 0) -> AsyncGenerator[bytes, None]:
        count = max(1, min(last, MOST_OLD))
        newest = await self._connection.ask("XREVRANGE", channel.value, "+", "-", "COUNT", count)
        last_id: bytes = newest[0][0] if newest else b"0-0"
        for _, fields in reversed(newest[:last]):
            yield _data_of(fields)
        wait_ms = round(LOOK_AGAIN_SECONDS * _MS)
        read = ("XREAD", "COUNT", WATCH_BATCH, "BLOCK", wait_ms, "STREAMS", channel.value)
        while True:
            answer = await self._connection.ask(*read, last_id, wait_seconds=LOOK_AGAIN_SECONDS)
            for entry_id, fields in _entries(answer):
                last_id = entry_id
                yield _data_of(fields)

    async def _in_flight(self) -> tuple[int, bool]:
        """How many commands were handed over and not acknowledged, by any node, and whether some
        of them were given back."""
        pending, _, _, holders = await self._connection.ask("XPENDING", _COMMANDS, GROUP)
        return pending, any(name == RETURNED.encode() for name, _ in holders or ())

    async def _read(self, limit: int, wait_seconds: float) -> list[ReceivedCommand]:
        """Commands that were never handed over."""
        if limit <= 0:
            await self._wait_for_acknowledgements(wait_seconds)
            return []
        block = ("BLOCK", max(1, round(wait_seconds * _MS))) if wait_seconds > 0 else ()
        group = ("GROUP", GROUP, self._node, "COUNT", limit)
        answer = await self._connection.ask(
            "XREADGROUP", *group, *block, "STREAMS", _COMMANDS, ">", wait_seconds=wait_seconds
        )
        return [_command(*entry) for entry in _entries(answer)]

    async def _wait_for_acknowledgements(self, wait_seconds: float) -> None:
        """Of this node; whether others have acknowledged something is seen when asking again."""
        self._acknowledged.clear()
        try:
            async with asyncio.timeout(wait_seconds):
                await self._acknowledged.wait()
        except TimeoutError:
            return

    async def _reclaim(self, limit: int) -> list[ReceivedCommand]:
        """Commands that were given back, or whose holder has had its time."""
        start: bytes = b"0-0"
        while True:
            options = (self._redeliver_after_ms, start, "COUNT", limit)
            answer = await self._connection.ask(
                "XAUTOCLAIM", _COMMANDS, GROUP, self._node, *options
            )
            start, entries = answer[0], answer[1]
            # Redis 6.2 answers nothing, or an entry without fields, where one was deleted.
            commands = [_command(*entry) for entry in entries if entry and entry[1] is not None]
            if commands or start == b"0-0":
                return commands

    async def _give_back_all(self) -> None:
        held = await self._connection.ask(
            "XPENDING", _COMMANDS, GROUP, "-", "+", MAX_IN_FLIGHT * 2, self._node
        )
        if held:
            await self._return([each[0] for each in held], 0.0)

    async def _return(self, ids: list[bytes], after_seconds: float) -> None:
        """As if by then they had not been acknowledged for long enough."""
        idle_ms = max(0, self._redeliver_after_ms - round(after_seconds * _MS))
        options = ("IDLE", idle_ms, "JUSTID")
        await self._connection.ask("XCLAIM", _COMMANDS, GROUP, RETURNED, 0, *ids, *options)

    async def _forget_dead_nodes(self) -> None:
        """Every start of a node may leave a consumer behind."""
        consumers = await self._connection.ask("XINFO", "CONSUMERS", _COMMANDS, GROUP)
        for consumer in map(_fields, consumers):
            if not consumer[b"pending"] and consumer[b"idle"] > FORGET_AFTER_MS:
                await self._remove_consumer(consumer[b"name"])

    async def _remove_consumer(self, name: str | bytes) -> None:
        await self._connection.ask("EVAL", _REMOVE_IDLE_CONSUMER, 1, _COMMANDS, GROUP, name)


def _fields(flat: Sequence[Answer]) -> dict[bytes, Answer]:
    """Fields and values come in turns."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _has_group(groups: Sequence[Sequence[Answer]]) -> bool:
    return any(_fields(group)[b"name"] == GROUP.encode() for group in groups)


def _entries(answer: Answer) -> Sequence[tuple[bytes, Sequence[bytes]]]:
    """Of the one stream that was read."""
    return answer[0][1] if answer else ()


def _data_of(fields: Sequence[bytes]) -> bytes:
    """Nothing, if somebody put an entry there that has none: that is no valid message either."""
    data: bytes = _fields(fields).get(b"data", b"")
    return data


def _command(entry_id: bytes, fields: Sequence[bytes]) -> ReceivedCommand:
    milliseconds, _, number = entry_id.partition(b"-")
    return ReceivedCommand(
        data=_data_of(fields),
        order=int(milliseconds) * _ORDERS_PER_MS + int(number),
        receipt=entry_id,
    )


def _ids_of(commands: Sequence[ReceivedCommand]) -> list[bytes]:
    return [command.receipt for command in commands if isinstance(command.receipt, bytes)]
