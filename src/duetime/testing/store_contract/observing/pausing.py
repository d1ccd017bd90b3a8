"""The pauses of endpoints."""

import pytest

from duetime.ports.endpoints import EndpointPause
from duetime.testing.store_contract.durability import durable
from duetime.testing.store_contract.steps import Reopen, Store, at

PAUSE = EndpointPause(
    endpoint="https://api.example.com:443",
    paused_at=at(1),
    paused_by="günther's key",
    reason="a deploy \N{EM DASH} 'back' at 15:00",
)


def of(endpoint: str) -> EndpointPause:
    return EndpointPause(endpoint=endpoint, paused_at=at(2), paused_by="API_KEY")


@pytest.mark.asyncio
class PausingContract:
    async def test_pauses_are_kept_in_the_order_of_endpoints(
        self, store: Store, reopen: Reopen
    ) -> None:
        assert not await store.endpoint_pauses.pauses()
        others = [of("nats://127.0.0.1:4222 orders"), of("http://a:80")]
        for each in (PAUSE, *others):
            assert await store.endpoint_pauses.add_pause(each)
        kept = await durable(store, reopen)
        assert list(await kept.endpoint_pauses.pauses()) == [others[1], PAUSE, others[0]]

    async def test_a_second_pause_of_an_endpoint_changes_nothing(self, store: Store) -> None:
        pauses = store.endpoint_pauses
        assert await pauses.add_pause(PAUSE)
        assert not await pauses.add_pause(of(PAUSE.endpoint))
        assert list(await pauses.pauses()) == [PAUSE]

    async def test_a_pause_is_removed_once(self, store: Store, reopen: Reopen) -> None:
        for each in (PAUSE, of("http://a:80")):
            await store.endpoint_pauses.add_pause(each)
        assert await store.endpoint_pauses.remove_pause(PAUSE.endpoint)
        assert not await store.endpoint_pauses.remove_pause(PAUSE.endpoint)
        kept = await durable(store, reopen)
        assert list(await kept.endpoint_pauses.pauses()) == [of("http://a:80")]

    async def test_text_that_no_store_can_hold_is_replaced(self, store: Store) -> None:
        odd = EndpointPause(
            endpoint="http://a\0:80", paused_at=at(1), paused_by="\ud800", reason="why\0"
        )
        await store.endpoint_pauses.add_pause(odd)
        (kept,) = await store.endpoint_pauses.pauses()
        assert (kept.paused_by, kept.reason) == ("?", "why\N{REPLACEMENT CHARACTER}")
        assert await store.endpoint_pauses.remove_pause(odd.endpoint)
