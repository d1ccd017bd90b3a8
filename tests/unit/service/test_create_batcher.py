import asyncio

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.service.create_batcher import MAX_BATCH, CreateBatcher
from duetime.testing import make_timer
from tests.unit.service.service_bench import GatedStore, RecordingWakeUps


def request(number: int) -> CreateRequest:
    return CreateRequest(make_timer(f"timer-{number}"), OnExisting.KEEP)


def submit(batcher: CreateBatcher, *numbers: int) -> list[asyncio.Future[CreateResult]]:
    return [asyncio.ensure_future(batcher.create(request(number))) for number in numbers]


async def test_requests_that_arrive_during_a_write_form_the_next_batch() -> None:
    store = GatedStore()
    batcher = CreateBatcher(store, RecordingWakeUps())
    first = submit(batcher, 1)
    await store.started.acquire()
    later = submit(batcher, 2, 3, 4)
    store.gate.release()
    await asyncio.gather(*first)
    await store.started.acquire()
    store.gate.release()
    results = await asyncio.gather(*later)
    assert store.batches == [1, 3]
    assert [result.timer.key.id for result in results] == ["timer-2", "timer-3", "timer-4"]
    assert {result.existence for result in results} == {Existence.CREATED}


async def test_a_lone_request_is_written_at_once_and_so_is_the_next_one() -> None:
    store = GatedStore()
    batcher = CreateBatcher(store, RecordingWakeUps())
    for number in (1, 2):
        store.gate.release()
        await batcher.create(request(number))
    assert store.batches == [1, 1]


async def test_a_batch_has_an_upper_limit() -> None:
    store = GatedStore()
    batcher = CreateBatcher(store, RecordingWakeUps())
    answers = submit(batcher, *range(MAX_BATCH + 5))
    for _ in range(2):
        store.gate.release()
    await asyncio.gather(*answers)
    assert store.batches == [MAX_BATCH, 5]


async def test_a_failed_batch_fails_its_own_requests_only() -> None:
    store = GatedStore()
    batcher = CreateBatcher(store, RecordingWakeUps())
    store.failures.append(StoreUnavailable("disk full"))
    failing = submit(batcher, 1, 2)
    await store.started.acquire()
    later = submit(batcher, 3)
    for _ in range(2):
        store.gate.release()
    outcomes = await asyncio.gather(*failing, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["disk full"] * 2
    assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
    assert (await later[0]).existence is Existence.CREATED


async def test_a_caller_that_leaves_does_not_disturb_the_others() -> None:
    store = GatedStore()
    batcher = CreateBatcher(store, RecordingWakeUps())

    async def create(number: int) -> CreateResult:
        return await batcher.create(request(number))

    tasks = [asyncio.create_task(create(number)) for number in range(3)]
    await store.started.acquire()
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    store.gate.release()
    assert (await tasks[0]).existence is Existence.CREATED
    assert (await tasks[2]).existence is Existence.CREATED
    assert await store.get(request(1).timer.key) is not None


async def test_a_caller_that_leaves_a_failing_batch_does_not_stop_the_next_one() -> None:
    store = GatedStore()
    batcher = CreateBatcher(store, RecordingWakeUps())
    store.failures.append(StoreUnavailable("disk full"))
    gone, told = submit(batcher, 1, 2)
    await store.started.acquire()
    later = submit(batcher, 3)
    gone.cancel()
    for _ in range(2):
        store.gate.release()
    with pytest.raises(StoreUnavailable):
        await told
    assert (await later[0]).existence is Existence.CREATED
