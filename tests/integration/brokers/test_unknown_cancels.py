"""A CancelTimer and a node that died with its ScheduleTimer, on real brokers."""

from collections.abc import Callable
from itertools import count

import pytest

from duetime.bus import unknown_cancels
from duetime.bus.command_consumer import CommandConsumer
from duetime.bus.jetstream.bus import JetStreamBus
from duetime.bus.redis.bus import RedisBus
from duetime.clock import SystemClock
from duetime.domain.timer import TimerStatus
from duetime.nats import NatsOptions
from duetime.ports.bus import Bus
from duetime.testing.bus_contract.steps import message, take
from tests.brokers.nats_fixtures import MakeNats
from tests.polling import poll
from tests.unit.bus.consumer_bench import Bench, cancel_command, command

REDELIVER_AFTER_SECONDS = 1.5

MakeBus = Callable[[], Bus]


@pytest.fixture(params=["redis", "jetstream"])
def make_bus(request: pytest.FixtureRequest) -> MakeBus:
    nodes = count(1)
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        return lambda: RedisBus(url, f"node-{next(nodes)}", REDELIVER_AFTER_SECONDS)
    make_nats: MakeNats = request.getfixturevalue("make_nats")
    options, clock = NatsOptions(url=make_nats().url), SystemClock()
    return lambda: JetStreamBus(options, clock, redeliver_after_seconds=REDELIVER_AFTER_SECONDS)


async def test_a_cancel_counts_though_the_node_with_its_schedule_died(
    make_bus: MakeBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_cancels, "REDELIVER_AFTER_SECONDS", REDELIVER_AFTER_SECONDS)
    bench, dead, alive = Bench(), make_bus(), make_bus()
    await dead.open()
    await dead.publish(message(command("call")))
    await take(dead, 1)
    await dead.publish(message(cancel_command("call")))
    consumer = CommandConsumer(alive, bench.scheduling, SystemClock())
    consumer.start()

    async def handled() -> int:
        return consumer.counts.canceled + consumer.counts.unknown

    await poll(handled, bool)
    assert (await bench.store.counts(None))[TimerStatus.CANCELED] == 1
    await consumer.stop()
    await dead.close()
    await alive.close()
