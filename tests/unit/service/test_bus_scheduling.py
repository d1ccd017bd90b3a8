"""Timers that the bus asks for, by key, and maybe more than once."""

import pytest
from msgspec import UNSET, Raw

from duetime.bus.events import EventDestination
from duetime.bus.memory import MemoryBus
from duetime.domain.callback import BusCallback
from duetime.domain.errors import InvalidInput, TimerUnreadable
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import TimerKey
from duetime.domain.outcome import Outcome
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, hand_back
from duetime.ports.store import ConditionalResult, CreateRequest, OnExisting
from duetime.service.bus_scheduling import Cancellation, Schedule, Scheduled, Scheduling
from duetime.service.create_batcher import CreateBatcher
from duetime.service.namespaces import Namespaces
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import ManualEngine, VirtualClock
from duetime.testing.store_contract.steps import own_shards
from duetime.testing.timers import make_timer
from duetime.testing.virtual_clock import START_AT
from tests.unit.service.service_bench import DamagedStore, RecordingWakeUps, timer_rules

RULES = timer_rules(min_delay_ms=0, past_is_due=True)


def at(seconds: float) -> Instant:
    return plus_ms(START_AT, seconds * 1_000)


class Bench:
    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.clock = VirtualClock()
        self.wakeups = RecordingWakeUps()
        self.namespaces = Namespaces(self.store)
        self.bus = MemoryBus()
        self.events = EventDestination(self.bus, self.clock)
        self.scheduling = Scheduling(
            self.store,
            self.clock,
            self.wakeups,
            self.events,
            self.namespaces,
            RULES,
            creates=CreateBatcher(self.store, self.wakeups),
            turns=Turns(self.clock),
        )
        self._order = 0

    async def schedule(
        self,
        call: str = "call",
        *,
        due_at: Instant,
        tenant: str = "acme",
        order: int | None = None,
        correlation: str | None = None,
        payload: bytes | None = None,
    ) -> Scheduled:
        (answer,) = await self.scheduling.schedule_all(
            [
                self.schedule_of(
                    call,
                    due_at=due_at,
                    tenant=tenant,
                    order=order,
                    correlation=correlation,
                    payload=payload,
                )
            ]
        )
        assert isinstance(answer, Scheduled)
        return answer

    def schedule_of(
        self,
        call: str = "call",
        *,
        due_at: Instant,
        tenant: str = "acme",
        order: int | None = None,
        correlation: str | None = None,
        payload: bytes | None = None,
    ) -> Schedule:
        self._order += 1
        return Schedule(
            namespace=tenant,
            id=call,
            due_at=due_at,
            correlation_id=correlation,
            order=self._order if order is None else order,
            payload=UNSET if payload is None else Raw(payload),
        )

    async def cancel(
        self, call: str = "call", *, tenant: str = "acme", order: int | None = None
    ) -> Scheduled:
        (answer,) = await self.scheduling.handle_all(
            [self.cancellation_of(call, tenant=tenant, order=order)]
        )
        assert isinstance(answer, Scheduled)
        return answer

    def cancellation_of(
        self, call: str = "call", *, tenant: str = "acme", order: int | None = None
    ) -> Cancellation:
        self._order += 1
        return Cancellation(
            namespace=tenant, id=call, order=self._order if order is None else order
        )

    async def hand_back_all(self) -> None:
        leases = {state.shard: state.epoch for state in await self.store.shards()}
        now = self.clock.now()
        for claim in await self.store.executing(leases):
            await self.store.settle([hand_back(claim, due_at=claim.due_at, now=now)])

    async def timer(self, call: str = "call", tenant: str = "acme") -> Timer:
        timer = await self.store.get(TimerKey(tenant, call))
        assert timer is not None
        return timer

    async def claim_all(self) -> None:
        leases = await own_shards(self.store)
        now = self.clock.now()
        await self.store.claim_due(leases, now=now, until_inclusive=now, limit=100)

    async def fire(self) -> list[tuple[Claim, Outcome]]:
        return await ManualEngine(self.store, self.events, self.clock).tick()


