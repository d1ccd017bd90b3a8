"""A CancelTimer that finds no timer waits for every ScheduleTimer before it."""

from structlog.testing import capture_logs

from duetime.bus.command_consumer import CommandConsumer
from duetime.bus.memory import MemoryBus
from duetime.bus.unknown_cancels import (
    MAX_PATIENT,
    SETTLING_SECONDS,
    NextStep,
    UnknownCancels,
)
from duetime.domain.timer import TimerStatus
from duetime.ports.bus import REDELIVER_AFTER_SECONDS, ReceivedCommand
from duetime.service.bus_scheduling import Schedule, Scheduled
from duetime.testing import on_virtual_time
from tests.unit.bus.consumer_bench import (
    DUE_AT,
    Bench,
    cancel_command,
    command,
)


@on_virtual_time
async def test_cancels_are_counted_and_one_without_a_timer_is_ignored_in_the_end() -> None:
    bench = Bench()
    await bench.send(command("call"), cancel_command("call"), cancel_command("unknown"))
    with capture_logs() as logs:
        await bench.run(30)
        assert bench.unacknowledged == 1
        await bench.clock.sleep(10)
    assert bench.unacknowledged == 0
    counts = bench.consumer.counts
    assert (counts.scheduled, counts.canceled, counts.unknown) == (1, 1, 1)
    assert (counts.ignored, counts.received) == (1, 3)
    assert [entry["event"] for entry in logs] == ["bus.commands_ignored"]
    assert (await bench.store.counts(None))[TimerStatus.CANCELED] == 1
    await bench.consumer.stop()


@on_virtual_time
async def test_a_cancel_that_overtook_its_schedule_counts() -> None:
    """Another node may be about to create the timer."""
    bench = Bench()
    await bench.send(cancel_command("call"))
    await bench.run(0.5)
    schedule = Schedule(namespace="acme", id="call", due_at=DUE_AT, correlation_id=None, order=0)
    assert await bench.scheduling.schedule_all([schedule]) == [Scheduled.CREATED]
    await bench.clock.sleep(20)
    assert (await bench.store.counts(None))[TimerStatus.CANCELED] == 1
    assert bench.unacknowledged == 0
    await bench.consumer.stop()


@on_virtual_time
async def test_a_cancel_counts_though_the_node_with_its_schedule_died() -> None:
    bench = Bench()
    dead = MemoryBus(bench.broker)
    await dead.open()
    await bench.send(command("call"))
    assert len(await dead.receive(10, 1)) == 1
    await bench.clock.sleep(2)
    await bench.send(cancel_command("call"))
    await bench.run(60)
    assert (await bench.store.counts(None))[TimerStatus.CANCELED] == 1
    assert (bench.unacknowledged, bench.consumer.counts.unknown) == (0, 0)
    await bench.consumer.stop()


@on_virtual_time
async def test_a_cancel_outlasts_a_store_that_is_away() -> None:
    bench = Bench()
    dead = MemoryBus(bench.broker)
    await dead.open()
    await bench.send(command("call"))
    assert len(await dead.receive(10, 1)) == 1
    await bench.send(cancel_command("call"))
    await bench.run(29)
    bench.store.failures_left = 10_000
    await bench.clock.sleep(30)
    (schedule,) = await dead.receive(1, 10)
    bench.store.failures_left = 0
    await bench.clock.sleep(5)
    await dead.give_back([schedule])
    await bench.clock.sleep(60)
    assert (await bench.store.counts(None))[TimerStatus.CANCELED] == 1
    assert bench.unacknowledged == 0
    await bench.consumer.stop()


@on_virtual_time
async def test_many_cancels_without_timers_do_not_hold_up_other_commands() -> None:
    bench = Bench()
    await bench.send(*(cancel_command(f"unknown-{n}") for n in range(6_000)))
    await bench.run(5)
    await bench.send(command("call"))
    await bench.clock.sleep(2)
    assert await bench.pending() == 1
    await bench.clock.sleep(50)
    assert (bench.unacknowledged, bench.consumer.counts.unknown) == (0, 6_000)
    await bench.consumer.stop()


@on_virtual_time
async def test_a_cancel_without_a_timer_is_ignored_in_the_end_by_several_nodes() -> None:
    bench = Bench()
    consumers = [
        CommandConsumer(MemoryBus(bench.broker), bench.scheduling, bench.clock) for _ in range(4)
    ]
    for consumer in consumers:
        consumer.start()
    await bench.send(*(cancel_command(f"unknown-{n}") for n in range(20)))
    # Each node may hold a cancellation once, and gives it back a few times.
    await bench.clock.sleep(len(consumers) * (REDELIVER_AFTER_SECONDS + 2 * SETTLING_SECONDS))
    assert bench.unacknowledged == 0
    assert sum(consumer.counts.unknown for consumer in consumers) == 20
    for consumer in consumers:
        await consumer.stop()


@on_virtual_time
async def test_a_cancel_is_remembered_while_other_nodes_hold_it() -> None:
    bench = Bench()
    unknown, received = UnknownCancels(bench.clock), ReceivedCommand(data=b"", order=1)
    assert unknown.next_step(received) is NextStep.GIVE_BACK
    await bench.clock.sleep(10 * REDELIVER_AFTER_SECONDS)
    assert unknown.next_step(received) is NextStep.ACKNOWLEDGE


@on_virtual_time
async def test_cancels_of_long_ago_leave_room_to_wait() -> None:
    bench = Bench()
    unknown = UnknownCancels(bench.clock)
    for order in range(2 * MAX_PATIENT):
        unknown.next_step(ReceivedCommand(data=b"", order=order))
    await bench.clock.sleep(REDELIVER_AFTER_SECONDS)
    late = ReceivedCommand(data=b"", order=2 * MAX_PATIENT)
    assert [unknown.next_step(late) for _ in range(2)] == [NextStep.GIVE_BACK, NextStep.HOLD]


@on_virtual_time
async def test_a_cancel_waits_with_its_schedule_for_the_deletion_of_their_tenant() -> None:
    bench = Bench()
    await bench.namespaces.provide(["gone"])
    await bench.namespaces.mark_deleting("gone", deleting=True)
    await bench.send(command("call", "gone"), cancel_command("call", "gone"))
    await bench.run(120)
    assert bench.unacknowledged == 2
    assert await bench.store.remove_namespace("gone")
    await bench.namespaces.refresh()
    await bench.clock.sleep(60)
    assert (await bench.store.counts(None))[TimerStatus.CANCELED] == 1
    assert bench.unacknowledged == 0
    await bench.consumer.stop()
