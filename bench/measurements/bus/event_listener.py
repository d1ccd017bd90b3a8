"""The consumer of events: a JetStream consumer of its own, which remembers when each arrived.

It runs in its own process. While events arrive it only frames them, notes the instant and keeps
the bytes; what is in them is read afterwards.
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
    """The first that the parent says. Events that are published afterwards are heard."""

    port: int


class Listening(msgspec.Struct, frozen=True):
    stream: str


class Event(msgspec.Struct, frozen=True, array_like=True):
    """`number` is that of the command; -1 when it is none of ours. `reached_us` is when the
    service announced it, as it says itself."""

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
        # Rounded down, so that an event less than a microsecond early is seen to be early.
        arrived_us=arrived_ns // 1_000,
        envelope_id=envelope.id,
        correlation_id=correlation_id if isinstance(correlation_id, str) else None,
    )


def take(inbox: Inbox, read: bool) -> list[Event]:
    arrived_ns, bodies = inbox.arrived_ns, inbox.requests
    inbox.take(read=False)
    return [event_of(*pair) for pair in zip(bodies, arrived_ns, strict=True)] if read else []


async def make_consumer(port: int, deliver_subject: str) -> str:
    """Have what is new in the stream of events sent to the subject."""
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
    # The inbox holds no cycles, and a collection would look like a late event.
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
    """The consumer of events as the parent sees it."""

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
        """How many arrived: `count` or more as soon as they did, else fewer when time is up."""
        question = Await(count=count, timeout_seconds=timeout_seconds)
        return self._child.ask(question, Arrivals, timeout_seconds + 10).count

    def take(self) -> list[Event]:
        """In the order of their arrival; they are forgotten."""
        return self._child.ask(Take(), Heard, 30).events


def main() -> None:
    uvloop.run(listen())


if __name__ == "__main__":
    main()
