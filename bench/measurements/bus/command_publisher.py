"""Publishes commands, built before the clock starts, as fast as JetStream accepts them."""

import asyncio
import gc
import sys
import time
from collections.abc import Sequence

import msgspec
import uvloop

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import random_id
from bench.harness.load_generator import EvenInstants, RandomInstants
from bench.measurements.bus.envelopes import schedule_timer
from bench.measurements.bus.nats_protocol import Wire, connect, publish_frame
from duetime.ports.bus import Channel

IN_FLIGHT = 1_000
TIMEOUT_SECONDS = 120.0


class Publish(msgspec.Struct, frozen=True, kw_only=True):
    """`count` commands, numbered from `first_number`."""

    port: int
    count: int
    instants: RandomInstants | EvenInstants
    first_number: int = 0
    subject: str = Channel.COMMANDS.value
    in_flight: int = IN_FLIGHT


class PublishFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`accepted` counts the commands that the broker stored; `refusal` is its first other answer.

    Instants are wall-clock time."""

    count: int
    accepted: int
    refusal: str | None
    started_us: int
    finished_us: int

    @property
    def per_second(self) -> float:
        return round(self.accepted * 1e6 / max(1, self.finished_us - self.started_us), 1)


class Pump:
    """Keeps `in_flight` messages unanswered until all are sent."""

    def __init__(self, frames: Sequence[bytes], in_flight: int) -> None:
        self._frames = frames
        self._in_flight = in_flight
        self._sent = 0
        self._answered = 0
        self.accepted = 0
        self.refusal: str | None = None
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def send(self, wire: Wire) -> None:
        self._wire = wire
        until = min(len(self._frames), self._answered + self._in_flight)
        if until > self._sent:
            wire.write(b"".join(self._frames[self._sent : until]))
            self._sent = until

    def take_answers(self, answers: Sequence[bytes], now_ns: int) -> None:
        self._answered += len(answers)
        for answer in answers:
            if b'"seq"' in answer and b'"error"' not in answer:
                self.accepted += 1
            else:
                self.refusal = (
                    self.refusal or answer[:300].decode() or "no stream stores the subject"
                )
        self.send(self._wire)
        if self._answered == len(self._frames):
            self.finished.set_result(None)


def frames_of(publish: Publish, reply: str) -> list[bytes]:
    now_ms = time.time_ns() // 1_000_000
    frames = []
    for index in range(publish.count):
        message_id = random_id()
        due_us = publish.instants.due_us(index)
        body = schedule_timer(message_id, publish.first_number + index, due_us, now_ms)
        frames.append(publish_frame(publish.subject, reply, message_id, body))
    return frames


async def publish_all(publish: Publish) -> PublishFigures:
    reply = f"_INBOX.bench.{random_id()}"
    pump = Pump(frames_of(publish, reply), publish.in_flight)
    wire = await connect(publish.port, pump.take_answers)
    wire.subscribe(reply)
    await wire.reach_server()
    gc.collect()
    gc.freeze()
    started_us = time.time_ns() // 1_000
    pump.send(wire)
    await asyncio.wait(
        [pump.finished, wire.broken], timeout=TIMEOUT_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    finished_us = time.time_ns() // 1_000
    wire.check()
    wire.close()
    return PublishFigures(
        count=publish.count,
        accepted=pump.accepted,
        refusal=pump.refusal,
        started_us=started_us,
        finished_us=finished_us,
    )


def publish_commands(publish: Publish) -> PublishFigures:
    """Called in the parent: publish in a child process."""
    with Child("bench.measurements.bus.command_publisher") as child:
        return child.ask(publish, PublishFigures, TIMEOUT_SECONDS + 30)


def publish_faults(what: str, figures: PublishFigures) -> list[str]:
    if figures.accepted == figures.count:
        return []
    missing = figures.count - figures.accepted
    return [
        f"{what}: {missing} of {figures.count} commands not accepted by the broker"
        f" ({figures.refusal or 'no answer'})"
    ]


def main() -> None:
    publish = msgspec.json.decode(sys.stdin.buffer.readline(), type=Publish)
    answer_parent(uvloop.run(publish_all(publish)))


if __name__ == "__main__":
    main()
