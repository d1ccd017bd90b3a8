"""A broker inside the process, for tests and first trials. It forgets everything at the end."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from heapq import heappop, heappush
from itertools import islice

from msgspec import Struct

from duetime.domain.errors import BusUnavailable
from duetime.domain.outcome import NotSent
from duetime.ports.bus import (
    GIVE_BACK_SECONDS,
    MAX_IN_FLIGHT,
    REDELIVER_AFTER_SECONDS,
    Channel,
    OutgoingMessage,
    ReceivedCommand,
)
from duetime.ports.destination import MaySend, always

MAX_KEPT = 100_000
"""Messages and ids kept per channel. Nothing consumes events and rejections, so the oldest go."""


class _Held(Struct):
    """A command's holder, and the time until which nobody else gets the command."""

    holder: object
    until: float


class _Stored:
    """The messages of a channel. A repeated id is dropped even if its first message is gone."""

    def __init__(self) -> None:
        self.messages: OrderedDict[int, OutgoingMessage] = OrderedDict()
        self.watchers: set[Watcher] = set()
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_repeat(self, message_id: str) -> bool:
        return message_id in self._ids

    def add(self, order: int, message: OutgoingMessage) -> None:
        self.messages[order] = message
        self._ids[message.id] = None
        if len(self._ids) > MAX_KEPT:
            self._ids.popitem(last=False)
        for watcher in self.watchers:
            watcher.unseen.append(message.data)


def _received(message: OutgoingMessage, order: int) -> ReceivedCommand:
    traceparent = None if message.traceparent is None else message.traceparent.encode()
    return ReceivedCommand(data=message.data, order=order, traceparent=traceparent)


class Watcher:
    """A watch on a channel, and the messages that it has not returned yet."""

    def __init__(self) -> None:
        self.unseen: deque[bytes] = deque()


class MemoryBroker:
    """The state of the broker. Every `MemoryBus` on it is another node, all on one event loop.

    Time is the loop's, so tests with a virtual loop do not wait.
    """

    def __init__(self, *, redeliver_after_seconds: float = REDELIVER_AFTER_SECONDS) -> None:
        self._redeliver_after_seconds = redeliver_after_seconds
        self._stored = {channel: _Stored() for channel in Channel}
        self._last_order = 0
        self._free: list[int] = []
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._given_back: OrderedDict[int, float] = OrderedDict()
        self._waiting: set[asyncio.Future[None]] = set()
        self._failure: str | None = None
        self._lost_answer: str | None = None

    def messages(self, channel: Channel) -> list[bytes]:
        """The stored messages, oldest first: unacknowledged commands, or the last hundred thousand
        events or rejections."""
        return [message.data for message in self._stored[channel].messages.values()]

    def fail_with(self, message: str | None) -> None:
        """From now on every method of every bus does nothing and raises `BusUnavailable` with
        this message (`close` raises nothing). With None everything works again."""
        self._failure = message
        self.wake()

    def lose_answers_with(self, message: str | None) -> None:
        """From now on `publish` stores its message and still raises `BusUnavailable` with this
        message, as if the answer were lost. With None answers arrive again."""
        self._lost_answer = message

    def check(self) -> None:
        if self._failure is not None:
            raise BusUnavailable(self._failure)

    def store(self, message: OutgoingMessage) -> None:
        stored = self._stored[message.channel]
        if not stored.is_repeat(message.id):
            self._last_order += 1
            stored.add(self._last_order, message)
            if message.channel is Channel.COMMANDS:
                heappush(self._free, self._last_order)
            elif len(stored.messages) > MAX_KEPT:
                stored.messages.popitem(last=False)
            self.wake()
        if self._lost_answer is not None:
            raise BusUnavailable(self._lost_answer)

    def hand_over(self, holder: object, limit: int, now: float) -> list[ReceivedCommand]:
        self._free_overdue(now)
        handed_over: list[ReceivedCommand] = []
        stored = self._stored[Channel.COMMANDS].messages
        while self._free and len(handed_over) < limit and len(self._held) < MAX_IN_FLIGHT:
            order = heappop(self._free)
            # A command may be acknowledged after its holder's time is up; then it is gone.
            if order in stored:
                self._held[order] = _Held(holder, now + self._redeliver_after_seconds)
                handed_over.append(_received(stored[order], order))
        return handed_over

    def forget(self, commands: Iterable[ReceivedCommand]) -> None:
        """Applies to commands that another consumer holds by now, because brokers accept late
        acknowledgements."""
        for command in commands:
            self._stored[Channel.COMMANDS].messages.pop(command.order, None)
            self._held.pop(command.order, None)
        self.wake()

    def take_back(self, holder: object, commands: Iterable[ReceivedCommand], until: float) -> None:
        """Withhold from all nodes until `until` the commands that the holder still has."""
        for command in commands:
            if self._let_go(holder, command.order):
                self._given_back[command.order] = until
        self.wake()

    def free_all(self, holder: object) -> None:
        for order in list(self._held):
            if self._let_go(holder, order):
                heappush(self._free, order)
        self.wake()

    @property
    def next_free_at(self) -> float | None:
        """The time at which the next held or returned command becomes free."""
        held = (each.until for each in self._held.values())
        given_back = iter(self._given_back.values())
        return min(
            (at for at in (next(held, None), next(given_back, None)) if at is not None),
            default=None,
        )

    def add_watcher(self, channel: Channel, watcher: Watcher, last: int) -> None:
        """The watcher first returns the `last` stored messages."""
        stored = self._stored[channel]
        latest = islice(reversed(stored.messages.values()), last)
        watcher.unseen.extendleft(message.data for message in latest)
        stored.watchers.add(watcher)

    def remove_watcher(self, channel: Channel, watcher: Watcher) -> None:
        self._stored[channel].watchers.discard(watcher)

    async def wait_for_change(self, until: float | None) -> None:
        """Wait no longer than `until`, in the loop's time."""
        changed = asyncio.get_running_loop().create_future()
        self._waiting.add(changed)
        try:
            async with asyncio.timeout_at(until):
                await changed
        except TimeoutError:
            return
        finally:
            self._waiting.discard(changed)

    def wake(self) -> None:
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    def _let_go(self, holder: object, order: int) -> bool:
        held = self._held.get(order)
        if held is None or held.holder is not holder:
            return False
        del self._held[order]
        return True

    def _free_overdue(self, now: float) -> None:
        # All have the same time, so the first entry is the first to run out of it.
        while self._held and next(iter(self._held.values())).until <= now:
            heappush(self._free, self._held.popitem(last=False)[0])
        while self._given_back and next(iter(self._given_back.values())) <= now:
            heappush(self._free, self._given_back.popitem(last=False)[0])


