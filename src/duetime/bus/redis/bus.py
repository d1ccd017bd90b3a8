"""The bus on Redis Streams: Valkey, or Redis from 6.2 on.

A channel is the stream of its name. Every node is a consumer of the group `duetime`.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from redis.exceptions import ResponseError

from duetime.bus.redis.connection import Answer, RedisConnection
from duetime.bus.redis.publisher import RedisPublisher
from duetime.domain.errors import BusUnavailable
from duetime.domain.limits import MAX_OLD_MESSAGES
from duetime.ports.bus import (
    GIVE_BACK_SECONDS,
    KEEP_SECONDS,
    MAX_IN_FLIGHT,
    REDELIVER_AFTER_SECONDS,
    Channel,
    OutgoingMessage,
    ReceivedCommand,
)
from duetime.ports.destination import MaySend, always

GROUP = "duetime"
RETURNED = "duetime:returned"
"""Name of the consumer that holds returned commands. No node uses this name, so any node may take
them."""

POLL_SECONDS = 1.0
"""Time after which a waiting node notices a command that another node gave back."""

RECLAIM_SECONDS = 3.0
"""Time between two searches of a busy node for commands whose holder died."""

FORGET_CONSUMER_AFTER_MS = 3_600_000
WATCH_BATCH = 100

_COMMANDS = Channel.COMMANDS.value
_ORDERS_PER_MS = 1_000_000
_MS = 1_000

# Removing a consumer removes its pending entries, so check and removal must be atomic.
_REMOVE_IDLE_CONSUMER = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
return 0
"""


