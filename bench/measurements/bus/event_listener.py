"""A JetStream consumer that records when each event arrived.

Events are only framed, stamped and kept while they arrive. They are parsed after the measurement.
"""

import asyncio
import gc
import sys
from collections.abc import Sequence
from typing import Self

import msgspec
import nats
import uvloop
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import random_id
from bench.harness.receiver import Arrivals, Await, Inbox, Take
from bench.measurements.bus.envelopes import number_of
from bench.measurements.bus.nats_protocol import HOST, connect
from duetime.bus.messages import DueTimeReachedEnvelope
from duetime.domain.instants import parse_instant
from duetime.ports.bus import Channel

START_SECONDS = 15.0


class Listen(msgspec.Struct, frozen=True):
    """The parent's first message. Events published after the answer are recorded."""

    port: int


class Listening(msgspec.Struct, frozen=True):
    stream: str


class Event(msgspec.Struct, frozen=True, array_like=True):
    """`number` is the command's, or -1 for an unknown call id. `reached_us` is `reachedAt`."""

    number: int
    reached_us: int
    arrived_us: int
    envelope_id: str
    correlation_id: str | None


class Heard(msgspec.Struct, frozen=True):
    events: list[Event]


decode_envelope = msgspec.json.Decoder(DueTimeReachedEnvelope).decode


def event_of(body: bytes, arrived_ns: int) -> Event:
    envelope = decode_envelope(body)
    correlation_id = envelope.correlation_id
    return Event(
        number=number_of(envelope.payload.service_call_id),
        reached_us=parse_instant(envelope.payload.reached_at),
        # Rounded down: an event less than a microsecond early counts as early.
        arrived_us=arrived_ns // 1_000,
        envelope_id=envelope.id,
        correlation_id=correlation_id if isinstance(correlation_id, str) else None,
    )


def take(inbox: Inbox, read: bool) -> list[Event]:
    arrived_ns, bodies = inbox.arrived_ns, inbox.requests
    inbox.take(read=False)
    return [event_of(*pair) for pair in zip(bodies, arrived_ns, strict=True)] if read else []


async def make_consumer(port: int, deliver_subject: str) -> str:
    """Have new events sent to the subject. Returns the name of the stream."""
    client = await nats.connect(f"nats://{HOST}:{port}")
    try:
        manager = client.jsm()
        stream = await manager.find_stream_name_by_subject(Channel.EVENTS)
        config = ConsumerConfig(
            deliver_subject=deliver_subject,
            deliver_policy=DeliverPolicy.NEW,
            ack_policy=AckPolicy.NONE,
            filter_subject=Channel.EVENTS.value,
        )
        await manager.add_consumer(stream, config)
    finally:
        await client.close()
    return stream


async def listen() -> None:
    loop = asyncio.get_running_loop()
    inbox = Inbox()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    port = msgspec.json.decode(await orders.readline(), type=Listen).port

    def note(bodies: Sequence[bytes], now_ns: int) -> None:
        inbox.requests.extend(bodies)
        inbox.arrived_ns.extend([now_ns] * len(bodies))
        inbox.check_goal()

    wire = await connect(port, note)
    deliver_subject = f"_INBOX.bench.{random_id()}"
    wire.subscribe(deliver_subject)
    await wire.reach_server()
    stream = await make_consumer(port, deliver_subject)
    # A garbage collection would look like a late event, and the inbox holds no cycles.
    gc.collect()
    gc.disable()
    answer_parent(Listening(stream))
    while line := await orders.readline():
        wire.check()
        match msgspec.json.decode(line, type=Await | Take):
            case Await(count=count, timeout_seconds=timeout_seconds):
                answer_parent(Arrivals(await inbox.reach(count, timeout_seconds)))
            case Take(read=read):
                answer_parent(Heard(take(inbox, read)))
    wire.close()


class Listener:
    """The parent's handle of the consumer process."""

    def __init__(self, port: int) -> None:
        self._child = Child("bench.measurements.bus.event_listener")
        try:
            self._child.ask(Listen(port), Listening, START_SECONDS)
        except BaseException:
            self._child.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()

    def wait_for(self, count: int, timeout_seconds: float) -> int:
        """The number of arrivals: at least `count`, or fewer at the timeout."""
        question = Await(count=count, timeout_seconds=timeout_seconds)
        return self._child.ask(question, Arrivals, timeout_seconds + 10).count

    def take(self) -> list[Event]:
        """Return the events in order of arrival, and forget them."""
        return self._child.ask(Take(), Heard, 30).events


def main() -> None:
    uvloop.run(listen())


if __name__ == "__main__":
    main()
