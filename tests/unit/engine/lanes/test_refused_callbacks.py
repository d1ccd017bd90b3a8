"""Callbacks that this service may not send fail for good, and say nothing about their endpoint."""

from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.ports.endpoints import EndpointState
from duetime.testing import Fail, on_virtual_time
from tests.unit.engine.engine_bench import EngineBench

INSIDE = "https://inside.example"
REFUSED = Fail(error="refused to call inside.example:443", is_final=True)


@on_virtual_time
async def test_a_refused_callback_is_made_once_whatever_its_policy() -> None:
    bench = EngineBench()
    bench.destination.script(INSIDE, REFUSED)
    await bench.start()
    await bench.create("t", 1, url=INSIDE, retry_policy=RetryPolicy(max_retries=9))
    await bench.clock.sleep(2)
    timer = await bench.timer("t")
    assert timer.status is TimerStatus.FAILED
    assert timer.last_error == "refused to call inside.example:443"
    await bench.clock.sleep(3_600)
    assert len(bench.destination.attempts_of(INSIDE)) == 1


@on_virtual_time
async def test_refused_callbacks_do_not_open_an_endpoint() -> None:
    bench = EngineBench()
    bench.destination.script(INSIDE, REFUSED)
    await bench.start()
    instants = [bench.at(number * 0.25) for number in range(100)]
    await bench.create_many("t", instants, url=INSIDE)
    await bench.clock.sleep(30)
    assert await bench.count(TimerStatus.FAILED) == 100
    assert not bench.engine.endpoints()


@on_virtual_time
async def test_refused_callbacks_do_not_close_an_endpoint_that_is_down() -> None:
    bench = EngineBench()
    bench.destination.script(INSIDE, Fail())
    await bench.start()
    instants = [bench.at(number * 0.25) for number in range(25)]
    await bench.create_many("down", instants, url=INSIDE)
    await bench.clock.sleep(6.1)
    (before,) = bench.engine.endpoints()
    assert before.state is EndpointState.OPEN
    bench.destination.script(INSIDE, REFUSED)
    await bench.create("t", 1, url=INSIDE)
    await bench.clock.sleep(120)
    assert await bench.status("t") is TimerStatus.FAILED
    (after,) = bench.engine.endpoints()
    assert after.consecutive_failures == before.consecutive_failures
    assert after.last_error == before.last_error
