"""Nodes learn of each other's pauses, and keep to them while the store is away."""

from collections.abc import Sequence

import pytest

from duetime.domain.errors import EndpointNotPaused, StoreUnavailable
from duetime.domain.security.access import EVERYTHING
from duetime.ports.endpoints import EndpointPause
from duetime.service.endpoints.endpoints import REFRESH_SECONDS, Endpoints, PauseWatch
from duetime.service.turns import Turns
from duetime.stores.memory.pause_table import PauseTable
from duetime.testing import LoopClock, on_virtual_time
from tests.unit.api.asgi_client import Reporter

ONE, OTHER = "https://one.example:443", "https://other.example:443"


class AbsentTable(PauseTable):
    """A store of pauses that can be away."""

    away = False

    async def pauses(self) -> Sequence[EndpointPause]:
        if self.away:
            raise StoreUnavailable("away for a test")
        return await super().pauses()


class Node:
    def __init__(self, store: PauseTable, clock: LoopClock) -> None:
        self.reporter = Reporter()
        self.endpoints = Endpoints(store, self.reporter, clock, Turns(clock), str)
        self.watch = PauseWatch(self.endpoints, clock)


@on_virtual_time
async def test_a_pause_on_one_node_is_seen_by_the_others() -> None:
    clock, store = LoopClock(), AbsentTable()
    here, there = Node(store, clock), Node(store, clock)
    there.watch.start()
    await here.endpoints.pause(ONE, "why", EVERYTHING)
    await here.endpoints.pause(OTHER, None, EVERYTHING)
    assert list(here.reporter.pauses) == [ONE, OTHER], "at once"
    await clock.sleep(2 * REFRESH_SECONDS)
    assert there.reporter.pauses == here.reporter.pauses
    assert there.reporter.pauses[ONE].reason == "why"
    await there.endpoints.resume(ONE)
    assert here.endpoints.paused == 2
    with pytest.raises(EndpointNotPaused):
        await here.endpoints.resume(ONE)
    assert list(here.reporter.pauses) == [OTHER], "the refusal shows what is so"
    await there.watch.abandon()


@on_virtual_time
async def test_a_node_keeps_to_its_pauses_while_the_store_is_away() -> None:
    clock, store = LoopClock(), AbsentTable()
    node = Node(store, clock)
    await node.endpoints.pause(ONE, None, EVERYTHING)
    node.watch.start()
    store.away = True
    await clock.sleep(20)
    assert list(node.reporter.pauses) == [ONE]
    await store.remove_pause(ONE)
    store.away = False
    await clock.sleep(3)
    assert not node.reporter.pauses
    await node.watch.abandon()
