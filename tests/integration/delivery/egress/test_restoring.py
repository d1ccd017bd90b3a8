"""Restoring timers whose addresses are refused where they are restored."""

from msgspec.structs import replace

from duetime.domain.errors import CallbackRefused
from duetime.domain.timer import TimerStatus
from duetime.service.restoring import Restoring
from duetime.testing import make_timer
from tests.integration.delivery.egress.guarded import callback_to, guarded_destination
from tests.unit.service.service_bench import ServiceBench, timer_rules


async def test_only_timers_that_may_fire_on_their_own_are_refused() -> None:
    bench = await ServiceBench().open()
    timers = [
        replace(
            make_timer(f"{status}", callback=callback_to("http://10.0.0.1/")),
            status=status,
            executed_at=bench.clock.now() if status.is_finished else None,
        )
        for status in TimerStatus
    ]
    async with guarded_destination("public") as destination:
        restoring = Restoring(
            bench.store,
            bench.clock,
            bench.wakeups,
            destination,
            bench.namespaces,
            timer_rules(min_delay_ms=0, past_is_due=True),
            turns=bench.service.turns,
        )
        outcomes = await restoring.restore(timers)
    refused = [
        timer.status
        for timer, outcome in zip(timers, outcomes, strict=True)
        if isinstance(outcome, CallbackRefused)
    ]
    assert refused == [TimerStatus.PENDING, TimerStatus.EXECUTING]
    assert await bench.store.get(timers[TimerStatus.FAILED].key) is not None
