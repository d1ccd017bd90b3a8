"""The bus: commands come in and events go out, whichever broker carries them."""

from collections.abc import AsyncGenerator, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from duetime.ports.destination import MaySend, always

REDELIVER_AFTER_SECONDS = 30.0
"""Time after which a command that is not acknowledged is handed over again."""

GIVE_BACK_SECONDS = 1.0
"""Pause before a command that was given back is handed over again."""

MAX_IN_FLIGHT = 4_096
"""Commands of all nodes that are handed over and not acknowledged."""

KEEP_SECONDS = 7 * 86_400
"""Time for which events and rejections are kept, at a broker that keeps them by age."""

DEDUPLICATION_SECONDS = 120
"""Time in which a message of the same id is dropped, at a broker that remembers ids by age."""


class Channel(StrEnum):
    """The name of a channel is the same at every broker."""

    COMMANDS = "timer.commands"
    EVENTS = "timer.events"
    REJECTED = "timer.commands.rejected"


class OutgoingMessage(Struct, frozen=True, kw_only=True):
    """`id` names the message: a broker that can do so drops another message of the same id.
    Consumers may divide the channel by `key`; messages of one key stay in order. `traceparent` is
    the trace context, which goes beside the data as the broker can carry it."""

    channel: Channel
    id: str
    key: str
    data: bytes
    traceparent: str | None = None


class ReceivedCommand(Struct, frozen=True, kw_only=True):
    """A command from the bus, as it came.

    `order` grows from one message of the channel to the next, even when the broker forgets the
    messages in between. A message that is handed over again keeps its `order`, so it shows which
    of two commands was published last. `traceparent` is the trace context that came beside the
    data, unchecked. `receipt` belongs to the adapter.
    """

    data: bytes
    order: int
    receipt: object = None
    traceparent: bytes | None = None


class Bus(Protocol):
    """One broker. The contract suite (`duetime.testing.bus_contract`) defines it in practice.

    A bus has three channels. Messages of one `key` keep their order in a channel. A published
    message is kept until a consumer has received it, whether or not a consumer listens at the
    time. Methods raise `BusUnavailable` when the broker cannot do its work now; then the caller
    does not know whether the work was done, and may ask for it again.
    """

    @property
    def name(self) -> str:
        """The address of the broker, such as `nats://bus.example.com:4222`; without any secret."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether the broker could be reached at the last try."""
        ...

    async def open(self) -> None:
        """Connect, and create the missing channels. Existing channels stay as they are, however
        they are set up.

        Afterwards the adapter mends a connection that breaks. Another call is always allowed, is
        quick if there is nothing to do, and creates channels that were removed meanwhile.
        """
        ...

    async def close(self) -> None:
        """Let go. Commands received and not acknowledged will be handed over to others. Never
        raises, whatever the broker does. Afterwards every other method raises `BusUnavailable`
        until the bus is opened again, and every `watch` ends with it."""
        ...

    async def receive(self, limit: int, wait_seconds: float) -> Sequence[ReceivedCommand]:
        """Take over commands, the oldest first: up to `limit` of those that no node holds. Empty
        if none comes within `wait_seconds`.

        All nodes of a service share the commands: each command is handed over to one of them. A
        command that is not acknowledged within `REDELIVER_AFTER_SECONDS`, because its holder died
        or is stuck, is handed over again, to the next node that asks. At most `MAX_IN_FLIGHT`
        commands are handed over and not acknowledged.
        """
        ...

    async def acknowledge(self, commands: Sequence[ReceivedCommand]) -> None:
        """The commands are done, and are not handed over again, unless the acknowledgement is
        lost on its way."""
        ...

    async def give_back(self, commands: Sequence[ReceivedCommand]) -> None:
        """Have the commands handed over again within a few seconds, to the next node that asks.
        Not at once: a command that cannot be done now would be tried over and over."""
        ...

    async def count_waiting(self) -> int:
        """The number of commands that are not acknowledged yet, whether or not a node has received
        them."""
        ...

    async def publish(self, message: OutgoingMessage, may_send: MaySend = always) -> None:
        """Put a message on its channel. On return the broker has stored it, or has an earlier
        message of the same id. May be called many times at once; takes at most a few seconds.

        `may_send` is asked directly before the first byte is sent, after connecting and waiting
        for other messages. If the answer is False nothing is sent, and `NotSent` is raised."""
        ...

    def watch(self, channel: Channel, last: int = 0) -> AsyncGenerator[bytes, None]:
        """Show a channel to a person: first the last `last` messages that the channel holds, the
        oldest of them first, then the messages published from the first `anext` on. None is
        missing in between, and none comes twice as far as the broker can prevent it.

        A channel holds no acknowledged command. Fewer than `last` messages come if there are
        fewer, or fewer within the last `MAX_OLD_MESSAGES` entries of the broker's log.

        Watching takes no message away from its consumers. When the connection breaks, either
        messages are missed or the watch ends with `BusUnavailable`."""
        ...