@pytest.fixture
async def bench() -> Bench:
    bench = Bench()
    await bench.bus.open()
    return bench


async def test_an_unknown_tenant_gets_its_timer(bench: Bench) -> None:
    assert await bench.schedule(due_at=at(5), correlation="req-1") is Scheduled.CREATED
    timer = await bench.timer()
    assert timer.execute_at == at(5)
    assert timer.callback == BusCallback()
    assert timer.correlation_id == "req-1"
    assert (timer.shard, at(5)) in bench.wakeups.announced


async def test_a_pending_timer_is_moved_by_a_later_command(bench: Bench) -> None:
    await bench.schedule(due_at=at(5), correlation="req-1")
    before = await bench.timer()
    assert await bench.schedule(due_at=at(2), correlation="req-2") is Scheduled.CHANGED
    after = await bench.timer()
    assert (after.execute_at, after.due_at, after.correlation_id) == (at(2), at(2), "req-2")
    assert after.delivery_id != before.delivery_id
    assert bench.wakeups.announced[-1] == (after.shard, at(2))


async def test_a_command_that_comes_again_changes_nothing(bench: Bench) -> None:
    await bench.schedule(due_at=at(5), order=7)
    before = await bench.timer()
    assert await bench.schedule(due_at=at(5), order=7) is Scheduled.UNCHANGED
    assert await bench.timer() == before


async def test_an_earlier_command_that_comes_late_changes_nothing(bench: Bench) -> None:
    await bench.schedule(due_at=at(5), order=7)
    await bench.schedule(due_at=at(9), order=8)
    assert await bench.schedule(due_at=at(5), order=7) is Scheduled.UNCHANGED
    assert (await bench.timer()).execute_at == at(9)


async def test_a_new_command_for_the_same_instant_keeps_the_firing(bench: Bench) -> None:
    await bench.schedule(due_at=at(5), order=7)
    before = await bench.timer()
    assert await bench.schedule(due_at=at(5), order=9) is Scheduled.UNCHANGED
    assert (await bench.timer()).delivery_id == before.delivery_id
    # This command is the latest all the same: earlier ones come too late.
    assert await bench.schedule(due_at=at(6), order=8) is Scheduled.UNCHANGED
    assert (await bench.timer()).execute_at == at(5)


