"""An endpoint that keeps failing or hanging is asked little, and costs others nothing."""

import pytest
from structlog.typing import EventDict

from duetime.domain.outcome import Outcome
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.destination import MaySend
from duetime.ports.endpoints import EndpointState
from duetime.testing import (
    Fail,
    Hang,
    RecordingDestination,
    Succeed,
    on_virtual_time,
)
from tests.unit.engine.engine_bench import GOOD, HANGING, SLOW, EngineBench

DOWN = "https://down.example"


async def open_by_failures(bench: EngineBench) -> None:
    """Twenty-five attempts to DOWN fail within six seconds."""
    instants = [bench.at(number * 0.25) for number in range(25)]
    await bench.create_many("opening", instants, url=DOWN)
    await bench.clock.sleep(6.1)


def events(logs: list[EventDict]) -> list[str]:
    return [entry["event"] for entry in logs if entry["event"].startswith("endpoint.")]


def open_endpoints(bench: EngineBench) -> list[str]:
    return [
        status.endpoint
        for status in bench.engine.endpoints()
        if status.state is not EndpointState.CLOSED
    ]


def most_at_once_since(bench: EngineBench, endpoint: str, sent: int) -> int:
    return max(attempt.at_once for attempt in bench.destination.attempts_of(endpoint)[sent:])


@on_virtual_time
async def test_a_burst_of_quick_failures_is_delivered_at_once() -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.001))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 5_000, url=DOWN)
    await bench.clock.sleep(1.5)
    assert await bench.count(TimerStatus.FAILED) == 5_000
    assert open_endpoints(bench) == []


@on_virtual_time
async def test_an_endpoint_that_keeps_failing_is_asked_four_at_a_time(
    logs: list[EventDict],
) -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.1))
    await bench.start()
    await open_by_failures(bench)
    assert open_endpoints(bench) == [DOWN]
    assert events(logs) == ["endpoint.opened"]
    await bench.create_many("t", [bench.at(1)] * 1_000, url=DOWN)
    await bench.clock.sleep(60)
    assert most_at_once_since(bench, DOWN, 25) == 4
    assert await bench.count(TimerStatus.FAILED) == 1_025, "40 a second, without gaps"


@on_virtual_time
async def test_the_timers_behind_an_open_breaker_are_counted() -> None:
    """Wherever they wait: in the lane, or in the store until their next turn."""
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=1.0))
    await bench.start()
    await open_by_failures(bench)
    assert open_endpoints(bench) == [DOWN]
    await bench.create_many("t", [bench.at(1)] * 900, url=DOWN)
    await bench.clock.sleep(21)
    finished = await bench.count(TimerStatus.FAILED)
    (held,) = bench.engine.held()
    assert (held.endpoint, held.namespace) == (DOWN, "default")
    assert abs(held.timers - (25 + 900 - finished)) <= 150
    assert held.since is not None
    assert [each.endpoint for each in bench.engine.troubled_endpoints(9)] == [DOWN]
    assert bench.engine.troubled_endpoints(0) == []
    bench.destination.script(DOWN, Succeed())
    await bench.clock.sleep(120)
    assert bench.engine.held() == []


@pytest.mark.parametrize(("count", "answer_seconds"), [(40, 1.0), (60, 3.0)])
@on_virtual_time
async def test_an_open_endpoint_that_takes_long_to_fail_is_asked_without_gaps(
    count: int, answer_seconds: float
) -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.1))
    await bench.start()
    await open_by_failures(bench)
    bench.destination.script(DOWN, Fail(after_seconds=answer_seconds))
    await bench.create_many("t", [bench.at(0)] * count, url=DOWN)
    await bench.clock.sleep(1.1 * count * answer_seconds / 4)
    assert open_endpoints(bench) == [DOWN]
    assert await bench.count(TimerStatus.FAILED) == 25 + count


