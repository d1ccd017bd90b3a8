"""A NATS server for each JetStream test, with a client and buses on it."""

from collections.abc import AsyncIterator
from typing import Protocol

import nats
import pytest
from nats.aio.client import Client

from duetime.bus.jetstream.bus import JetStreamBus
from duetime.clock import SystemClock
from duetime.nats import NatsOptions
from duetime.ports.bus import REDELIVER_AFTER_SECONDS
from tests.brokers.nats_fixtures import MakeNats
from tests.brokers.nats_server import NatsServer


class OpenBus(Protocol):
    async def __call__(
        self, *, redeliver_after_seconds: float = REDELIVER_AFTER_SECONDS
    ) -> JetStreamBus: ...


@pytest.fixture
def server(make_nats: MakeNats) -> NatsServer:
    return make_nats()


@pytest.fixture
async def client(server: NatsServer) -> AsyncIterator[Client]:
    """A client other than Duetime."""
    client = await nats.connect(server.url, allow_reconnect=False)
    yield client
    await client.close()


@pytest.fixture
async def open_bus(server: NatsServer) -> AsyncIterator[OpenBus]:
    opened: list[JetStreamBus] = []

    async def open_another(
        *, redeliver_after_seconds: float = REDELIVER_AFTER_SECONDS
    ) -> JetStreamBus:
        bus = JetStreamBus(
            NatsOptions(url=server.url, connect_timeout_seconds=2),
            SystemClock(),
            redeliver_after_seconds=redeliver_after_seconds,
        )
        opened.append(bus)
        await bus.open()
        return bus

    yield open_another
    for bus in opened:
        await bus.close()
