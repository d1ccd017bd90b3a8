"""The bus contract, on every broker."""

from collections.abc import Iterator
from itertools import count

import nats
import pytest

from duetime.bus.jetstream.bus import JetStreamBus
from duetime.bus.memory import MemoryBroker, MemoryBus
from duetime.bus.redis.bus import RedisBus
from duetime.nats import NatsOptions
from duetime.testing.bus_contract import BusContract, MakeBus
from tests.brokers.broker_process import skip_without
from tests.brokers.nats_server import MISSING, NatsServer, find_nats_server


@pytest.fixture(scope="module")
def jetstream_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The names of the channels are fixed, so tests that run at once cannot share a server."""
    skip_without(find_nats_server(), MISSING)
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server.url


class TestMemoryBus(BusContract):
    @pytest.fixture
    def make_bus(self, redeliver_after_seconds: float) -> MakeBus:
        broker = MemoryBroker(redeliver_after_seconds=redeliver_after_seconds)
        return lambda: MemoryBus(broker)


class TestJetStreamBus(BusContract):
    @pytest.fixture
    async def make_bus(self, jetstream_url: str, redeliver_after_seconds: float) -> MakeBus:
        client = await nats.connect(jetstream_url)
        streams = client.jetstream()
        for stream in await streams.streams_info():
            await streams.delete_stream(str(stream.config.name))
        await client.close()
        options = NatsOptions(url=jetstream_url)
        return lambda: JetStreamBus(options, redeliver_after_seconds=redeliver_after_seconds)


class TestRedisBus(BusContract):
    drops_repeats = False

    @pytest.fixture
    def make_bus(self, redis_url: str, redeliver_after_seconds: float) -> MakeBus:
        nodes = count(1)
        return lambda: RedisBus(redis_url, f"node-{next(nodes)}", redeliver_after_seconds)
