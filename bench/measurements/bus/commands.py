"""Commands over the bus: how fast their timers become durable and are acknowledged.

The bound applies to a backlog, which leaves the cores to the server and the broker. A second run
publishes at the same time.
"""

import time

import msgspec

from bench.harness.server import Server
from bench.limits.broker import BrokerLimit, Consume, measure_broker
from bench.measurements.bus.command_publisher import (
    Publish,
    PublishFigures,
    publish_commands,
    publish_faults,
)
from bench.measurements.bus.command_watcher import Drained, Watcher
from bench.measurements.v1.batches import random_instants
from bench.scale import BusScale
from bench.stores.store_under_test import StoreUnderTest, Tally
from duetime.bus.command_consumer import MAX_BATCH
from tests.brokers.nats_server import NatsServer

GRACE_SECONDS = 120.0
POLL_SECONDS = 0.01


class CommandsRun(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` end when the broker has no command left and the server counts every timer."""

    seconds: float
    per_second: float
    published: PublishFigures
    stored: int
    redelivered: int
    faults: list[str]


class CommandsFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`backlog` counts from the last poll before the broker delivered anything, `live` from the
    first published command. `limit` is measured just before."""

    count: int
    backlog: CommandsRun
    live: CommandsRun
    limit: BrokerLimit
    ratio: float
    faults: list[str]


class ServerNow:
    """Counts of the current server, for a tally that outlives a restart."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def total(self, status: str) -> int:
        return self.server.total(status)


def measure_commands(store: StoreUnderTest, broker: NatsServer, scale: BusScale) -> CommandsFigures:
    instants = random_instants()
    limit = measure_broker(
        Consume(port=broker.port, count=scale.commands, batch=MAX_BATCH, instants=instants)
    )
    publish = Publish(port=broker.port, count=scale.commands, instants=instants)
    # The server creates the streams.
    with Server(store, broker_url=broker.url) as server:
        now = ServerNow(server)
        tally = store.tally(now)
    published = publish_commands(publish)
    with Watcher() as watcher:
        waiting = watcher.begin(broker.port, GRACE_SECONDS)
        with Server(store, broker_url=broker.url) as server:
            now.server = server
            backlog = run_of("backlog", tally, published, watcher.wait(), scale.commands)
            live = run_live(server, broker, publish)
    faults = [*backlog.faults, *live.faults]
    if waiting != scale.commands:
        faults.append(f"commands, backlog: {waiting} commands waited, not {scale.commands}")
    return CommandsFigures(
        count=scale.commands,
        backlog=backlog,
        live=live,
        limit=limit,
        ratio=round(backlog.per_second / limit.per_second, 3),
        faults=faults,
    )


def run_live(server: Server, broker: NatsServer, publish: Publish) -> CommandsRun:
    tally = server.tally()
    with Watcher() as watcher:
        published = publish_commands(publish)
        watcher.begin(broker.port, GRACE_SECONDS)
        drained = watcher.wait()
    drained = msgspec.structs.replace(drained, untouched_us=published.started_us)
    return run_of("live", tally, published, drained, publish.count)


def run_of(
    what: str, tally: Tally, published: PublishFigures, drained: Drained, count: int
) -> CommandsRun:
    stored, told_us = wait_until_stored(tally, count)
    seconds = (told_us - drained.untouched_us) / 1e6
    what = f"commands, {what}"
    faults = publish_faults(what, published)
    if not drained.complete:
        faults.append(f"{what}: {drained.left} commands not acknowledged in time")
    if stored != count:
        faults.append(f"{what}: {count} published but {stored} stored")
    return CommandsRun(
        seconds=round(seconds, 4),
        per_second=round(stored / seconds, 1),
        published=published,
        stored=stored,
        redelivered=drained.redelivered,
        faults=faults,
    )


def wait_until_stored(tally: Tally, count: int) -> tuple[int, int]:
    """The number of stored timers, and the instant of that answer.

    Acknowledged commands are stored, so the first answer should suffice. Five seconds are allowed
    before timers count as missing."""
    deadline = time.monotonic() + 5.0
    while True:
        stored = tally.pending()
        now_us = time.time_ns() // 1_000
        if stored >= count or time.monotonic() > deadline:
            return stored, now_us
        time.sleep(POLL_SECONDS)
