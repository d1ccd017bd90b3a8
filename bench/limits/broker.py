"""The bare limits of the bus: loops of the NATS client that handle the same messages.

Commands are fetched and acknowledged; events are published and confirmed. The loops have streams
of their own.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Iterator

import msgspec
import nats
import uvloop
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import random_id
from bench.harness.load_generator import RandomInstants
from bench.measurements.bus.command_publisher import Publish, publish_all
from bench.measurements.bus.envelopes import due_time_reached
from bench.measurements.bus.nats_protocol import HOST

STREAM = "bench-limit"
SUBJECT = "bench.limit"
CONSUMER = "bench"
FETCH_SECONDS = 10.0
TIMEOUT_SECONDS = 300.0


class Consume(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Fetch and acknowledge `count` waiting commands, `batch` at a time."""

    port: int
    count: int
    batch: int
    instants: RandomInstants


class PublishEvents(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Publish `count` events, with `in_flight` unanswered at a time."""

    port: int
    count: int
    in_flight: int


class BrokerLimit(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    seconds: float
    per_second: float


RETENTIONS = {Consume: RetentionPolicy.WORK_QUEUE, PublishEvents: RetentionPolicy.LIMITS}


def limit_of(count: int, seconds: float) -> BrokerLimit:
    return BrokerLimit(count=count, seconds=round(seconds, 4), per_second=round(count / seconds, 1))


async def consume(client: Client, question: Consume) -> BrokerLimit:
    await publish_all(
        Publish(
            port=question.port, count=question.count, instants=question.instants, subject=SUBJECT
        )
    )
    config = ConsumerConfig(
        durable_name=CONSUMER, ack_policy=AckPolicy.EXPLICIT, max_ack_pending=4 * question.batch
    )
    subscription = await client.jetstream().pull_subscribe(
        SUBJECT, durable=CONSUMER, stream=STREAM, config=config
    )
    gc.collect()
    fetched = 0
    started = time.perf_counter()
    while fetched < question.count:
        for message in await subscription.fetch(question.batch, timeout=FETCH_SECONDS):
            await message.ack()
            fetched += 1
    while (await subscription.consumer_info()).num_ack_pending:
        continue
    return limit_of(fetched, time.perf_counter() - started)


async def publish_events(client: Client, question: PublishEvents) -> BrokerLimit:
    now_us = time.time_ns() // 1_000
    ids = [random_id() for _ in range(question.count)]
    messages = iter(
        [(each, due_time_reached(each, number, now_us)) for number, each in enumerate(ids)]
    )
    gc.collect()
    started = time.perf_counter()
    await asyncio.gather(*(publish_in_turn(client, messages) for _ in range(question.in_flight)))
    return limit_of(question.count, time.perf_counter() - started)


async def publish_in_turn(client: Client, messages: Iterator[tuple[str, bytes]]) -> None:
    stream = client.jetstream()
    for message_id, body in messages:
        await stream.publish(SUBJECT, body, headers={"Nats-Msg-Id": message_id})


async def measure(question: Consume | PublishEvents) -> BrokerLimit:
    client = await nats.connect(f"nats://{HOST}:{question.port}")
    try:
        manager = client.jsm()
        await manager.add_stream(
            StreamConfig(
                name=STREAM,
                subjects=[SUBJECT],
                storage=StorageType.FILE,
                # As in Duetime: an acknowledged command is deleted.
                retention=RETENTIONS[type(question)],
            )
        )
        if isinstance(question, Consume):
            figures = await consume(client, question)
        else:
            figures = await publish_events(client, question)
        await manager.delete_stream(STREAM)
        return figures
    finally:
        await client.close()


def measure_broker(question: Consume | PublishEvents) -> BrokerLimit:
    """Called in the parent: run the loop in a child process."""
    with Child("bench.limits.broker") as child:
        return child.ask(question, BrokerLimit, TIMEOUT_SECONDS)


def main() -> None:
    question = msgspec.json.decode(sys.stdin.buffer.readline(), type=Consume | PublishEvents)
    answer_parent(uvloop.run(measure(question)))


if __name__ == "__main__":
    main()
