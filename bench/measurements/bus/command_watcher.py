"""Polls the broker until every command is delivered and acknowledged.

A child process polls, so that it can start before the server does.
"""

import asyncio
import sys
import time
from typing import Self

import msgspec
import nats
import uvloop
from nats.js.manager import JetStreamManager

from bench.harness.child import Child, answer_parent
from bench.measurements.bus.nats_protocol import HOST
from duetime.ports.bus import Channel

POLL_SECONDS = 0.02
START_SECONDS = 15.0


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    port: int
    timeout_seconds: float


class Watching(msgspec.Struct, frozen=True):
    """The first poll is done; `left` is the number of waiting commands."""

    left: int


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """`untouched_us` is the last poll before the broker delivered anything; `drained_us` is when no
    command was left. `complete` is False after a timeout."""

    untouched_us: int
    drained_us: int
    complete: bool
    left: int
    redelivered: int


class Seen(msgspec.Struct, frozen=True):
    """Sums over the consumers of the stream."""

    delivered: int
    left: int
    redelivered: int


async def poll(manager: JetStreamManager, stream: str) -> Seen:
    infos = await manager.consumers_info(stream)
    return Seen(
        delivered=sum(each.delivered.consumer_seq for each in infos if each.delivered),
        left=sum((each.num_pending or 0) + (each.num_ack_pending or 0) for each in infos),
        redelivered=sum(each.num_redelivered or 0 for each in infos),
    )


async def watch(question: Watch) -> Drained:
    client = await nats.connect(f"nats://{HOST}:{question.port}")
    manager = client.jsm()
    stream = await manager.find_stream_name_by_subject(Channel.COMMANDS)
    deadline = time.monotonic() + question.timeout_seconds
    untouched_us = time.time_ns() // 1_000
    first = seen = await poll(manager, stream)
    answer_parent(Watching(first.left))
    while seen.left and time.monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        asked_us = time.time_ns() // 1_000
        seen = await poll(manager, stream)
        if seen.delivered == first.delivered:
            untouched_us = asked_us
    drained_us = time.time_ns() // 1_000
    await client.close()
    return Drained(
        untouched_us=untouched_us,
        drained_us=drained_us,
        complete=not seen.left,
        left=seen.left,
        redelivered=seen.redelivered,
    )


class Watcher:
    """The parent's handle of the watcher process. Polling starts with `begin`."""

    def __init__(self) -> None:
        self._child = Child("bench.measurements.bus.command_watcher")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()

    def begin(self, port: int, timeout_seconds: float) -> int:
        """Start polling; returns the number of waiting commands. May be called once."""
        self._timeout_seconds = timeout_seconds
        question = Watch(port=port, timeout_seconds=timeout_seconds)
        return self._child.ask(question, Watching, START_SECONDS).left

    def wait(self) -> Drained:
        return self._child.read(Drained, self._timeout_seconds + 10)


def main() -> None:
    question = msgspec.json.decode(sys.stdin.buffer.readline(), type=Watch)
    answer_parent(uvloop.run(watch(question)))


if __name__ == "__main__":
    main()
