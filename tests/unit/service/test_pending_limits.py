"""`max_pending`: creates beyond the limit of a namespace are refused, others are not."""

import asyncio

import pytest
from msgspec.structs import replace

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import InvalidInput, StoreUnavailable, TooManyTimers
from duetime.domain.instants import plus_ms
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.event_loop import next_turn
from duetime.ports.store import CreateResult, Existence, OnExisting
from duetime.service.create_requests import NewTimer
from duetime.service.pending_limits import (
    COUNT_SECONDS,
    COUNTED_EXACTLY,
    MOST_COUNTED,
    PAUSE_FACTOR,
)
from duetime.service.redriving import Redriving
from duetime.stores.memory import MemoryStore
from duetime.testing.virtual_clock import START_AT, VirtualClock
from tests.unit.service.service_bench import GatedStore, ServiceBench

CALLBACK = HttpCallback(url="https://example.com/due")


class CountingStore(MemoryStore):
    """A store that remembers how often it was asked for counts and for single timers.

    Large numbers are estimated as `estimate`, if it is given. Each count takes `count_seconds`, and
    fails with `failure`.
    """

    def __init__(self, clock: VirtualClock | None = None) -> None:
        super().__init__()
        self.counted = 0
        self.looked_up = 0
        self.exact_counts: list[int] = []
        self.estimate: int | None = None
        self.count_seconds = 0.0
        self.failure: StoreUnavailable | None = None
        self._clock = clock

    async def count_unfinished(self, namespace: str, *, exact_up_to: int) -> int:
        self.counted += 1
        if exact_up_to != COUNTED_EXACTLY:
            self.exact_counts.append(exact_up_to)
        await next_turn()
        if self._clock is not None:
            self._clock.advance(self.count_seconds)
        if self.failure is not None:
            raise self.failure
        stored = await super().count_unfinished(namespace, exact_up_to=exact_up_to)
        if self.estimate is not None and exact_up_to == COUNTED_EXACTLY:
            return self.estimate
        return stored

    async def get(self, key: TimerKey) -> Timer | None:
        self.looked_up += 1
        return await super().get(key)


def new_timer(id: str | None = None, namespace: str = "team", **changes: object) -> NewTimer:
    new = NewTimer(
        execute_at=plus_ms(START_AT, 60_000), callback=CALLBACK, namespace=namespace, id=id
    )
    return replace(new, **changes)


async def limit(bench: ServiceBench, max_pending: int | None, namespace: str = "team") -> None:
    await bench.namespaces.put(
        namespace, None, lambda options: replace(options, max_pending=max_pending)
    )


async def unfinished(bench: ServiceBench, namespace: str = "team") -> int:
    counts = await bench.store.counts(namespace)
    return counts[TimerStatus.PENDING] + counts[TimerStatus.EXECUTING]


def kinds(outcomes: list[CreateResult | Exception]) -> list[object]:
    return [each.existence if isinstance(each, CreateResult) else type(each) for each in outcomes]


async def create_together(bench: ServiceBench, count: int) -> list[CreateResult | BaseException]:
    creates = (bench.service.create(new_timer()) for _ in range(count))
    return await asyncio.gather(*creates, return_exceptions=True)


async def test_the_create_beyond_the_limit_is_refused(bench: ServiceBench) -> None:
    await limit(bench, 2)
    await bench.service.create(new_timer("one"))
    await bench.service.create(new_timer())
    for refused in (new_timer("three"), new_timer(), new_timer(idempotency_key="k")):
        with pytest.raises(TooManyTimers, match=r"'team' may have 2 timers .*max_pending") as error:
            await bench.service.create(refused)
        assert error.value.max_pending == 2
    assert await unfinished(bench) == 2


async def test_a_limit_of_zero_takes_no_timer(bench: ServiceBench) -> None:
    await limit(bench, 0)
    with pytest.raises(TooManyTimers):
        await bench.service.create(new_timer("one"))


async def test_other_namespaces_are_not_limited(bench: ServiceBench) -> None:
    await limit(bench, 0)
    await bench.service.create(new_timer("one", "default"))
    answers = await bench.service.create_many([new_timer("two", "default"), new_timer("three")])
    assert kinds([*answers]) == [Existence.CREATED, TooManyTimers]


async def test_many_creates_at_once_stay_within_the_limit(bench: ServiceBench) -> None:
    await limit(bench, 7)
    outcomes = await create_together(bench, 50)
    assert sum(isinstance(each, CreateResult) for each in outcomes) == 7
    assert await unfinished(bench) == 7


