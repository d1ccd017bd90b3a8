"""Schedule calls over the bus and handle each event once.

    pip install nats-py
    python examples/bus_round_trip.py nats://127.0.0.1:4222

This needs NATS with JetStream, and a running Duetime server that uses it as its broker. Without an
argument, the broker is TIMER_BROKER_URL. `schedule` and `consume` share only the broker, so each
could be a program of its own.
"""

import argparse
import asyncio
import json
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import nats
from nats.js import JetStreamContext
from nats.js.errors import NoStreamResponseError, NotFoundError

TENANT = "acme"
CONSUMER = "bus_round_trip"
CONNECT_SECONDS = 5
PATIENCE = timedelta(seconds=10)


async def schedule(jetstream: JetStreamContext, call: str, due_at: datetime) -> None:
    """When this returns, the broker has stored the command. If it raises, the command may be stored
    or not: send the same bytes again, and the broker stores them once by their id."""
    command_id = str(uuid.uuid4())
    command = {
        "id": command_id,
        "type": "ScheduleTimer",
        "tenantId": TENANT,
        "timestampMs": time.time_ns() // 1_000_000,
        "correlationId": f"example of {call}",
        "payload": {"tenantId": TENANT, "serviceCallId": call, "dueAt": due_at.isoformat()},
    }
    data = json.dumps(command).encode()
    await jetstream.publish("timer.commands", data, headers={"Nats-Msg-Id": command_id})


class Calls:
    """Pending calls and handled events. A real service writes the ids of handled events to its
    database, in the same transaction as the work."""

    def __init__(self, due_at_by_call: dict[str, datetime]) -> None:
        self._handled: set[str] = set()
        self.waiting = dict(due_at_by_call)

    def handle(self, event: dict[str, Any]) -> None:
        if event["id"] in self._handled:
            print(f"(event {event['id']} was handled before)")
            return
        self._handled.add(event["id"])
        call = event["payload"]["serviceCallId"]
        due_at = self.waiting.pop(call, None)
        if due_at is None:
            print(f"{call}: scheduled by another program")
            return
        late = datetime.now(UTC) - due_at
        print(f"{call}: due  ({late / timedelta(milliseconds=1):.1f} ms late)", flush=True)


async def consume(jetstream: JetStreamContext, calls: Calls) -> None:
    """Handle events until none is missing; a real consumer runs for ever. The broker keeps unread
    events for a durable consumer, so none is missed while the program is stopped."""
    subscription = await jetstream.pull_subscribe("timer.events", durable=CONSUMER)
    give_up_at = max(calls.waiting.values()) + PATIENCE
    while calls.waiting:
        try:
            messages = await subscription.fetch(100, timeout=1)
        except TimeoutError:
            # No event within the second.
            messages = []
        for message in messages:
            calls.handle(json.loads(message.data))
            # Acknowledge after the work: the broker repeats unacknowledged events.
            await message.ack()
        if not messages and datetime.now(UTC) > give_up_at:
            names = ", ".join(calls.waiting)
            sys.exit(f"no event came for {names}: check that a server with this broker is running")


@asynccontextmanager
async def jetstream_at(url: str) -> AsyncIterator[JetStreamContext]:
    """A connection that reconnects by itself."""
    if not url.startswith(("nats://", "tls://")):
        sys.exit("this example needs the address of a NATS server, such as nats://127.0.0.1:4222")

    async def tell(error: Exception) -> None:
        print(f"NATS: {error}", file=sys.stderr)

    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await nats.connect(url, error_cb=tell)
    except TimeoutError:
        sys.exit(f"no NATS server answered within {CONNECT_SECONDS} s")
    try:
        yield connection.jetstream()
    except (NoStreamResponseError, NotFoundError):
        sys.exit(
            "the broker has no streams for timers: start NATS with JetStream (nats-server -js), "
            "then start a Duetime server with this broker, which creates them"
        )
    finally:
        await connection.close()


async def make_round_trip(url: str, count: int, seconds: float) -> None:
    first_at = datetime.now(UTC) + timedelta(seconds=seconds)
    run = uuid.uuid4().hex[:8]
    due_at_by_call = {
        f"call-{run}-{number}": first_at + timedelta(seconds=number / 10)
        for number in range(1, count + 1)
    }
    async with jetstream_at(url) as jetstream:
        for call, due_at in due_at_by_call.items():
            await schedule(jetstream, call, due_at)
        print(f"{count} calls are scheduled, the first in {seconds:g} s.", flush=True)
        await consume(jetstream, Calls(due_at_by_call))


def main() -> None:
    parser = argparse.ArgumentParser(description="Schedule calls over the bus.")
    parser.add_argument("url", nargs="?", default=os.environ.get("TIMER_BROKER_URL", ""))
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=2, help="seconds until the first call is due"
    )
    options = parser.parse_args()
    asyncio.run(make_round_trip(options.url, options.calls, options.seconds))


if __name__ == "__main__":
    main()
