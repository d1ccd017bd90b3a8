from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.outcome import Completed, Failed
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.memory import MemoryStore
from duetime.testing import Fail, ManualEngine, RecordingDestination, VirtualClock, make_timer


async def test_timers_fire_on_request_and_retries_come_without_jitter() -> None:
    clock, store = VirtualClock(), MemoryStore()
    destination = RecordingDestination(clock)
    engine = ManualEngine(store, destination, clock)
    await store.add_namespace(Namespace("default"))
    now = clock.now()
    policy = RetryPolicy(max_retries=1, initial_interval_ms=1_000)
    late = make_timer("late", execute_at=type(now)(now + 60_000_000))
    timers = [make_timer("a"), make_timer("b", retry_policy=policy), late]
    await store.create([CreateRequest(timer, OnExisting.KEEP) for timer in timers])
    destination.script("b", Fail())

    attempts = await engine.tick()
    assert {claim.id: type(outcome) for claim, outcome in attempts} == {"a": Completed, "b": Failed}
    clock.advance(0.999)
    assert await engine.tick() == []
    clock.advance(0.001)
    assert [claim.attempt for claim, _ in await engine.tick()] == [2]
    assert await engine.run_due(late.execute_at)
    counts = await store.counts()
    assert (counts[TimerStatus.COMPLETED], counts[TimerStatus.FAILED]) == (2, 1)


async def test_timers_of_a_raising_destination_are_fired_by_the_next_run() -> None:
    class Raising(RecordingDestination):
        raises = True

        async def deliver(self, claim, may_send):  # type: ignore[no-untyped-def]
            if self.raises:
                raise ValueError("a bug in the test")
            return await super().deliver(claim, may_send)

    clock, store = VirtualClock(), MemoryStore()
    destination = Raising(clock)
    engine = ManualEngine(store, destination, clock)
    await store.add_namespace(Namespace("default"))
    await store.create([CreateRequest(make_timer("t"), OnExisting.KEEP)])
    try:
        await engine.tick()
    except ValueError:
        destination.raises = False
    assert len(await engine.tick()) == 1
    timer = await store.get(TimerKey("default", "t"))
    assert timer is not None
    assert (timer.status, timer.attempt) == (TimerStatus.COMPLETED, 2)
