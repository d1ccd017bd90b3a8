"""A namespace at its limit does not delay others."""

from collections import Counter

import pytest

from duetime.domain.keys import TimerKey
from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.destination import MaySend
from duetime.testing import Hang, RecordingDestination, Succeed, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, HANGING, SLOW, EngineBench

TWO = "https://two.example"


class NamespaceWatch(RecordingDestination):
    """Notes how many attempts of each namespace run at once."""

    def __init__(self, bench: EngineBench) -> None:
        super().__init__(bench.clock)
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        self.now[claim.namespace] += 1
        self.most[claim.namespace] = max(self.most[claim.namespace], self.now[claim.namespace])
        try:
            return await super().deliver(claim, may_send)
        finally:
            self.now[claim.namespace] -= 1


def watched(bench: EngineBench) -> NamespaceWatch:
    destination = NamespaceWatch(bench)
    bench.destination = destination
    bench.engine = bench.new_engine()
    return destination


@on_virtual_time
async def test_a_namespace_has_no_more_attempts_under_way_than_it_may() -> None:
    bench = EngineBench()
    destination = watched(bench)
    bench.namespaces.limit("small", 10)
    for url in (GOOD, TWO, SLOW):
        destination.script(url, Succeed(0.1))
    await bench.start()
    for url in (GOOD, TWO, SLOW):
        await bench.create_many(f"t {url}", [bench.at(1)] * 200, url=url, namespace="small")
    await bench.clock.sleep(1 + 6 + 2)
    assert destination.most["small"] == 10
    assert await bench.count(TimerStatus.COMPLETED) == 600, "100 a second, without gaps"


@on_virtual_time
async def test_a_namespace_at_its_limit_delays_no_other_that_calls_the_same_endpoint() -> None:
    bench = EngineBench()
    watched(bench)
    bench.namespaces.limit("small", 2)
    bench.destination.script(GOOD, Succeed(0.5))
    await bench.start()
    await bench.create_many("s", [bench.at(1)] * 5_000, namespace="small")
    await bench.create_many("g", [bench.at(1 + number / 50) for number in range(500)])
    await bench.clock.sleep(15)
    latenesses = [
        attempt.lateness_ms
        for attempt in bench.destination.attempts
        if attempt.claim.namespace == "default"
    ]
    assert len(latenesses) == 500
    # Until it is known to be slow, its due timers take all the room: once.
    assert max(latenesses) <= 300
    assert sum(lateness > 5 for lateness in latenesses) <= 20


@on_virtual_time
async def test_claims_that_wait_for_their_namespace_are_handed_back_and_can_be_canceled() -> None:
    bench = EngineBench()
    bench.namespaces.limit("small", 2)
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("s", [bench.at(1)] * 50, url=HANGING, namespace="small")
    await bench.clock.sleep(1 + 6)
    assert await bench.count(TimerStatus.EXECUTING) <= 2 + 4
    waiting = [
        timer.key
        for number in range(50)
        if (timer := await bench.store.get(TimerKey("small", f"s-{number}"))) is not None
        and timer.status is TimerStatus.PENDING
    ]
    assert len(waiting) >= 44
    canceled = await bench.store.cancel_if_pending(waiting[0], bench.clock.now())
    assert canceled is not None
    assert canceled.applied
    bench.destination.script(HANGING, Succeed(0.01))
    await bench.clock.sleep(60)
    assert await bench.count(TimerStatus.COMPLETED) == 47


@on_virtual_time
async def test_the_endpoints_of_a_limited_namespace_have_their_turns() -> None:
    bench = EngineBench()
    bench.namespaces.limit("small", 4)
    bench.destination.script(GOOD, Succeed(0.01))
    bench.destination.script(TWO, Succeed(0.01))
    await bench.start()
    await bench.create_many("g", [bench.at(1)] * 2_000, url=GOOD, namespace="small")
    await bench.create_many("t", [bench.at(1)] * 2_000, url=TWO, namespace="small")
    await bench.clock.sleep(1 + 4)
    await bench.engine.stop(0)
    counts = Counter(attempt.endpoint for attempt in bench.destination.attempts)
    assert counts.total() >= 1_500
    assert 0.8 <= counts[GOOD] / counts[TWO] <= 1.25