async def test_repeats_and_replacements_need_no_room(bench: ServiceBench) -> None:
    await limit(bench, 2)
    await bench.service.create(new_timer("one"))
    await bench.service.create(new_timer(idempotency_key="k"))
    again = await bench.service.create(new_timer("one"))
    assert again.existence is Existence.EXISTING
    by_key = await bench.service.create(new_timer(idempotency_key="k"))
    assert by_key.existence is Existence.EXISTING
    upsert = new_timer("one", on_existing=OnExisting.REPLACE)
    replaced = await bench.service.create(replace(upsert, execute_at=plus_ms(START_AT, 90_000)))
    assert replaced.existence is Existence.REPLACED


async def test_a_batch_is_created_as_far_as_there_is_room(bench: ServiceBench) -> None:
    await limit(bench, 3)
    await bench.service.create(new_timer("there"))
    unread = InvalidInput("id", "was not read")
    answers = await bench.service.create_many(
        [unread, *map(new_timer, ("a", "there", "a", "b", "c", "there"))]
    )
    new, old = Existence.CREATED, Existence.EXISTING
    assert kinds([*answers]) == [InvalidInput, new, old, old, new, TooManyTimers, old]
    assert await unfinished(bench) == 3


async def test_a_refused_timer_is_refused_as_often_as_a_batch_has_it(bench: ServiceBench) -> None:
    await limit(bench, 2)
    ids = [id for id in ("a", "b", "c", "d") for _ in range(3)]
    answers = await bench.service.create_many([*map(new_timer, ids)])
    admitted = [Existence.CREATED, Existence.EXISTING, Existence.EXISTING]
    assert kinds([*answers]) == [*admitted, *admitted, *[TooManyTimers] * 6]
    assert await unfinished(bench) == 2


async def test_a_refused_timer_is_not_restored_by_its_repeat(bench: ServiceBench) -> None:
    await limit(bench, 1)
    first = (await bench.service.create(new_timer("one"))).timer
    two = replace(first, key=TimerKey("team", "two"), timer_uuid=b"two".ljust(16))
    outcomes = await bench.restoring.restore([two, two])
    assert kinds([*outcomes]) == [TooManyTimers, TooManyTimers]
    assert await unfinished(bench) == 1


async def test_room_that_repeats_did_not_need_is_free_at_once(bench: ServiceBench) -> None:
    await limit(bench, 3)
    await bench.service.create_many([new_timer("a"), new_timer("b")])
    assert kinds([*await bench.service.create_many([new_timer("a")])]) == [Existence.EXISTING]
    assert (await bench.service.create(new_timer("c"))).existence is Existence.CREATED


async def test_timers_that_ended_make_room_within_a_second(bench: ServiceBench) -> None:
    await limit(bench, 1)
    await bench.service.create(new_timer("one"))
    await bench.service.cancel(TimerKey("team", "one"))
    bench.clock.advance(COUNT_SECONDS)
    assert (await bench.service.create(new_timer("two"))).existence is Existence.CREATED


async def test_executing_timers_count(bench: ServiceBench) -> None:
    await limit(bench, 1)
    await bench.service.create(new_timer("one"))
    bench.clock.advance(60)
    await bench.claim_all()
    assert (await bench.store.counts("team"))[TimerStatus.EXECUTING] == 1
    with pytest.raises(TooManyTimers):
        await bench.service.create(new_timer("two", execute_at=plus_ms(START_AT, 90_000)))


async def test_a_raised_or_removed_limit_holds_at_once(bench: ServiceBench) -> None:
    await limit(bench, 0)
    for max_pending in (1, None):
        with pytest.raises(TooManyTimers):
            await bench.service.create(new_timer())
        await limit(bench, max_pending)
        await bench.service.create(new_timer())


async def test_timers_of_other_nodes_are_counted_after_a_second(bench: ServiceBench) -> None:
    await limit(bench, 2)
    other = ServiceBench(bench.store, clock=bench.clock)
    await other.namespaces.refresh()
    await bench.service.create(new_timer("one"))
    await other.service.create(new_timer("two"))
    bench.clock.advance(COUNT_SECONDS)
    for node in (bench, other):
        with pytest.raises(TooManyTimers):
            await node.service.create(new_timer())


async def test_a_create_whose_caller_has_gone_keeps_its_room() -> None:
    store = GatedStore()
    bench = await ServiceBench(store).open()
    await limit(bench, 1)
    gone = asyncio.ensure_future(bench.service.create(new_timer()))
    await store.started.acquire()
    gone.cancel()
    bench.clock.advance(COUNT_SECONDS)
    with pytest.raises(TooManyTimers):
        await bench.service.create(new_timer())
    store.gate.release()


async def test_a_failed_create_gives_its_room_back_after_a_second() -> None:
    store = GatedStore()
    store.failures = [StoreUnavailable("away")]
    store.gate.release()
    bench = await ServiceBench(store).open()
    await limit(bench, 1)
    with pytest.raises(StoreUnavailable):
        await bench.service.create(new_timer())
    with pytest.raises(TooManyTimers):
        await bench.service.create(new_timer())
    bench.clock.advance(COUNT_SECONDS)
    store.gate.release()
    assert (await bench.service.create(new_timer())).existence is Existence.CREATED