class MemoryBus:
    """Implements the bus port for one node of this process."""

    name = "memory:"

    def __init__(self, broker: MemoryBroker | None = None) -> None:
        self._broker = MemoryBroker() if broker is None else broker
        self._is_open = False
        self._is_connected = False

    @property
    def is_connected(self) -> bool:
        return self._is_connected

    async def open(self) -> None:
        self._is_open = True
        self._check()

    async def close(self) -> None:
        self._is_open = self._is_connected = False
        self._broker.free_all(self)

    async def receive(self, limit: int, wait_seconds: float) -> Sequence[ReceivedCommand]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_seconds
        while True:
            self._check()
            handed_over = self._broker.hand_over(self, limit, loop.time())
            if handed_over or loop.time() >= until:
                return handed_over
            free_at = self._broker.next_free_at
            await self._broker.wait_for_change(until if free_at is None else min(until, free_at))

    async def acknowledge(self, commands: Sequence[ReceivedCommand]) -> None:
        self._check()
        self._broker.forget(commands)

    async def give_back(self, commands: Sequence[ReceivedCommand]) -> None:
        self._check()
        now = asyncio.get_running_loop().time()
        self._broker.take_back(self, commands, now + GIVE_BACK_SECONDS)

    async def count_waiting(self) -> int:
        self._check()
        return len(self._broker.messages(Channel.COMMANDS))

    async def publish(self, message: OutgoingMessage, may_send: MaySend = always) -> None:
        self._check()
        if not may_send():
            raise NotSent
        self._broker.store(message)

    async def watch(self, channel: Channel, last: int = 0) -> AsyncGenerator[bytes, None]:
        watcher = Watcher()
        self._broker.add_watcher(channel, watcher, last)
        try:
            while True:
                self._check()
                while watcher.unseen:
                    yield watcher.unseen.popleft()
                await self._broker.wait_for_change(None)
        finally:
            self._broker.remove_watcher(channel, watcher)

    def _check(self) -> None:
        self._is_connected = False
        if not self._is_open:
            raise BusUnavailable("the bus in memory is not open")
        self._broker.check()
        self._is_connected = True
