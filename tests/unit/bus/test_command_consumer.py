"""Commands become durable timers, whatever the store and the broker do."""

from structlog.testing import capture_logs

from duetime.bus.command_consumer import CHECK_CHANNELS_SECONDS, CommandConsumer
from duetime.bus.memory import MemoryBus
from duetime.domain.errors import StorageFull
from duetime.domain.instants import format_instant
from duetime.domain.keys import TimerKey
from duetime.domain.transitions import hand_back
from duetime.ports.bus import Channel
from duetime.service.namespaces import Namespaces
from duetime.testing import on_virtual_time
from duetime.testing.store_contract.steps import own_shards
from tests.unit.bus.consumer_bench import DUE_AT, Bench, command

UNREADABLE = [
    b'{"id":1,"type":"\xff"}',
    b'{"id":1,"deep":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"type":' + b"[" * 20_000,
    b"\xff",
    b"null",
]


@on_virtual_time
async def test_commands_become_timers_and_are_acknowledged() -> None:
    bench = Bench()
    await bench.send(*(command(f"call-{n}", f"tenant-{n % 3}") for n in range(2_500)))
    await bench.run()
    assert bench.unacknowledged == 0
    assert bench.consumer.counts.scheduled == bench.consumer.counts.received == 2_500
    assert await bench.pending() == 2_500
    timer = await bench.store.get(TimerKey("tenant-1", "call-2200"))
    assert timer is not None
    assert timer.execute_at == DUE_AT
    await bench.consumer.stop()


@on_virtual_time
async def test_nothing_is_acknowledged_before_it_is_durable() -> None:
    bench = Bench()
    bench.store.failures_left = 3
    await bench.send(*(command(f"call-{n}") for n in range(10)))
    bench.consumer.start()
    await bench.clock.sleep(0.01)
    assert (bench.unacknowledged, await bench.pending()) == (10, 0)
    await bench.clock.sleep(10)
    assert (bench.unacknowledged, await bench.pending()) == (0, 10)
    await bench.consumer.stop()


@on_virtual_time
async def test_commands_wait_while_the_disk_is_full_and_none_is_rejected() -> None:
    bench = Bench()
    bench.store.failure = StorageFull("the disk is nearly full")
    bench.store.failures_left = 100
    await bench.send(*(command(f"call-{n}") for n in range(10)))
    bench.consumer.start()
    await bench.clock.sleep(60)
    assert (bench.unacknowledged, await bench.pending(), bench.reasons()) == (10, 0, [])
    bench.store.failures_left = 0
    await bench.clock.sleep(10)
    assert (bench.unacknowledged, await bench.pending()) == (0, 10)
    await bench.consumer.stop()


@on_virtual_time
async def test_unacceptable_commands_are_reported_and_hold_up_no_other() -> None:
    bench = Bench()
    await bench.send(b"{", command("good"), command("late", tenant="x" * 256), b"[]")
    await bench.run()
    assert (bench.unacknowledged, await bench.pending()) == (0, 1)
    assert bench.reasons() == [
        "the command is not JSON in UTF-8, or is nested too deeply",
        "tenantId must have at most 255 characters",
        "the command must be an object",
    ]
    counts = bench.consumer.counts
    assert (counts.received, counts.rejected, counts.scheduled) == (4, 3, 1)
    await bench.consumer.stop()


@on_virtual_time
async def test_refusals_of_the_service_are_reported_too() -> None:
    bench = Bench()
    await bench.send(command("a\0b"))
    await bench.run()
    assert bench.unacknowledged == 0
    assert bench.reasons() == ["payload.serviceCallId must not contain the character NUL"]
    await bench.consumer.stop()


@on_virtual_time
async def test_refused_rejections_hold_up_no_command() -> None:
    """For example, the channel is full. Otherwise bad commands would use up the in-flight limit."""
    bench = Bench()
    bench.bus.refuses = Channel.REJECTED
    await bench.send(*(b"bad %d" % n for n in range(6_000)), command("good"))
    await bench.run()
    assert (bench.unacknowledged, await bench.pending()) == (0, 1)
    assert bench.consumer.counts.rejected == 6_000
    await bench.consumer.stop()


@on_virtual_time
async def test_one_bad_command_harms_no_other() -> None:
    bench = Bench()
    await bench.send(*(command(f"call-{n}") for n in range(500)), *UNREADABLE)
    await bench.run()
    assert (bench.unacknowledged, await bench.pending()) == (0, 500)
    assert len(bench.reasons()) == len(UNREADABLE)
    await bench.consumer.stop()


@on_virtual_time
async def test_a_command_that_breaks_the_service_harms_no_other() -> None:
    bench = Bench()
    bench.store.stumbles_over = "call-7"
    await bench.send(*(command(f"call-{n}") for n in range(20)))
    with capture_logs() as logs:
        await bench.run()
    assert (bench.unacknowledged, await bench.pending()) == (0, 19)
    assert bench.reasons() == ["command could not be handled: internal error"]
    assert [(line["event"], line["count"]) for line in logs if line["log_level"] == "error"] == [
        ("bus.batch_broken", 20),
        ("bus.batch_broken", 1),
    ]
    await bench.consumer.stop()