@on_virtual_time
async def test_timers_that_an_open_endpoint_cannot_take_soon_are_pending_meanwhile() -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.1))
    await bench.start()
    await open_by_failures(bench)
    await bench.create_many("t", [bench.at(0)] * 3_000, url=DOWN)
    await bench.clock.sleep(10)
    assert await bench.count(TimerStatus.EXECUTING) <= 4 + 5 * 40 + 8


@on_virtual_time
async def test_an_open_endpoint_that_fails_quickly_still_gets_its_timers_quickly() -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.0003))
    await bench.start()
    await open_by_failures(bench)
    await bench.create_many("t", [bench.at(1)] * 5_000, url=DOWN)
    await bench.clock.sleep(1.5)
    assert open_endpoints(bench) == [DOWN]
    assert await bench.count(TimerStatus.FAILED) == 5_025


@on_virtual_time
async def test_one_success_closes_it_and_it_is_called_as_usual(logs: list[EventDict]) -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.1))
    await bench.start()
    await open_by_failures(bench)
    bench.destination.script(DOWN, Succeed(0.1))
    await bench.create_many("t", [bench.at(1)] * 1_000, url=DOWN)
    await bench.clock.sleep(4)
    assert await bench.count(TimerStatus.COMPLETED) == 1_000
    assert events(logs) == ["endpoint.opened", "endpoint.closed"]
    assert most_at_once_since(bench, DOWN, 29) >= 64


@on_virtual_time
async def test_an_open_endpoint_stays_open_while_nothing_is_sent_there() -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.1))
    await bench.start()
    await open_by_failures(bench)
    await bench.clock.sleep(300)
    assert open_endpoints(bench) == [DOWN]
    await bench.create_many("t", [bench.at(1)] * 50, url=DOWN)
    await bench.clock.sleep(10)
    assert most_at_once_since(bench, DOWN, 25) == 4


@on_virtual_time
async def test_a_hanging_endpoint_takes_its_slots_once(logs: list[EventDict]) -> None:
    bench = EngineBench()
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 3_000, url=HANGING)
    await bench.clock.sleep(1 + 29)
    assert bench.destination.running(HANGING) == 1_024
    (status,) = bench.engine.endpoints()
    assert status.state is EndpointState.OPEN
    assert events(logs) == ["endpoint.opened"]
    await bench.clock.sleep(60)
    assert bench.destination.running(HANGING) == 4
    assert most_at_once_since(bench, HANGING, 1_024) == 4
    assert bench.engine.endpoints()[0].state is EndpointState.HALF_OPEN


@on_virtual_time
async def test_a_hanging_endpoint_that_comes_back_gets_all_its_timers(
    logs: list[EventDict],
) -> None:
    bench = EngineBench()
    bench.destination.script(HANGING, Hang())
    await bench.start()
    policy = RetryPolicy(initial_interval_ms=1_000)
    await bench.create_many("t", [bench.at(1)] * 2_000, url=HANGING, retry_policy=policy)
    await bench.clock.sleep(100)
    bench.destination.script(HANGING, Succeed(0.01))
    await bench.clock.sleep(60)
    assert await bench.count(TimerStatus.COMPLETED) == 2_000
    assert events(logs) == ["endpoint.opened", "endpoint.closed"]


@on_virtual_time
async def test_an_endpoint_that_takes_long_for_every_answer_is_not_held_back_for_good() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, Succeed(12))
    await bench.start()
    await bench.create_many("t", [bench.at(1)] * 3_000, url=SLOW)
    await bench.clock.sleep(120)
    assert await bench.count(TimerStatus.COMPLETED) == 3_000
    assert open_endpoints(bench) == []


