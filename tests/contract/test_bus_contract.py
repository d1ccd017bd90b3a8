"""The bus contract, on every broker."""

from itertools import count

import pytest

from duetime.bus.jetstream.bus import JetStreamBus
from duetime.bus.memory import MemoryBroker, MemoryBus
from duetime.bus.redis.bus import RedisBus
from duetime.clock import SystemClock
from duetime.nats import NatsOptions
from duetime.testing.bus_contract import BusContract, MakeBus
from tests.brokers.nats_fixtures import MakeNats


class TestMemoryBus(BusContract):
    @pytest.fixture
    def make_bus(self, redeliver_after_seconds: float) -> MakeBus:
        broker = MemoryBroker(redeliver_after_seconds=redeliver_after_seconds)
        return lambda: MemoryBus(broker)


class TestJetStreamBus(BusContract):
    @pytest.fixture
    def make_bus(self, make_nats: MakeNats, redeliver_after_seconds: float) -> MakeBus:
        # A server for each test, in 25 ms: a consumer that is deleted and created again may
        # start with the state of the deleted one (seen with NATS 2.15, once in 100 times).
        options = NatsOptions(url=make_nats().url)
        return lambda: JetStreamBus(
            options, SystemClock(), redeliver_after_seconds=redeliver_after_seconds
        )


class TestRedisBus(BusContract):
    drops_repeats = False

    @pytest.fixture
    def make_bus(self, redis_url: str, redeliver_after_seconds: float) -> MakeBus:
        nodes = count(1)
        return lambda: RedisBus(redis_url, f"node-{next(nodes)}", redeliver_after_seconds)
