"""A lease that runs out between the claim and the first byte of its callback."""

import asyncio
import socket
from collections.abc import Sequence
from types import NoneType
from typing import cast

import pytest

from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import Address, HttpClient, parse_target
from duetime.domain.callback import HttpCallback
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.outcome import Completed, NotSent, Outcome
from duetime.domain.timer import Claim
from duetime.engine.deliveries import Deliveries
from duetime.engine.held_leases import HeldLeases
from duetime.engine.lanes.breaker import Breaker
from duetime.engine.lanes.lane import Lane
from duetime.engine.meters import EngineMeters
from duetime.engine.settler import Settler
from duetime.engine.wait_log import WaitLog
from duetime.engine.wakeups import LocalWakeUps
from duetime.pauses import Pauses
from duetime.stores.memory import MemoryStore
from duetime.testing.virtual_clock import VirtualClock
from tests.integration.delivery.http_client.servers import OK, answer_each_with, post, serve
from tests.unit.delivery.claims import claim_of


class SlowResolver:
    """Finds the loopback address, but only when `found` is set."""

    def __init__(self) -> None:
        self.asked, self.found = asyncio.Event(), asyncio.Event()

    async def resolve(self, host: str, port: int, deadline: float) -> Sequence[Address]:
        self.asked.set()
        await self.found.wait()
        return [(socket.AF_INET, "127.0.0.1")]


class FreeLane:
    """A lane for one attempt."""

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.is_free = asyncio.Event()
        self.breaker = Breaker("https://api.example.test", VirtualClock(), Pauses())

    def answered(
        self, claim: Claim, outcome: Outcome | None, began_seconds: float, now_seconds: float
    ) -> None:
        self.outcome = outcome
        self.is_free.set()


@pytest.mark.parametrize("lease_runs_out", [True, False])
async def test_nothing_is_sent_under_a_lease_that_ran_out_while_connecting(
    lease_runs_out: bool,
) -> None:
    clock, wakeups, names = VirtualClock(), LocalWakeUps(), SlowResolver()
    leases = HeldLeases(clock)
    leases.take({ShardNumber(0): Epoch(1)})
    leases.valid_until_seconds = 5.0
    destination = HttpDestination(HttpClient(resolve=names.resolve), clock, 30_000)
    settler = Settler(MemoryStore(), wakeups, wakeups, clock, EngineMeters())
    deliveries = Deliveries(destination, settler, leases, clock, wakeups, EngineMeters(), WaitLog())
    lane = FreeLane()
    async with serve(answer_each_with(OK)) as server:
        callback = HttpCallback(url=server.url(host="api.example.test"))
        deliveries.start(cast(Lane, lane), claim_of(callback), None)
        await names.asked.wait()
        clock.advance(5.0 if lease_runs_out else 4.9)
        names.found.set()
        await lane.is_free.wait()
        requests = [request for peer in server.peers for request in peer.requests]
        assert len(requests) == (0 if lease_runs_out else 1)
        assert settler.unwritten == len(requests)
        assert deliveries.has_dropped is lease_runs_out
        assert isinstance(lane.outcome, NoneType if lease_runs_out else Completed)
        await destination.close()


async def test_a_connection_that_was_opened_in_vain_serves_the_next_request() -> None:
    client = HttpClient()
    async with serve(answer_each_with(OK)) as server:
        with pytest.raises(NotSent):
            await client.post(parse_target(server.url()), b"", None, 5.0, may_send=lambda: False)
        assert (await post(client, server.url())).status == 200
        assert [len(peer.requests) for peer in server.peers] == [1]
    await client.close()