@on_virtual_time
async def test_an_operator_sees_the_endpoints_the_open_ones_first() -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail())
    bench.destination.script(SLOW, Succeed(60))
    bench.destination.script(HANGING, Fail(error="HTTP 500"), Succeed())
    await bench.start()
    assert bench.engine.endpoints() == []
    await open_by_failures(bench)
    opened_at = bench.at(-0.1 - 0.75)
    await bench.create_many("s", [bench.at(0)] * 3, url=SLOW)
    await bench.create_many("h", [bench.at(0)] * 2, url=HANGING)
    await bench.create_many("g", [bench.at(0)] * 2, url=GOOD)
    await bench.clock.sleep(1)
    down, hanging, slow = bench.engine.endpoints()
    assert (down.endpoint, down.state, down.last_error) == (DOWN, EndpointState.OPEN, "HTTP 500")
    assert down.consecutive_failures == 25
    assert down.opened_at is not None
    assert abs(down.opened_at - opened_at) <= 500_000
    assert (hanging.endpoint, hanging.state) == (HANGING, EndpointState.CLOSED)
    assert (hanging.consecutive_failures, hanging.last_error) == (0, "HTTP 500")
    assert (slow.endpoint, slow.in_flight, slow.waiting, slow.last_error) == (SLOW, 3, 0, None)
    await bench.clock.sleep(900)
    assert bench.engine.endpoints() == []


class Buggy(RecordingDestination):
    """Raises for timers whose id starts with `bug`, before it has asked the endpoint."""

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        if claim.id.startswith("bug"):
            raise ValueError("a bug")
        return await super().deliver(claim, may_send)


@on_virtual_time
async def test_an_attempt_that_failed_here_is_no_sign_of_life() -> None:
    bench = EngineBench()
    bench.destination = Buggy(bench.clock)
    bench.engine = bench.new_engine()
    bench.destination.script(DOWN, Fail(after_seconds=0.1))
    await bench.start()
    await open_by_failures(bench)
    await bench.create_many("bug", [bench.at(1)] * 3, url=DOWN)
    await bench.clock.sleep(2)
    assert await bench.count(TimerStatus.FAILED) == 25 + 3
    assert open_endpoints(bench) == [DOWN]


@on_virtual_time
async def test_time_in_which_the_process_itself_was_stopped_opens_no_breaker() -> None:
    bench = EngineBench()
    bench.destination.script(SLOW, Succeed(10))
    await bench.start()
    await bench.create_many("t", [bench.at(0)] * 30, url=SLOW)
    await bench.clock.sleep(2)
    bench.suspend(7.5)
    await bench.create("after", 0, url=SLOW)
    await bench.clock.sleep(0.1)
    assert open_endpoints(bench) == []
    assert await bench.status("after") is TimerStatus.EXECUTING, "sent beside the others"


@on_virtual_time
async def test_failures_on_both_sides_of_a_pause_open_no_breaker_before_their_time() -> None:
    bench = EngineBench()
    bench.destination.script(DOWN, Fail(after_seconds=0.01))
    bench.destination.script(SLOW, Succeed(20))
    await bench.start()
    await bench.create("under way", 0, url=SLOW)
    await bench.create_many("before", [bench.at(0)] * 15, url=DOWN)
    await bench.clock.sleep(1)
    bench.suspend(8)
    await bench.create_many("after", [bench.at(number / 5) for number in range(25)], url=DOWN)
    await bench.clock.sleep(3.5)
    assert open_endpoints(bench) == []
    await bench.clock.sleep(1.5)
    assert open_endpoints(bench) == [DOWN]


@on_virtual_time
async def test_silence_before_and_after_a_pause_opens_the_breaker() -> None:
    bench = EngineBench()
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("t", [bench.at(0)] * 30, url=HANGING)
    await bench.clock.sleep(2)
    bench.suspend(8)
    await bench.create_many("after", [bench.at(2.9), bench.at(3.3)], url=HANGING)
    await bench.clock.sleep(3)
    assert open_endpoints(bench) == []
    await bench.clock.sleep(0.5)
    assert open_endpoints(bench) == [HANGING]
