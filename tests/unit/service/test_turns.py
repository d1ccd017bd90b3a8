"""Heavy work in turns: others run between its slices, and slices of several requests alternate."""

import asyncio
from itertools import groupby

import pytest
from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.domain.namespace import Namespace
from duetime.event_loop import next_turn
from duetime.ports.store import CreateRequest, OnExisting, PageQuery, ScanQuery
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.service.sealing_store import with_sealed_contents
from duetime.service.turns import ITEMS_PER_LOOK, SLICE_SECONDS, Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import VirtualClock, make_timer
from tests.unit.api.v1.v1_bench import V1Bench, create_body


class WorkingClock(VirtualClock):
    """A clock on which every look takes as long as the work before it usually does."""

    def monotonic(self) -> float:
        self.advance(0.6 * SLICE_SECONDS)
        return super().monotonic()


class TurnCounter:
    """Counts the turns that the event loop gives to others."""

    def __init__(self) -> None:
        self.turns = 0
        self._counting = asyncio.ensure_future(self._count())

    async def _count(self) -> None:
        while True:
            await next_turn()
            self.turns += 1

    def stop(self) -> None:
        self._counting.cancel()


async def test_results_come_in_order() -> None:
    turns = Turns(VirtualClock())
    assert await turns.map(lambda a, b: a + b, [1, 2, 3], [10, 20, 30]) == [11, 22, 33]
    assert await turns.map(str, range(3 * ITEMS_PER_LOOK)) == list(map(str, range(24)))
    assert await turns.map(str, []) == []


async def test_an_item_that_takes_long_has_a_slice_of_its_own() -> None:
    clock = VirtualClock()
    turns = Turns(clock)
    others = TurnCounter()
    await turns.map(lambda _: clock.advance(2 * SLICE_SECONDS), range(20))
    others.stop()
    assert others.turns >= 20 - 1


async def test_an_error_ends_the_work_and_lets_the_next_one_begin() -> None:
    turns = Turns(VirtualClock())
    with pytest.raises(ZeroDivisionError):
        await turns.map(lambda each: 1 // each, [1, 0])
    assert await turns.map(abs, [-1]) == [1]


async def test_requests_take_turns_with_each_other() -> None:
    turns = Turns(WorkingClock())
    order: list[str] = []

    def note(name: str) -> None:
        order.append(name)

    many = 4 * ITEMS_PER_LOOK
    await asyncio.gather(*(turns.map(note, name * many) for name in ("a", "b")))
    slices = ["".join(names) for _, names in groupby(order)]
    assert [names[0] for names in slices] == ["a", "b"] * (len(slices) // 2)
    assert max(map(len, slices)) <= 2 * ITEMS_PER_LOOK


@pytest.mark.parametrize(
    "changes",
    [{}, {"callbackUrl": 3}, {"callbackUrl": "ftp://x"}, {"nope": 1}],
    ids=["valid", "wrong type", "wrong value", "unknown member"],
)
async def test_others_run_while_a_batch_is_created(changes: dict[str, object]) -> None:
    bench = await V1Bench(clock=WorkingClock()).open()
    batch = {"timers": [create_body(f"t{number}", **changes) for number in range(1_000)]}
    least = 1_000 // ITEMS_PER_LOOK
    for _ in range(2):
        # The second time all timers exist, or are wrong again.
        others = TurnCounter()
        reply = await bench.post("/batch", batch)
        others.stop()
        assert reply.status == 200
        assert others.turns >= 2 * least


async def test_others_run_while_lines_are_imported() -> None:
    bench = await V1Bench(clock=WorkingClock()).open()
    line = b'{"id": 1}\n'
    others = TurnCounter()
    reply = await bench.request("POST", "/api/v1/timers/import", 1_000 * line)
    others.stop()
    assert reply.json["invalid"] == 1_000
    assert others.turns >= 1_000 // ITEMS_PER_LOOK


async def test_others_run_while_the_depth_of_payloads_is_measured() -> None:
    bench = await V1Bench(clock=WorkingClock()).open()
    payload = [[[1]]] * 50
    timers = [create_body(f"t{number}", payload=payload) for number in range(1_000)]
    await bench.post("/batch", {"timers": timers})
    usual = [create_body(f"t{number}", payload=1) for number in range(1_000)]

    async def turns_of(batch: list[dict[str, object]]) -> int:
        others = TurnCounter()
        assert (await bench.post("/batch", {"timers": batch})).status == 200
        others.stop()
        return others.turns

    assert await turns_of(timers) >= await turns_of(usual) + 1_000 // ITEMS_PER_LOOK


async def test_others_run_while_a_list_is_answered() -> None:
    bench = await V1Bench(clock=WorkingClock()).open()
    await bench.post("/batch", {"timers": [create_body(f"t{number}") for number in range(1_000)]})
    others = TurnCounter()
    reply = await bench.request("GET", "/api/v1/timers?namespace=default&limit=1000")
    others.stop()
    assert len(reply.json["timers"]) == 1_000
    assert others.turns >= 1_000 // ITEMS_PER_LOOK - 1


async def test_others_run_while_contents_are_sealed_and_unsealed() -> None:
    sealer = CallbackSealer(Sealer([SealingKey("k", bytes(32))]))
    store = with_sealed_contents(MemoryStore(), sealer, Turns(WorkingClock()))
    await store.add_namespace(Namespace("default", 16))
    callback = HttpCallback(url="https://one.example/", payload=Raw(b"1"))
    timers = [make_timer(f"t{number}", callback=callback) for number in range(200)]
    requests = [CreateRequest(each, OnExisting.KEEP) for each in timers]
    for call in (
        store.create(requests),
        store.create(requests),
        store.page(PageQuery(namespace="default", limit=200)),
        store.scan_entries(ScanQuery(namespace="default", limit=200)),
        store.restore(timers),
    ):
        others = TurnCounter()
        await call
        others.stop()
        assert others.turns >= 200 // (2 * ITEMS_PER_LOOK)