class RedisBus:
    """Implements the bus port. `node` is the name of this node's consumer."""

    def __init__(
        self,
        url: str,
        node: str,
        redeliver_after_seconds: float = REDELIVER_AFTER_SECONDS,
        keep_seconds: float = KEEP_SECONDS,
    ) -> None:
        """Raises `ValueError` for an invalid URL."""
        self._connection = RedisConnection(url)
        self._publisher = RedisPublisher(self._connection, keep_seconds)
        self._node = node
        self._redeliver_after_ms = round(redeliver_after_seconds * _MS)
        self._poll_seconds = min(POLL_SECONDS, redeliver_after_seconds / 2)
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
        """Create the stream of commands with its group. Other streams begin with their first
        entry."""
        self._connection.open()
        # Checked first: a server without memory refuses XGROUP CREATE even if the group exists.
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
            # Other nodes reclaim unacknowledged commands anyway.
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
            wait = min(self._poll_seconds, until - loop.time())
            if not commands and wait > 0:
                commands = await self._read(room, wait)
                self._reclaim_at = 0.0
            if commands or loop.time() >= until:
                return commands

    async def acknowledge(self, commands: Sequence[ReceivedCommand]) -> None:
        """Delete the entries, too: the channel is ours alone, and a stream would keep acknowledged
        entries until the server runs out of memory."""
        if commands:
            ids = _ids_of(commands)
            await self._connection.ask_together(
                ("XACK", _COMMANDS, GROUP, *ids), ("XDEL", _COMMANDS, *ids)
            )
            self._acknowledged.set()

    async def give_back(self, commands: Sequence[ReceivedCommand]) -> None:
        if commands:
            await self._return(_ids_of(commands), GIVE_BACK_SECONDS)

    async def count_waiting(self) -> int:
        # Acknowledged commands are deleted.
        return int(await self._connection.ask("XLEN", _COMMANDS))

    async def publish(self, message: OutgoingMessage, may_send: MaySend = always) -> None:
        await self._publisher.publish(message, may_send)

    async def watch(self, channel: Channel, last: int = 0) -> AsyncGenerator[bytes, None]:
        count = max(1, min(last, MAX_OLD_MESSAGES))
        newest = await self._connection.ask("XREVRANGE", channel.value, "+", "-", "COUNT", count)
        last_id: bytes = newest[0][0] if newest else b"0-0"
        for _, fields in reversed(newest[:last]):
            yield _data_of(fields)
        wait_ms = round(POLL_SECONDS * _MS)
        read = ("XREAD", "COUNT", WATCH_BATCH, "BLOCK", wait_ms, "STREAMS", channel.value)
        while True:
            answer = await self._connection.ask(*read, last_id, wait_seconds=POLL_SECONDS)
            for entry_id, fields in _entries(answer):
                last_id = entry_id
                yield _data_of(fields)

    async def _in_flight(self) -> tuple[int, bool]:
        """The number of unacknowledged commands of all nodes, and whether any were given back."""
        pending, _, _, holders = await self._connection.ask("XPENDING", _COMMANDS, GROUP)
        return pending, any(name == RETURNED.encode() for name, _ in holders or ())

    async def _read(self, limit: int, wait_seconds: float) -> list[ReceivedCommand]:
        """Read commands that were never handed over."""
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
        """Wait for this node's acknowledgements; those of other nodes show at the next poll."""
        self._acknowledged.clear()
        try:
            async with asyncio.timeout(wait_seconds):
                await self._acknowledged.wait()
        except TimeoutError:
            return

    async def _reclaim(self, limit: int) -> list[ReceivedCommand]:
        """Take over commands that were given back, or whose holder ran out of time."""
        start: bytes = b"0-0"
        while True:
            options = (self._redeliver_after_ms, start, "COUNT", limit)
            answer = await self._connection.ask(
                "XAUTOCLAIM", _COMMANDS, GROUP, self._node, *options
            )
            start, entries = answer[0], answer[1]
            # Redis 6.2 returns nil, or an entry without fields, for a deleted entry.
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
        """Set the idle time such that redelivery is due after `after_seconds`."""
        idle_ms = max(0, self._redeliver_after_ms - round(after_seconds * _MS))
        options = ("IDLE", idle_ms, "JUSTID")
        await self._connection.ask("XCLAIM", _COMMANDS, GROUP, RETURNED, 0, *ids, *options)

    async def _forget_dead_nodes(self) -> None:
        """Remove idle consumers: every start of a node may leave one behind."""
        consumers = await self._connection.ask("XINFO", "CONSUMERS", _COMMANDS, GROUP)
        for consumer in map(_fields, consumers):
            if not consumer[b"pending"] and consumer[b"idle"] > FORGET_CONSUMER_AFTER_MS:
                await self._remove_consumer(consumer[b"name"])

    async def _remove_consumer(self, name: str | bytes) -> None:
        await self._connection.ask("EVAL", _REMOVE_IDLE_CONSUMER, 1, _COMMANDS, GROUP, name)


def _fields(flat: Sequence[Answer]) -> dict[bytes, Answer]:
    """Pair up alternating fields and values."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _has_group(groups: Sequence[Sequence[Answer]]) -> bool:
    return any(_fields(group)[b"name"] == GROUP.encode() for group in groups)


def _entries(answer: Answer) -> Sequence[tuple[bytes, Sequence[bytes]]]:
    """The entries of the one stream that was read."""
    return answer[0][1] if answer else ()


def _data_of(fields: Sequence[bytes]) -> bytes:
    """The field `data`; empty, and so no valid message, if a foreign entry has none."""
    data: bytes = _fields(fields).get(b"data", b"")
    return data


def _command(entry_id: bytes, fields: Sequence[bytes]) -> ReceivedCommand:
    milliseconds, _, number = entry_id.partition(b"-")
    return ReceivedCommand(
        data=_data_of(fields),
        order=int(milliseconds) * _ORDERS_PER_MS + int(number),
        receipt=entry_id,
        traceparent=_fields(fields).get(b"traceparent"),
    )


def _ids_of(commands: Sequence[ReceivedCommand]) -> list[bytes]:
    return [command.receipt for command in commands if isinstance(command.receipt, bytes)]
