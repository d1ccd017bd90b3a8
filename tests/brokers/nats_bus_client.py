"""A client of the bus on NATS JetStream."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StreamInfo
from nats.js.errors import NotFoundError

from duetime.ports.bus import Channel
from tests.brokers.bus_client import PATIENCE_SECONDS, Command, EventBook, Json

MOST_AT_ONCE = 256
TRY_SECONDS = 1.0
BATCH = 500
ACK_WAIT_SECONDS = 2.0
"""Time after which the broker hands over again what it was handing over when it died."""


class NatsBusClient:
    """Reads events through a durable consumer of its own. The streams of the service are found by
    subject, whatever their names."""

    def __init__(self, url: str, *, durable: str = "application", reads: bool = True) -> None:
        self.book = EventBook()
        self._url = url
        self._durable = durable
        self._reads = reads
        self._client = Client()

    @property
    def core(self) -> Client:
        """Plain NATS, without streams."""
        return self._client

    @property
    def streams(self) -> JetStreamContext:
        return self._client.jetstream(timeout=TRY_SECONDS)

    async def send(self, commands: Sequence[Command]) -> None:
        gate = asyncio.Semaphore(MOST_AT_ONCE)

        async def send_one(command: Command) -> None:
            async with gate:
                await self._store(command)

        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*map(send_one, commands))

    async def rejections(self) -> list[Json]:
        return [json.loads(message.data) for message in await self.stored(Channel.REJECTED)]

    async def stored(self, channel: Channel) -> list[Msg]:
        """All messages in the stream of the channel, in order."""
        stream = await self._stream(channel)
        held = (await self.streams.stream_info(stream)).state.messages
        config = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=10)
        subscription = await self.streams.pull_subscribe(channel, stream=stream, config=config)
        messages: list[Msg] = []
        while len(messages) < held:
            messages += await subscription.fetch(BATCH, timeout=PATIENCE_SECONDS)
        await subscription.unsubscribe()
        return messages

    async def unacknowledged(self) -> int:
        """The stream is a work queue: acknowledged messages are gone."""
        return (await self.stream(Channel.COMMANDS)).state.messages

    async def handed_over(self) -> int:
        """Number of commands that the service holds."""
        stream = await self._stream(Channel.COMMANDS)
        (consumer,) = await self.streams.consumers_info(stream)
        return int(consumer.num_ack_pending or 0)

    async def prepare_commands(self, *, ack_wait_seconds: float) -> None:
        """As an operator may do before the service first starts."""
        await self.streams.add_stream(
            name="COMMANDS", subjects=[Channel.COMMANDS], retention=RetentionPolicy.WORK_QUEUE
        )
        consumer = ConsumerConfig(
            durable_name="duetime",
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ack_wait_seconds,
            filter_subject=Channel.COMMANDS,
        )
        await self.streams.add_consumer("COMMANDS", consumer)

    async def prepare_events(self, *, max_messages: int) -> None:
        """A stream that refuses messages when it is full."""
        await self.streams.add_stream(
            name="EVENTS",
            subjects=[Channel.EVENTS],
            max_msgs=max_messages,
            discard=DiscardPolicy.NEW,
        )

    async def stream(self, channel: Channel) -> StreamInfo:
        return await self.streams.stream_info(await self._stream(channel))

    async def purge(self, channel: Channel) -> None:
        assert await self.streams.purge_stream(await self._stream(channel))

    async def _store(self, command: Command) -> None:
        headers = {"Nats-Msg-Id": command.id}
        while True:
            # The broker is away, or there is no stream yet. A repeat is dropped by its id.
            with suppress(NatsError, TimeoutError):
                await self.streams.publish(
                    Channel.COMMANDS, command.data, timeout=TRY_SECONDS, headers=headers
                )
                return

    async def _stream(self, channel: Channel) -> str:
        return await self.streams.find_stream_name_by_subject(channel)

    async def _subscribe(self) -> JetStreamContext.PullSubscription:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                with suppress(NotFoundError):
                    return await self.streams.pull_subscribe(
                        Channel.EVENTS,
                        durable=self._durable,
                        stream=await self._stream(Channel.EVENTS),
                        config=ConsumerConfig(ack_wait=ACK_WAIT_SECONDS),
                    )

    async def _read(self, subscription: JetStreamContext.PullSubscription) -> None:
        while True:
            with suppress(NatsError, TimeoutError):
                for message in await subscription.fetch(BATCH, timeout=TRY_SECONDS):
                    self.book.enter(str(message.metadata.sequence.stream), message.data)
                    await message.ack()

    async def __aenter__(self) -> Self:
        self._client = await nats.connect(
            self._url,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.02,
            error_cb=_say_nothing,
        )
        if self._reads:
            self.book.start_reading(self._read(await self._subscribe()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.book.stop_reading()
        await self._client.close()


async def _say_nothing(error: Exception) -> None:
    """Tests take the broker away on purpose."""
