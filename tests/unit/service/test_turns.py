"""Heavy work in turns: others run between its slices, and slices of several requests alternate."""

import asyncio

import pytest

from duetime.event_loop import next_turn
from duetime.service.turns import ITEMS_PER_LOOK, SLICE_SECONDS, Turns
from duetime.testing import VirtualClock
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
    slices = [order[start] for start in range(0, len(order), ITEMS_PER_LOOK)]
    assert slices == ["a", "b"] * 4


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
