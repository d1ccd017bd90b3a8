"""Actions on chosen timers: each by the rules of one, and an answer for each."""

import pytest

from duetime.domain.bulk import BulkAction
from duetime.domain.errors import InvalidInput, StoreUnreachable
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.limits import MAX_CHOSEN_TIMERS
from duetime.domain.transitions import Change
from duetime.ports.store import ConditionalResult
from duetime.service.bulk.chosen import Answered, ChosenTimers
from duetime.service.redriving import Redriving
from duetime.stores.memory import MemoryStore
from tests.unit.api.asgi_client import IN_TEN_SECONDS
from tests.unit.api.v1.many_timers.operations import claim
from tests.unit.api.v1.v1_bench import V1Bench

HOUR_MS = 3_600_000


class RacingStore(MemoryStore):
    """Lets somebody else write to a timer right before it is changed, and goes away for one."""

    races = False
    is_away_for: str | None = None

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        if key.id == self.is_away_for:
            raise StoreUnreachable("away")
        if self.races:
            self.races = False
            theirs = Change(updated_at=Instant(change.updated_at - 1), delivery_id="theirs")
            await super().change_if_pending(key, theirs)
        return await super().change_if_pending(key, change)


@pytest.fixture
async def store() -> RacingStore:
    return RacingStore()


@pytest.fixture
async def bench(store: RacingStore) -> V1Bench:
    return await V1Bench(store).open()


@pytest.fixture
async def chosen(bench: V1Bench) -> ChosenTimers:
    redriving = Redriving(bench.store, bench.clock, bench.wakeups, bench.namespaces)
    return ChosenTimers(
        bench.store, bench.clock, bench.wakeups, bench.namespaces, bench.service, redriving
    )


def key(id: str, namespace: str = "default") -> TimerKey:
    return TimerKey(namespace, id)


def words(answers: list[Answered]) -> list[str]:
    """The outcome for each timer."""
    return ["done" if each.error is None else each.error.message for each in answers]


async def test_each_timer_is_canceled_or_says_why_not(bench: V1Bench, chosen: ChosenTimers) -> None:
    await bench.create_v1("pending")
    await bench.create_v1("elsewhere", namespace="notifications")
    await bench.create_v1("failed")
    await bench.fail("failed")
    keys = [
        key("pending"),
        key("failed"),
        key("missing"),
        key("elsewhere", "notifications"),
        key("x", "no such"),
        key("pending"),
    ]
    answers = await chosen.act(BulkAction.CANCEL, keys)
    assert [each.key for each in answers] == keys[:5]
    assert words(answers) == [
        "done",
        "cannot cancel timer with status 'failed'",
        "timer not found",
        "done",
        "namespace 'no such' does not exist",
    ]
    assert (await bench.timer("pending"))["status"] == "canceled"
    assert (await bench.timer("elsewhere", "notifications"))["status"] == "canceled"


async def test_failed_timers_are_redriven(bench: V1Bench, chosen: ChosenTimers) -> None:
    await bench.create_v1("one")
    await bench.create_v1("two")
    await bench.fail("one")
    first, second = await chosen.act(BulkAction.REDRIVE, [key("one"), key("two")])
    assert first.timer is not None
    assert second.error is not None
    assert "'pending'" in second.error.message
    assert (await bench.timer("one"))["status"] == "pending"


async def test_timers_are_run_now(bench: V1Bench, chosen: ChosenTimers) -> None:
    await bench.create_v1("one")
    for _ in range(2):
        (answer,) = await chosen.act(BulkAction.RUN_NOW, [key("one")])
        assert answer.timer is not None
        assert answer.timer.due_at == bench.clock.now()
    assert bench.wakeups.announced
    await claim(bench)
    (answer,) = await chosen.act(BulkAction.RUN_NOW, [key("one")])
    assert words([answer]) == ["cannot run timer with status 'executing'"]


async def test_timers_are_moved(store: RacingStore, bench: V1Bench, chosen: ChosenTimers) -> None:
    await bench.create_v1("one")
    store.races = True
    await chosen.act(BulkAction.RESCHEDULE, [key("one")], move_by_ms=HOUR_MS)
    assert (await bench.timer("one"))["executeAt"] == "2030-01-01T01:00:10Z"
    await chosen.act(BulkAction.RESCHEDULE, [key("one")], move_by_ms=-2 * HOUR_MS)
    assert (await bench.timer("one"))["executeAt"] == "2030-01-01T00:00:00Z"
    century_ms = 100 * 365 * 24 * HOUR_MS
    await chosen.act(BulkAction.RESCHEDULE, [key("one")], move_by_ms=century_ms)
    answers = await chosen.act(BulkAction.RESCHEDULE, [key("one")], move_by_ms=century_ms)
    assert words(answers) == ["move_by leads too far into the future: at most 100 years"]


async def test_the_others_are_changed_when_the_store_fails_for_one(
    store: RacingStore, bench: V1Bench, chosen: ChosenTimers
) -> None:
    names = [f"t{number}" for number in range(20)]
    for name in names:
        await bench.create_v1(name)
    store.is_away_for = "t3"
    answers = await chosen.act(BulkAction.RUN_NOW, list(map(key, names)))
    assert [each.key.id for each in answers if each.error is not None] == ["t3"]
    assert (await bench.timer("t3"))["executeAt"] == IN_TEN_SECONDS


@pytest.mark.parametrize(
    ("action", "count", "move_by_ms", "message"),
    [
        (BulkAction.CANCEL, 0, None, "timer must be given 1 to 200 times"),
        (BulkAction.CANCEL, MAX_CHOSEN_TIMERS + 1, None, "timer must be given 1 to 200 times"),
        (BulkAction.RESCHEDULE, 1, None, "move_by is needed"),
        (BulkAction.RESCHEDULE, 1, 0, "move_by must not be zero"),
    ],
)
async def test_a_wrong_request_changes_nothing(
    chosen: ChosenTimers, action: BulkAction, count: int, move_by_ms: int | None, message: str
) -> None:
    keys = [key(str(number)) for number in range(count)]
    with pytest.raises(InvalidInput, match=message):
        await chosen.act(action, keys, move_by_ms=move_by_ms)