@on_virtual_time
async def test_commands_resume_when_the_broker_is_back() -> None:
    bench = Bench()
    await bench.send(command("call"))
    bench.broker.fail_with("away")
    await bench.run(60)
    assert await bench.pending() == 0
    bench.broker.fail_with(None)
    await bench.clock.sleep(5)
    assert (bench.unacknowledged, await bench.pending()) == (0, 1)
    await bench.consumer.stop()


class CountingBus(MemoryBus):
    """Counts calls of `open`."""

    opened = 0

    async def open(self) -> None:
        self.opened += 1
        await super().open()


@on_virtual_time
async def test_removed_channels_are_looked_for_regularly() -> None:
    bench = Bench()
    bus = CountingBus(bench.broker)
    consumer = CommandConsumer(bus, bench.scheduling, bench.clock)
    consumer.start()
    await bench.clock.sleep(3.5 * CHECK_CHANNELS_SECONDS)
    await consumer.stop()
    assert bus.opened == 4


@on_virtual_time
async def test_unhandled_commands_are_given_back_at_the_end() -> None:
    bench = Bench()
    await bench.send(*(command(f"call-{n}") for n in range(3_000)))
    bench.consumer.start()
    await bench.store.first_create.wait()
    await bench.consumer.stop()
    left = bench.unacknowledged
    assert 0 < left < 3_000
    other = MemoryBus(bench.broker)
    await other.open()
    assert len(await other.receive(10_000, 0)) == left
    assert await bench.pending() + left == 3_000


@on_virtual_time
async def test_a_command_for_a_claimed_timer_waits_until_the_claim_ends() -> None:
    bench = Bench()
    await bench.send(command("call"))
    await bench.run(1)
    leases = await own_shards(bench.store)
    (claim,) = (
        await bench.store.claim_due(leases, now=DUE_AT, until_inclusive=DUE_AT, limit=1)
    ).claims
    later = command("call").replace(b"2030", b"2031")
    await bench.send(later)
    await bench.clock.sleep(20)
    assert bench.unacknowledged == 1
    assert bench.consumer.counts.received == 1
    settled = await bench.store.settle([hand_back(claim, due_at=DUE_AT, now=DUE_AT)])
    assert settled == [True]
    await bench.clock.sleep(20)
    assert bench.unacknowledged == 0
    assert bench.consumer.counts.scheduled == 2
    timer = await bench.store.get(TimerKey("acme", "call"))
    assert timer is not None
    assert format_instant(timer.execute_at).startswith("2031")
    await bench.consumer.stop()


@on_virtual_time
async def test_a_tenant_that_is_being_deleted_delays_no_other_tenant() -> None:
    bench = Bench()
    await bench.namespaces.provide(["gone", "acme"])
    await bench.namespaces.mark_deleting("gone", deleting=True)
    await bench.send(command("late", "gone"), *(command(f"call-{n}") for n in range(50)))
    with capture_logs() as logs:
        await bench.run(1)
        assert (await bench.pending(), bench.unacknowledged) == (50, 1)
        assert await bench.store.remove_namespace("gone")
        await bench.namespaces.refresh()
        await bench.clock.sleep(60)
    assert (await bench.pending(), bench.unacknowledged) == (51, 0)
    assert not bench.reasons()
    assert not [entry for entry in logs if entry["event"] == "store.unavailable"]
    await bench.consumer.stop()


@on_virtual_time
async def test_a_command_waits_for_a_deletion_that_this_node_has_not_heard_of() -> None:
    bench = Bench()
    elsewhere = Namespaces(bench.store)
    await elsewhere.provide(["gone"])
    await elsewhere.mark_deleting("gone", deleting=True)
    await bench.send(command("late", "gone"))
    await bench.run()
    assert (await bench.pending(), bench.unacknowledged, bench.reasons()) == (0, 1, [])
    await bench.consumer.stop()


@on_virtual_time
async def test_the_last_rejections_are_remembered_without_the_payload() -> None:
    bench = Bench()
    secret = b'{"id":"c-1","type":"Nonsense","tenantId":"acme","payload":{"token":"s3cret"}}'
    await bench.send(*([b"\xff"] * 300), secret)
    await bench.run()
    latest = bench.consumer.rejections.latest
    assert len(latest) == 200
    assert (latest[0].tenant, latest[0].command_id, latest[0].size_bytes) == (
        "acme",
        "c-1",
        len(secret),
    )
    assert "s3cret" not in repr(latest)
    assert (latest[1].tenant, latest[1].command_id) == (None, None)
    assert bench.consumer.counts.rejected == 301
    await bench.consumer.stop()
