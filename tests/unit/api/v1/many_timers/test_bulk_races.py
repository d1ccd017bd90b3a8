"""Bulk operations that meet changes of their timers, and aborts, while they are under way."""

from collections.abc import Awaitable, Callable

import pytest

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.outcome import Failed
from duetime.domain.transitions import Change
from duetime.ports.store import ConditionalResult
from duetime.service.bulk.passes import CONCURRENT_CHANGES
from duetime.stores.memory import MemoryStore
from tests.unit.api.v1.many_timers.operations import (
    OPERATIONS,
    claim,
    finish,
    operation,
    settle,
    start,
    step,
)
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body


class RacingStore(MemoryStore):
    """Lets something happen right before a timer is changed or canceled."""

    def __init__(self) -> None:
        super().__init__()
        self.event: Callable[[], Awaitable[None]] | None = None
        self.lost: str | None = None

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        await self._race()
        return await super().change_if_pending(key, change)

    async def cancel_if_pending(
        self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        await self._race()
        return await super().cancel_if_pending(key, now, only_updated_at=only_updated_at)

    async def _race(self) -> None:
        if self.event is not None:
            event, self.event = self.event, None
            await event()


@pytest.fixture
async def store() -> RacingStore:
    return RacingStore()


@pytest.fixture
async def bench(store: RacingStore) -> V1Bench:
    return await V1Bench(store).open()


CANCEL = {"action": "cancel"}
MOVE = {"action": "reschedule", "moveBy": "1h"}


@pytest.mark.parametrize("action", [CANCEL, MOVE], ids=["cancel", "reschedule"])
async def test_a_timer_that_no_longer_matches_is_left_alone(
    store: RacingStore, bench: V1Bench, action: dict[str, str]
) -> None:
    await bench.create_v1("one", callbackUrl="https://old.example/x")
    started = await start(bench, **action, filter={"endpoint": "old.example"})

    async def move_elsewhere() -> None:
        bench.clock.advance(1)
        body = {"callbackUrl": "https://new.example/x"}
        assert (await bench.request("PUT", f"{BASE}/default/one", body)).status == 200

    store.event = move_elsewhere
    ended = await finish(bench, started)
    assert (ended["changed"], ended["skipped"]) == (0, 1)
    timer = await bench.timer("one")
    assert (timer["status"], timer["executeAt"]) == ("pending", "2030-01-01T00:00:10Z")


@pytest.mark.parametrize("action", [CANCEL, MOVE], ids=["cancel", "reschedule"])
async def test_a_timer_that_left_the_range_is_left_alone(
    store: RacingStore, bench: V1Bench, action: dict[str, str]
) -> None:
    await bench.create_v1("one")
    started = await start(bench, **action, filter={"dueBefore": "2030-01-01T00:00:11Z"})

    async def postpone() -> None:
        bench.clock.advance(1)
        body = {"executeAt": "2030-01-01T00:00:30Z"}
        assert (await bench.request("PUT", f"{BASE}/default/one", body)).status == 200

    store.event = postpone
    ended = await finish(bench, started)
    assert (ended["changed"], ended["skipped"]) == (0, 1)
    timer = await bench.timer("one")
    assert (timer["status"], timer["executeAt"]) == ("pending", "2030-01-01T00:00:30Z")


@pytest.mark.parametrize("action", [CANCEL, MOVE], ids=["cancel", "reschedule"])
async def test_a_timer_that_was_handed_back_is_changed_all_the_same(
    store: RacingStore, bench: V1Bench, action: dict[str, str]
) -> None:
    await bench.create_v1("one")
    bench.clock.advance(11)
    started = await start(bench, **action, all=True)

    async def claim_and_hand_back() -> None:
        claims = await claim(bench)
        bench.clock.advance(1)
        await settle(bench, claims)

    store.event = claim_and_hand_back
    ended = await finish(bench, started)
    assert (ended["changed"], ended["skipped"]) == (1, 0)


async def test_a_move_is_based_on_the_firing_that_was_read(
    store: RacingStore, bench: V1Bench
) -> None:
    """A change of the instant within the same microsecond is still noticed."""
    await bench.create_v1("one")
    started = await start(bench, **MOVE, all=True)

    async def postpone() -> None:
        body = {"executeAt": "2030-01-01T00:30:00Z"}
        assert (await bench.request("PUT", f"{BASE}/default/one", body)).status == 200

    store.event = postpone
    assert (await finish(bench, started))["changed"] == 1
    assert (await bench.timer("one"))["executeAt"] == "2030-01-01T01:30:00Z"


@pytest.mark.parametrize("action", [CANCEL, MOVE], ids=["cancel", "reschedule"])
async def test_an_abort_stops_a_batch_and_the_last_changes_are_counted(
    store: RacingStore, bench: V1Bench, action: dict[str, str]
) -> None:
    names = [f"t{number}" for number in range(50)]
    await bench.post("/batch", {"timers": [create_body(name) for name in names]})
    started = await start(bench, **action, all=True)
    path = f"{OPERATIONS}/{started.json['id']}"

    async def abort() -> None:
        aborted = await bench.request("DELETE", path)
        assert (aborted.status, aborted.json["status"]) == (200, "aborted")

    store.event = abort
    await step(bench)
    ended = await operation(bench, started)
    assert (ended["status"], ended["changed"]) == ("aborted", CONCURRENT_CHANGES)
    assert ended["finishedAt"] is not None
    listed = (await bench.request("GET", f"{BASE}?limit=100")).json["timers"]
    untouched = create_body()["executeAt"]
    left = [
        each for each in listed if each["status"] == "pending" and each["executeAt"] == untouched
    ]
    assert len(left) == 50 - CONCURRENT_CHANGES
    again = await bench.request("DELETE", path)
    assert (again.status, again.json["changed"]) == (200, CONCURRENT_CHANGES)


RETRIES = {"maxRetries": 5, "initialInterval": "1h", "maxInterval": "1h"}


async def fail_once(bench: V1Bench) -> None:
    """Make an attempt of the due timers, which are to be retried an hour later."""
    now = bench.clock.now()
    outcome = Failed(sent_at=now, answered_at=now, error="HTTP 503")
    await settle(bench, await claim(bench), outcome)


async def test_a_move_is_based_on_the_retry_that_is_planned_now(
    store: RacingStore, bench: V1Bench
) -> None:
    await bench.create_v1("one", retryPolicy=RETRIES)
    bench.clock.advance(11)
    started = await start(bench, **MOVE, all=True)
    store.event = lambda: fail_once(bench)
    assert (await finish(bench, started))["changed"] == 1
    assert (await bench.timer("one"))["executeAt"] == "2030-01-01T02:00:11Z"


async def test_a_timer_that_waits_for_a_retry_is_moved_from_the_retry(bench: V1Bench) -> None:
    await bench.create_v1("one", retryPolicy=RETRIES)
    bench.clock.advance(11)
    await fail_once(bench)
    bench.clock.advance(600)
    assert (await bench.timer("one"))["nextAttemptAt"] == "2030-01-01T01:00:11Z"
    await finish(bench, await start(bench, action="reschedule", all=True, moveBy="5m"))
    assert (await bench.timer("one"))["nextAttemptAt"] == "2030-01-01T01:05:11Z"