@pytest.mark.parametrize("orders", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
async def test_the_last_command_of_a_batch_counts(bench: Bench, orders: tuple[int, ...]) -> None:
    answers = await bench.scheduling.schedule_all(
        [bench.schedule_of(due_at=at(order), order=order) for order in orders]
    )
    assert sorted(str(answer) for answer in answers) == [
        "Scheduled.CREATED",
        "Scheduled.UNCHANGED",
        "Scheduled.UNCHANGED",
    ]
    assert (await bench.timer()).execute_at == at(3)


async def test_a_bad_command_does_not_hide_a_good_one_before_it(bench: Bench) -> None:
    far = Instant(at(0) + 200 * 365 * 86_400 * 1_000_000)
    good, bad = await bench.scheduling.schedule_all(
        [bench.schedule_of(due_at=at(5)), bench.schedule_of(due_at=far)]
    )
    assert good is Scheduled.CREATED
    assert isinstance(bad, InvalidInput)
    assert bad.field == "execute_at"


async def test_an_invalid_schedule_does_not_affect_the_others(bench: Bench) -> None:
    answers = await bench.scheduling.schedule_all(
        [
            bench.schedule_of("a", due_at=at(5)),
            bench.schedule_of("b", due_at=at(5), tenant=""),
            bench.schedule_of("", due_at=at(5)),
            bench.schedule_of("c", due_at=Instant(-1)),
            bench.schedule_of("d", due_at=at(5), correlation="a\0b"),
            bench.schedule_of("e", due_at=at(5), tenant="other"),
        ]
    )
    fields = [answer.field if isinstance(answer, InvalidInput) else answer for answer in answers]
    assert fields == [
        Scheduled.CREATED,
        "namespace",
        "id",
        "execute_at",
        "correlation_id",
        Scheduled.CREATED,
    ]
    assert {each.name for each in await bench.store.namespaces()} == {"acme", "other"}


async def test_an_instant_in_the_past_is_accepted_and_due(bench: Bench) -> None:
    assert await bench.schedule(due_at=at(-60)) is Scheduled.CREATED
    assert (await bench.timer()).due_at == at(-60)


async def test_a_timer_that_has_fired_is_left_alone(bench: Bench) -> None:
    await bench.schedule("other", due_at=at(0))
    await bench.fire()
    assert await bench.schedule("other", due_at=at(5)) is Scheduled.TOO_LATE
    assert await bench.cancel("other") is Scheduled.TOO_LATE
    assert (await bench.timer("other")).status is TimerStatus.COMPLETED


async def test_a_command_for_a_claimed_timer_is_undecided_until_the_claim_ends(
    bench: Bench,
) -> None:
    """A claim that was not sent may be handed back: then the command must count."""
    await bench.schedule(due_at=at(0), order=7)
    await bench.claim_all()
    assert await bench.schedule(due_at=at(5), order=8) is Scheduled.UNDECIDED
    assert await bench.cancel(order=9) is Scheduled.UNDECIDED
    assert await bench.schedule(due_at=at(0), order=7) is Scheduled.UNCHANGED
    assert (await bench.timer()).status is TimerStatus.EXECUTING
    await bench.hand_back_all()
    assert await bench.schedule(due_at=at(5), order=8) is Scheduled.CHANGED
    assert (await bench.timer()).execute_at == at(5)
    assert await bench.cancel(order=9) is Scheduled.CANCELED


async def test_a_pending_timer_is_canceled_once_and_never_rises_again(bench: Bench) -> None:
    await bench.schedule(due_at=at(5))
    assert await bench.cancel() is Scheduled.CANCELED
    assert await bench.cancel() is Scheduled.UNCHANGED
    assert await bench.schedule(due_at=at(9)) is Scheduled.TOO_LATE
    assert (await bench.timer()).status is TimerStatus.CANCELED
    assert await bench.cancel("nobody") is Scheduled.UNKNOWN
    assert await bench.cancel(tenant="nowhere") is Scheduled.UNKNOWN


async def test_the_later_of_two_commands_counts_whichever_is_handled_first(bench: Bench) -> None:
    await bench.schedule(due_at=at(5), order=9)
    assert await bench.cancel(order=8) is Scheduled.UNCHANGED
    assert (await bench.timer()).status is TimerStatus.PENDING


async def test_a_cancel_loses_against_a_later_command_at_the_same_moment() -> None:
    class Overtaken(MemoryStore):
        async def cancel_if_pending(
            self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
        ) -> ConditionalResult | None:
            change = Change(
                updated_at=plus_ms(now, 1), delivery_id="d2", execute_at=at(50), command_order=99
            )
            await self.change_if_pending(key, change)
            return await super().cancel_if_pending(key, now, only_updated_at=only_updated_at)

    bench = Bench(Overtaken())
    await bench.schedule(due_at=at(5), order=7)
    assert await bench.cancel(order=8) is Scheduled.UNCHANGED
    assert (await bench.timer()).execute_at == at(50)


async def test_commands_of_one_batch_take_effect_in_their_order(bench: Bench) -> None:
    commands: list[Schedule | Cancellation] = [
        bench.schedule_of("a", due_at=at(5), order=1),
        bench.cancellation_of("a", order=2),
        bench.schedule_of("a", due_at=at(6), order=3),
        bench.cancellation_of("b", order=4),
        bench.schedule_of("b", due_at=at(7), order=5),
        bench.schedule_of("b", due_at=at(8), order=6),
    ]
    for shuffled in (commands, list(reversed(commands))):
        other = Bench()
        answers = await other.scheduling.handle_all(shuffled)
        by_order = {
            command.order: answer for command, answer in zip(shuffled, answers, strict=True)
        }
        assert by_order == {
            1: Scheduled.CREATED,
            2: Scheduled.CANCELED,
            3: Scheduled.TOO_LATE,
            4: Scheduled.UNKNOWN,
            5: Scheduled.UNCHANGED,
            6: Scheduled.CREATED,
        }
        assert (await other.timer("b")).execute_at == at(8)


async def test_a_timer_of_another_door_is_not_canceled(bench: Bench) -> None:
    await bench.namespaces.provide(["acme"])
    timer = make_timer("call", namespace="acme", execute_at=at(5))
    await bench.store.create([CreateRequest(timer, OnExisting.KEEP)])
    (answer,) = await bench.scheduling.handle_all([bench.cancellation_of()])
    assert str(answer) == "id belongs to a timer that was not scheduled over the bus"
    assert await bench.timer() == timer


async def test_another_payload_replaces_the_first(bench: Bench) -> None:
    await bench.schedule(due_at=at(5), payload=b'{"n":1.0}')
    first = await bench.timer()
    assert await bench.schedule(due_at=at(5), payload=b'{"n":1.0}') is Scheduled.UNCHANGED
    assert (await bench.timer()).delivery_id == first.delivery_id
    assert await bench.schedule(due_at=at(5), payload=b'{"n":1.00}') is Scheduled.CHANGED
    second = await bench.timer()
    assert second.delivery_id != first.delivery_id
    assert second.callback == BusCallback(payload=Raw(b'{"n":1.00}'))
    assert await bench.schedule(due_at=at(5)) is Scheduled.CHANGED
    assert (await bench.timer()).callback == BusCallback()


async def test_a_payload_that_is_too_large_is_refused(bench: Bench) -> None:
    large = b'"' + b"x" * RULES.max_payload_bytes + b'"'
    schedules = [
        bench.schedule_of("large", due_at=at(5), payload=large),
        bench.schedule_of("small", due_at=at(5), payload=b"1"),
    ]
    refused, accepted = await bench.scheduling.schedule_all(schedules)
    assert isinstance(refused, InvalidInput)
    assert refused.field == "callback.payload"
    assert accepted is Scheduled.CREATED


async def test_a_timer_of_another_door_is_left_alone(bench: Bench) -> None:
    await bench.namespaces.provide(["acme"])
    timer = make_timer("call", namespace="acme", execute_at=at(5), metadata=Raw(b'"mine"'))
    await bench.store.create([CreateRequest(timer, OnExisting.KEEP)])
    (answer,) = await bench.scheduling.schedule_all([bench.schedule_of(due_at=at(9))])
    assert isinstance(answer, InvalidInput)
    assert str(answer) == "id belongs to a timer that was not scheduled over the bus"
    assert await bench.timer() == timer


async def test_a_timer_with_changed_metadata_is_moved_all_the_same(bench: Bench) -> None:
    await bench.schedule(due_at=at(5), order=7)
    change = Change(updated_at=at(1), delivery_id="unused", metadata=Raw(b'["mine"]'))
    await bench.store.change_if_pending(TimerKey("acme", "call"), change)
    assert await bench.schedule(due_at=at(6), order=8) is Scheduled.CHANGED


async def test_a_firing_that_was_announced_and_not_recorded_keeps_its_name(bench: Bench) -> None:
    """The command comes again as well: the node died before it acknowledged it."""
    await bench.schedule(due_at=at(0), order=7)
    before = await bench.timer()
    await bench.claim_all()
    leases = await own_shards(bench.store)
    await bench.store.recover(leases, limit=10)
    assert (await bench.timer()).status is TimerStatus.PENDING
    assert await bench.schedule(due_at=at(0), order=7) is Scheduled.UNCHANGED
    assert (await bench.timer()).delivery_id == before.delivery_id


async def test_an_existing_timer_that_cannot_be_read_is_an_answer_of_its_own() -> None:
    store = DamagedStore()
    bench = Bench(store)
    schedules = [bench.schedule_of(call, due_at=at(10)) for call in ("first", "damaged", "last")]
    store.damaged.add(schedules[1].id)
    first, damaged, last = await bench.scheduling.schedule_all(schedules)
    assert (first, last) == (Scheduled.CREATED, Scheduled.CREATED)
    assert isinstance(damaged, TimerUnreadable)
