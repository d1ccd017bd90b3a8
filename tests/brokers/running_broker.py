"""The broker of a server under test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.brokers.broker_process import BrokerProcess
from tests.brokers.bus_client import BusClient, Json
from tests.brokers.nats_bus_client import NatsBusClient
from tests.brokers.redis_bus_client import RedisBusClient
from tests.polling import poll

if TYPE_CHECKING:
    # pytest must be the first to import its plugins.
    from tests.brokers.nats_fixtures import MakeNats
    from tests.brokers.valkey_fixtures import MakeValkey

with_each_broker = pytest.mark.parametrize("broker", ["nats", "redis"], indirect=True)
"""For tests of brokers that do not depend on the database."""

on_every_broker = pytest.mark.parametrize(
    ("database", "broker"),
    [("sqlite", "nats"), ("postgresql", "nats"), ("sqlite", "redis")],
    indirect=True,
)
"""For tests with a server. A test then runs as `test_x[sqlite-nats]`, `test_x[postgresql-nats]` and
`test_x[sqlite-redis]`."""


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """`process` may be stopped, killed and started again."""

    url: str
    process: BrokerProcess
    client: Callable[[], BusClient]

    @property
    def settings(self) -> dict[str, str]:
        """The settings with which a server uses this broker."""
        return {"TIMER_BROKER_URL": self.url}


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> RunningBroker:
    """An empty broker for this test only: NATS with JetStream, unless the test is marked with
    `on_every_broker` or `with_each_broker`."""
    if getattr(request, "param", "nats") == "nats":
        make_nats: MakeNats = request.getfixturevalue("make_nats")
        nats = make_nats()
        return RunningBroker(nats.url, nats.process, lambda: NatsBusClient(nats.url))
    make_valkey: MakeValkey = request.getfixturevalue("make_valkey")
    valkey = make_valkey()
    return RunningBroker(valkey.url, valkey.process, lambda: RedisBusClient(valkey.url))


async def bus_health(api: httpx.AsyncClient) -> Json:
    """The health of the bus, as the server reports it."""
    bus: Json = (await api.get("/healthz")).json()["data"]["bus"]
    return bus


async def wait_for_bus(api: httpx.AsyncClient, matches: Callable[[Json], bool]) -> Json:
    """The health of the bus, once it matches."""
    return await poll(lambda: bus_health(api), matches)


async def wait_until_taken(api: httpx.AsyncClient, count: int) -> None:
    """Wait until the server has acknowledged `count` commands since its start."""
    await wait_for_bus(api, lambda bus: bus["commands_received"] >= count)


async def wait_until_all_acknowledged(bus: BusClient) -> None:
    """Wait, because a broker processes acknowledgements with a delay."""
    await poll(bus.unacknowledged, lambda count: count == 0)
