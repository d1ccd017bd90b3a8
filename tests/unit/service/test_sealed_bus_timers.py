"""Commands for timers whose encryption key is missing: they wait for the key."""

from msgspec import Raw

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import TimerStatus
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.service.bus_scheduling import Cancellation, Schedule, Scheduled, Scheduling
from duetime.service.create_batcher import CreateBatcher
from duetime.service.namespaces import Namespaces
from duetime.service.sealing_store import with_sealed_contents
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing.recording_destination import RecordingDestination
from duetime.testing.virtual_clock import START_AT, VirtualClock
from tests.unit.service.service_bench import RecordingWakeUps, timer_rules

OLD, NEW = SealingKey("old", bytes(32)), SealingKey("new", bytes([1] * 32))
KEY = TimerKey("tenant", "call")
DUE_AT = Instant(START_AT + 3_600_000_000)


def node(store: MemoryStore, *keys: SealingKey) -> Scheduling:
    """The bus of a node that has these keys."""
    clock, wakeups = VirtualClock(), RecordingWakeUps()
    turns = Turns(clock)
    sealed = with_sealed_contents(store, CallbackSealer(Sealer(keys)), turns)
    return Scheduling(
        sealed,
        clock,
        wakeups,
        RecordingDestination(clock),
        Namespaces(store),
        timer_rules(min_delay_ms=0, past_is_due=True),
        creates=CreateBatcher(sealed, wakeups),
        turns=turns,
    )


def schedule(order: int, payload: bytes = b"1") -> Schedule:
    return Schedule(
        namespace=KEY.namespace,
        id=KEY.id,
        due_at=DUE_AT,
        payload=Raw(payload),
        order=order,
        correlation_id=None,
    )


async def test_a_cancellation_waits_for_the_key() -> None:
    store = MemoryStore()
    assert await node(store, OLD).handle_all([schedule(1)]) == [Scheduled.CREATED]
    cancellation = Cancellation(namespace=KEY.namespace, id=KEY.id, order=2)
    assert await node(store, NEW).handle_all([cancellation]) == [Scheduled.UNDECIDED]
    timer = await store.get(KEY)
    assert timer is not None
    assert timer.status is TimerStatus.PENDING
    assert await node(store, NEW, OLD).handle_all([cancellation]) == [Scheduled.CANCELED]


async def test_a_change_waits_for_the_key() -> None:
    store = MemoryStore()
    assert await node(store, OLD).handle_all([schedule(1)]) == [Scheduled.CREATED]
    assert await node(store, NEW).handle_all([schedule(2, b"2")]) == [Scheduled.UNDECIDED]
    assert await node(store, NEW, OLD).handle_all([schedule(2, b"2")]) == [Scheduled.CHANGED]
