"""The history of the last quarter of an hour."""

from collections.abc import Mapping, Sequence

from duetime.domain.lateness.recent_slots import SLOT, SlotFigures
from duetime.service.reporting.recent_figures import SHOWN_SLOTS, RecentFigures, SlotSum
from duetime.testing import LoopClock, on_virtual_time


class Members:
    """Members whose attempts of each slot are given; they tell the last three."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.attempts: dict[str, int] = {}

    def tell(self) -> Mapping[str, Sequence[SlotFigures]]:
        current = self._clock.now() // SLOT
        return {
            name: [
                SlotFigures(
                    number=number,
                    attempts=attempts,
                    completed=attempts // 2,
                    p50_ms=float(attempts),
                    p99_ms=float(10 * attempts),
                )
                for number in range(current - 3, current)
            ]
            for name, attempts in self.attempts.items()
        }


def last_whole(figures: RecentFigures) -> SlotSum:
    return figures.slots()[-1]


@on_virtual_time
async def test_rates_are_summed_and_the_highest_percentile_counts() -> None:
    clock = LoopClock()
    members = Members(clock)
    members.attempts = {"a": 10, "b": 30}
    figures = RecentFigures(clock, members.tell)
    figures.start()
    await clock.sleep(12)
    last = last_whole(figures)
    assert (last.attempts_per_second, last.completed_per_second) == (8.0, 4.0)
    assert last.p50_ms == (10 * 10 + 30 * 30) / 40
    assert last.p99_ms == 300
    assert last.members == 2
    await figures.abandon()


@on_virtual_time
async def test_a_member_that_is_gone_stays_in_the_slots_that_it_told() -> None:
    clock = LoopClock()
    members = Members(clock)
    members.attempts = {"a": 10, "b": 30}
    figures = RecentFigures(clock, members.tell)
    figures.start()
    await clock.sleep(60)
    del members.attempts["b"]
    await clock.sleep(60)
    told = [slot.members for slot in figures.slots()]
    assert told[-1] == 1
    assert told[-15] == 2
    await figures.abandon()


@on_virtual_time
async def test_the_history_has_fifteen_minutes_and_says_what_it_does_not_know() -> None:
    clock = LoopClock()
    members = Members(clock)
    members.attempts = {"a": 10}
    figures = RecentFigures(clock, members.tell)
    figures.start()
    await clock.sleep(300)
    slots = figures.slots()
    assert len(slots) == SHOWN_SLOTS
    assert slots[0].members == 0
    assert slots[0].p99_ms is None
    await clock.sleep(3_600)
    assert all(slot.members == 1 for slot in figures.slots())
    await figures.abandon()


@on_virtual_time
async def test_a_member_with_a_wrong_clock_fills_no_memory() -> None:
    clock = LoopClock()
    wrong = clock.now() // SLOT + 10_000

    def tell() -> Mapping[str, Sequence[SlotFigures]]:
        return {"wrong": [SlotFigures(number=wrong, attempts=5)]}

    figures = RecentFigures(clock, tell)
    figures.look()
    assert all(slot.members == 0 for slot in figures.slots())
