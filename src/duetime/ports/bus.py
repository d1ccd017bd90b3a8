"""The bus: commands come in and events go out, whichever broker carries them.

A bus has three channels. Messages of one `key` keep their order in a channel. What is published is
there until somebody has received it, whether or not anybody listens at the time. Methods raise
`BusUnavailable` when the broker cannot do its work now; then it is unknown to the caller whether
the work was done, and it may be asked for again.
"""

from collections.abc import AsyncGenerator, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class Channel(StrEnum):
    """The name of a channel is the same at every broker."""

    COMMANDS = "timer.commands"
    EVENTS = "timer.events"
    REJECTED = "timer.commands.rejected"


class OutgoingMessage(Struct, frozen=True, kw_only=True):
    """`id` names the message: a broker that can drops another one of the same id. `key` is what
    its consumers may divide the channel by; messages of one key stay in order."""

    channel: Channel
    id: str
    key: str
    data: bytes


class ReceivedCommand(Struct, frozen=True, kw_only=True):
    """A command that somebody put on the bus, as it came.

    `order` grows from one message of the channel to the next, also when the broker forgets the
    messages in between. It stays with the message when that is handed over again, so it tells
    which of two commands was meant last. `receipt` is the adapter's own.
    """

    data: bytes
    order: int
    receipt: object = None


class Bus(Protocol):
    """One broker. The contract suite (`duetime.testing.bus_contract`) defines it in practice."""

    @property
    def name(self) -> str:
        """Where the broker is, such as `nats://bus.example.com:4222`; without any secret."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether the broker could be spoken to when that was last tried."""
        ...

    async def open(self) -> None:
        """Connect, and create the channels that are missing. Those that are there stay as they
        are, however they are set up.

        Afterwards the adapter mends a connection that breaks. Calling it again is always allowed,
        is quick if there is nothing to do, and creates what somebody removed meanwhile.
        """
        ...

    async def close(self) -> None:
        """Let go. What was received and not acknowledged will be handed over to others. Never
        raises, whatever the broker does. Afterwards every other method raises `BusUnavailable`,
        until it is opened again, and whoever watches is told that it is over."""
        ...

    async def receive(self, limit: int, wait_seconds: float) -> Sequence[ReceivedCommand]:
        """Take over commands, the oldest first: up to `limit` of those that nobody holds. None if
        there are none for `wait_seconds`.

        All nodes of a service share the commands: each is handed over to one of them. One that is
        not acknowledged within half a minute, because its holder died or is stuck, is handed over
        again, to whoever asks. No more than a few thousand are handed over and not acknowledged.
        """
        ...

    async def acknowledge(self, commands: Sequence[ReceivedCommand]) -> None:
        """They are done with and are handed over to nobody again. An acknowledgement may get lost
        on its way: then they are."""
        ...

    async def give_back(self, commands: Sequence[ReceivedCommand]) -> None:
        """Have them handed over again within a few seconds, to whoever asks. Not at once: what
        could not be done now would only be tried over and over."""
        ...

    async def publish(self, message: OutgoingMessage) -> None:
        """Put a message on its channel. On return the broker has stored it, or has an earlier one
        of the same id. May be called many times at once; takes no longer than a few seconds."""
        ...

    def watch(self, channel: Channel, last: int = 0) -> AsyncGenerator[bytes, None]:
        """For a person to look at: first the last `last` messages that the channel holds, the
        oldest of them first, then what is published from the first `anext` on. None is missing in
        between, and none comes twice as far as the broker can help it.

        A channel holds no command that was acknowledged. Fewer than `last` come if there are not
        so many, or not within ten thousand places of the broker's log.

        It takes nothing away from those who receive it. When the connection breaks, either messages
        are missed or it ends with `BusUnavailable`."""
        ...