@on_virtual_time
async def test_a_limited_namespace_gets_its_turn_at_an_endpoint_that_others_keep_busy() -> None:
    bench = EngineBench(concurrency_per_endpoint=4)
    bench.namespaces.limit("small", 1)
    bench.destination.script(GOOD, Succeed(0.01))
    bench.destination.script(TWO, Succeed(0.01))
    await bench.start()
    await bench.create_many("busy", [bench.at(1)] * 5_000, url=GOOD)
    await bench.create_many("two", [bench.at(1)] * 2_000, url=TWO, namespace="small")
    await bench.create_many("one", [bench.at(1)] * 50, url=GOOD, namespace="small")
    await bench.clock.sleep(1 + 8)
    await bench.engine.stop(0)
    sent = Counter(
        attempt.endpoint
        for attempt in bench.destination.attempts
        if attempt.claim.namespace == "small"
    )
    assert sent[GOOD] == 50
    # Half of the turns that the namespace has in eight seconds.
    assert sent[TWO] > 400
    assert len(bench.destination.attempts_of(GOOD)) < 5_000, "it was busy all the time"


@on_virtual_time
async def test_a_limit_may_be_set_raised_and_lifted_at_any_time() -> None:
    bench = EngineBench()
    destination = watched(bench)
    destination.script(SLOW, Succeed(10))
    bench.namespaces.limit("small", 2)
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 16, url=SLOW, namespace="small")
    await bench.clock.sleep(2)
    assert destination.now["small"] == 2
    bench.namespaces.limit("small", 8)
    await bench.clock.sleep(2)
    assert destination.now["small"] == 8
    bench.namespaces.limit("small", None)
    await bench.clock.sleep(6)
    assert destination.now["small"] == 16
    bench.namespaces.limit("small", 1)
    await bench.create_many("u", [bench.at(0)] * 3, url=SLOW, namespace="small")
    await bench.clock.sleep(900)
    assert await bench.count(TimerStatus.COMPLETED) == 19
    assert bench.engine.endpoints() == [], "nothing is left of it"


@pytest.mark.parametrize(
    ("limit", "count", "answer_seconds"),
    [(10, 100, 1.0), (2, 8, 1.0), (10, 300, 0.1), (10, 1_000, 0.1), (10, 60, 10.0)],
)
@on_virtual_time
async def test_a_limited_namespace_uses_its_places_as_long_as_something_is_due(
    limit: int, count: int, answer_seconds: float
) -> None:
    bench = EngineBench()
    bench.namespaces.limit("small", limit)
    bench.destination.script(SLOW, Succeed(answer_seconds))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * count, url=SLOW, namespace="small")
    await bench.clock.sleep(1 + 1.1 * count * answer_seconds / limit)
    assert await bench.count(TimerStatus.COMPLETED) == count


@pytest.mark.parametrize("limit", [None, 100])
@on_virtual_time
async def test_an_endpoint_that_hung_is_used_without_gaps_once_it_answers(
    limit: int | None,
) -> None:
    bench = EngineBench(concurrency_per_endpoint=2)
    bench.namespaces.limit("default", limit)
    bench.destination.script(SLOW, Succeed(10))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 200, url=SLOW)
    await bench.clock.sleep(5)
    bench.destination.script(SLOW, Succeed(0.1))
    await bench.clock.sleep(6 + 5 + 10)
    assert await bench.count(TimerStatus.COMPLETED) == 200


@on_virtual_time
async def test_slots_that_others_had_taken_for_long_are_used_without_gaps() -> None:
    bench = EngineBench(concurrency=8)
    bench.namespaces.limit("small", 100)
    bench.destination.script(GOOD, Succeed(0.1))
    await bench.start()
    # As many as new endpoints may have together.
    for number in range(4):
        url = f"https://slow-{number}.example"
        bench.destination.script(url, Succeed(10), Succeed(0.01))
        await bench.create_many(f"s{number}", [bench.at(1)] * 8, url=url)
    await bench.create_many("t", [bench.at(1.5)] * 200, url=GOOD, namespace="small")
    await bench.clock.sleep(1 + 10 + 5 + 8)
    assert len(bench.destination.attempts_of(GOOD)) == 200