async def test_refused_creates_cost_one_count_per_second() -> None:
    store = CountingStore()
    bench = await ServiceBench(store).open()
    await limit(bench, 0)
    await create_together(bench, 100)
    assert (store.counted, store.looked_up) == (1, 0)
    bench.clock.advance(COUNT_SECONDS)
    await create_together(bench, 100)
    assert (store.counted, store.looked_up) == (2, 0)


async def test_creates_that_wait_for_a_failing_count_fail_together() -> None:
    store = CountingStore()
    bench = await ServiceBench(store).open()
    await limit(bench, 100)
    store.failure = StoreUnavailable("the count timed out")
    outcomes = await create_together(bench, 50)
    assert {type(each) for each in outcomes} == {StoreUnavailable}
    assert store.counted == 1
    store.failure = None
    outcomes = await create_together(bench, 50)
    assert all(isinstance(each, CreateResult) for each in outcomes)


async def test_an_estimate_that_is_too_high_refuses_nobody() -> None:
    store = CountingStore()
    bench = await ServiceBench(store).open()
    await limit(bench, 20_000)
    store.estimate = 30_000
    outcomes = await create_together(bench, 100)
    assert all(isinstance(each, CreateResult) for each in outcomes)
    assert store.exact_counts == [20_000]
    bench.clock.advance(COUNT_SECONDS)
    answers = await bench.service.create_many([new_timer(), new_timer()])
    assert kinds([*answers]) == [Existence.CREATED] * 2
    assert store.exact_counts == [20_000] * 2


async def test_an_estimate_below_the_limit_costs_no_exact_count() -> None:
    store = CountingStore()
    bench = await ServiceBench(store).open()
    await limit(bench, 20_000)
    store.estimate = 15_000
    await create_together(bench, 100)
    assert (store.counted, store.exact_counts) == (1, [])


async def test_no_more_than_a_million_timers_are_counted_exactly() -> None:
    store = CountingStore()
    bench = await ServiceBench(store).open()
    await limit(bench, 5 * MOST_COUNTED)
    store.estimate = 6 * MOST_COUNTED
    await bench.service.create(new_timer())
    assert store.exact_counts == [MOST_COUNTED]


async def test_exact_counts_take_a_tenth_of_the_time_at_most() -> None:
    clock = VirtualClock()
    store = CountingStore(clock)
    bench = await ServiceBench(store, clock=clock).open()
    await limit(bench, 20_000)
    store.estimate, store.count_seconds = 30_000, 2.0
    end_seconds = clock.monotonic() + 200
    while clock.monotonic() < end_seconds:
        await bench.service.create(new_timer(execute_at=plus_ms(START_AT, 3_600_000)))
        clock.advance(0.5)
    assert 5 <= len(store.exact_counts) <= 200 / (2.0 * PAUSE_FACTOR) + 1


async def test_creates_without_a_limit_count_nothing() -> None:
    store = CountingStore()
    bench = await ServiceBench(store).open()
    await bench.service.create(new_timer("a", "default"))
    await bench.service.create_many([new_timer("b", "default")])
    assert (store.counted, store.looked_up) == (0, 0)


async def test_restored_timers_count_unless_they_are_finished(bench: ServiceBench) -> None:
    await limit(bench, 2)
    first = (await bench.service.create(new_timer("one"))).timer
    two, three = (
        replace(first, key=TimerKey("team", id), timer_uuid=id.encode().ljust(16))
        for id in ("two", "three")
    )
    done = replace(
        first,
        key=TimerKey("team", "done"),
        timer_uuid=b"done".ljust(16),
        status=TimerStatus.COMPLETED,
        executed_at=first.created_at,
    )
    outcomes = await bench.restoring.restore([first, done, two, three])
    new, old = Existence.CREATED, Existence.EXISTING
    assert kinds([*outcomes]) == [old, new, new, TooManyTimers]


async def test_redriven_timers_are_not_refused_and_count(bench: ServiceBench) -> None:
    await limit(bench, 1)
    failed = (await bench.service.create(new_timer("failed"))).timer
    await bench.store.remove_if_pending(failed.key)
    await bench.restoring.restore(
        [replace(failed, status=TimerStatus.FAILED, executed_at=failed.created_at)]
    )
    bench.clock.advance(COUNT_SECONDS)
    await bench.service.create(new_timer("one"))
    redriving = Redriving(bench.store, bench.clock, bench.wakeups, bench.namespaces)
    assert (await redriving.redrive(failed.key)).status is TimerStatus.PENDING
    assert await unfinished(bench) == 2
