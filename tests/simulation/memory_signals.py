"""Signals between the nodes of one event loop, which may get lost."""

import asyncio
from collections.abc import Callable, Mapping
from random import Random

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.ports.signals import SignalReceiver
from duetime.testing import LoopClock

TRAVEL_SECONDS = 0.001

Signal = Callable[[SignalReceiver], None]


class SignalHub:
    """Where all nodes meet. `lost` is the chance that a signal does not reach a node; each of
    its receivers is lost or not independently of the others, without notice."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = Random(0) if random is None else random
        self._listening: list[MemorySignals] = []
        self.lost = 0.0
        self.send_seconds = 0.0
        """How long a node takes to send a signal."""
        self.sent: list[Mapping[ShardNumber, Instant] | None] = []
        """The announced instants; None stands for a change of shards."""

    def listen(self, line: "MemorySignals") -> None:
        self._listening.append(line)

    def leave(self, line: "MemorySignals") -> None:
        if line in self._listening:
            self._listening.remove(line)

    def send(self, signal: Signal) -> None:
        for line in self._listening:
            if self._random.random() >= self.lost:
                asyncio.get_running_loop().call_later(TRAVEL_SECONDS, line.receive, signal)


class MemorySignals:
    """Implements the signals port for one node. `is_cut` says whether its line is broken."""

    def __init__(self, hub: SignalHub, is_cut: Callable[[], bool] = lambda: False) -> None:
        self._hub = hub
        self._is_cut = is_cut
        self._receiver: SignalReceiver | None = None

    async def start(self, receiver: SignalReceiver) -> None:
        self._receiver = receiver
        self._hub.listen(self)

    async def stop(self) -> None:
        self._receiver = None
        self._hub.leave(self)

    async def announce_due(self, due: Mapping[ShardNumber, Instant]) -> None:
        await self._prepare()
        self._hub.sent.append(due)
        self._hub.send(lambda receiver: receiver.due_announced(due))

    async def announce_shards_changed(self) -> None:
        await self._prepare()
        self._hub.sent.append(None)
        self._hub.send(lambda receiver: receiver.shards_changed())

    def receive(self, signal: Signal) -> None:
        if self._receiver is not None and not self._is_cut():
            signal(self._receiver)

    def reconnected(self) -> None:
        """The line was broken and is whole again."""
        self.receive(lambda receiver: receiver.signals_missed())

    async def _prepare(self) -> None:
        if self._hub.send_seconds:
            await LoopClock().sleep(self._hub.send_seconds)
        if self._is_cut():
            raise StoreUnavailable("the signal cannot be sent")
