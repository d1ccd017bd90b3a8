"""A broker inside the process, for tests and for trying things out. It forgets all at the end."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from heapq import heappop, heappush
from itertools import islice

from msgspec import Struct

from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Channel, OutgoingMessage, ReceivedCommand

REDELIVER_AFTER_SECONDS = 30.0
GIVE_BACK_SECONDS = 1.0
"""One that nobody can handle would go round without a pause otherwise."""

MAX_IN_FLIGHT = 4_096
MAX_KEPT = 100_000
"""Nobody takes events and rejections away, so the oldest make room, as do the oldest ids."""


class _Held(Struct):
    """That a command was handed over, to whom, and until when nobody else gets it."""

    holder: object
    until: float


class _Stored:
    """What a channel keeps. Repeats of an id are dropped also when their message is gone."""

    def __init__(self) -> None:
        self.data: OrderedDict[int, bytes] = OrderedDict()
        self.watchers: set[Watcher] = set()
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_repeat(self, message_id: str) -> bool:
        return message_id in self._ids

    def add(self, order: int, message: OutgoingMessage) -> None:
        self.data[order] = message.data
        self._ids[message.id] = None
        if len(self._ids) > MAX_KEPT:
            self._ids.popitem(last=False)
        for watcher in self.watchers:
            watcher.unseen.append(message.data)


class Watcher:
    """Somebody who looks at a channel, and what there is that was not looked at yet."""

    def __init__(self) -> None:
        self.unseen: deque[bytes] = deque()


class MemoryBroker:
    """What a broker keeps. Every bus on it is another node, all of them on one event loop.

    Time is that of the loop, so that on a virtual one nobody waits.
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
        """Everything that is stored, the oldest first: of commands those that nobody has
        acknowledged, of the others all, but no more than a hundred thousand."""
        return list(self._stored[channel].data.values())

    def fail_with(self, message: str | None) -> None:
        """From now on every method of every bus does nothing and raises `BusUnavailable` with
        this message (`close` raises nothing). With None they work again."""
        self._failure = message
        self.wake()

    def lose_answers_with(self, message: str | None) -> None:
        """From now on what is published is stored and `publish` raises `BusUnavailable` with this
        message nevertheless, as if the answer got lost. With None answers arrive again."""
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
            elif len(stored.data) > MAX_KEPT:
                stored.data.popitem(last=False)
            self.wake()
        if self._lost_answer is not None:
            raise BusUnavailable(self._lost_answer)

    def hand_over(self, holder: object, limit: int, now: float) -> list[ReceivedCommand]:
        self._free_overdue(now)
        handed_over: list[ReceivedCommand] = []
        stored = self._stored[Channel.COMMANDS].data
        while self._free and len(handed_over) < limit and len(self._held) < MAX_IN_FLIGHT:
            order = heappop(self._free)
            # One that ran out of time and was acknowledged all the same is not there any more.
            if order in stored:
                self._held[order] = _Held(holder, now + self._redeliver_after_seconds)
                handed_over.append(ReceivedCommand(data=stored[order], order=order))
        return handed_over

    def forget(self, commands: Iterable[ReceivedCommand]) -> None:
        """Whoever holds them: brokers believe an acknowledgement that comes late, too."""
        for command in commands:
            self._stored[Channel.COMMANDS].data.pop(command.order, None)
            self._held.pop(command.order, None)
        self.wake()

    def take_back(self, holder: object, commands: Iterable[ReceivedCommand], until: float) -> None:
        """What the holder still has of the commands is handed over to nobody until then."""
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
        """When a command that is held or was given back is next handed over."""
        held = (each.until for each in self._held.values())
        given_back = iter(self._given_back.values())
        return min(
            (at for at in (next(held, None), next(given_back, None)) if at is not None),
            default=None,
        )

    def add_watcher(self, channel: Channel, watcher: Watcher, last: int) -> None:
        """The last ones that are stored are the first for it to look at."""
        stored = self._stored[channel]
        watcher.unseen.extendleft(islice(reversed(stored.data.values()), last))
        stored.watchers.add(watcher)

    def remove_watcher(self, channel: Channel, watcher: Watcher) -> None:
        self._stored[channel].watchers.discard(watcher)

    async def wait_for_change(self, until: float | None) -> None:
        """No longer than until then, in the time of the loop."""
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
        # All are given the same time, so the first of them is the first to run out of it.
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

    async def publish(self, message: OutgoingMessage) -> None:
        self._check()
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
