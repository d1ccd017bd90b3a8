"""Calls to the store, as the metrics show them."""

import pytest

from duetime.domain.callback import BusCallback
from duetime.domain.errors import InvalidInput, StorageFull, StoreUnavailable
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive
from duetime.ports.store import Capabilities, CreateRequest, OnExisting
from duetime.stores.memory import MemoryStore
from duetime.telemetry.measured_store import StoreCalls
from duetime.telemetry.metrics.exposition import Format
from duetime.telemetry.metrics.recording import LabelValues
from duetime.telemetry.metrics.registry import Registry
from duetime.testing import VirtualClock, make_timer
from duetime.testing.store_contract.steps import (
    at,
    brought_to,
    claim,
    completion,
    create,
    own_shards,
)

UNKNOWN = TimerKey("default", "unknown")


class Measured:
    """A store in memory, its measured view, and the lines that a scrape shows."""

    def __init__(self, limit: int = 100) -> None:
        self.clock = VirtualClock()
        self._calls = StoreCalls(self.clock, LabelValues(limit))
        self._registry = Registry()
        self._registry.add(self._calls.recorders())
        self.kept = MemoryStore()
        self.store = self._calls.measured(self.kept)

    def shown(self, name: str) -> dict[str, float]:
        """The values of a metric by its labels."""
        lines = self._registry.render(Format.PROMETHEUS).splitlines()
        samples = [
            line.rpartition(" ") for line in lines if line.startswith((f"{name}{{", f"{name} "))
        ]
        return {labels.partition("{")[2].rstrip("}"): float(value) for labels, _, value in samples}


@pytest.fixture
async def measured() -> Measured:
    measured = Measured()
    for name in ("default", "other"):
        await measured.store.add_namespace(Namespace(name, 16))
    return measured


async def test_timers_are_counted_once_they_are_written(measured: Measured) -> None:
    first, second = make_timer("a"), make_timer("b", namespace="other", callback=BusCallback())
    keep, replace = OnExisting.KEEP, OnExisting.REPLACE

    await measured.store.create([CreateRequest(first, keep), CreateRequest(second, keep)])
    await measured.store.create([CreateRequest(first, keep), CreateRequest(second, replace)])

    assert measured.shown("duetime_timers_created_total") == {
        'namespace="default",type="http"': 1,
        'namespace="other",type="bus"': 1,
    }
    assert measured.shown("duetime_timers_replaced_total") == {'namespace="other"': 1}
    assert measured.shown("duetime_store_create_batch_size_bucket")['le="2"'] == 2


async def test_restored_timers_count_as_created(measured: Measured) -> None:
    await measured.store.restore([make_timer("a")])
    await measured.store.restore([make_timer("a")])

    assert measured.shown("duetime_timers_created_total") == {'namespace="default",type="http"': 1}


async def test_changes_and_cancels_count_if_they_applied(measured: Measured) -> None:
    timers = [make_timer(name) for name in "abc"]
    await measured.store.create([CreateRequest(each, OnExisting.KEEP) for each in timers])
    change = Change(updated_at=at(1), delivery_id="d", execute_at=at(9))
    a, b, _ = (each.key for each in timers)

    await measured.store.change_if_pending(a, change)
    await measured.store.cancel_if_pending(a, at(2))
    await measured.store.cancel_if_pending(a, at(3))
    await measured.store.change_if_pending(a, change)
    await measured.store.remove_if_pending(b)
    await measured.store.remove_if_pending(UNKNOWN)
    await measured.store.change_namespace("default", NamespaceOptions(deleting=True))
    await measured.store.remove_pending("default", limit=10)

    assert measured.shown("duetime_timers_changed_total") == {'namespace="default"': 1}
    assert measured.shown("duetime_timers_canceled_total") == {'namespace="default"': 3}


async def test_attempts_that_the_engine_plans_anew_are_no_changes(measured: Measured) -> None:
    timer = make_timer("a")
    await measured.store.create([CreateRequest(timer, OnExisting.KEEP)])
    planned = Change(updated_at=at(1), delivery_id=timer.delivery_id, due_at=at(20))
    result = await measured.store.change_if_pending(timer.key, planned)
    assert result is not None
    assert result.applied
    assert measured.shown("duetime_timers_changed_total") == {}

    policy = Change(updated_at=at(2), delivery_id="d", retry_policy=RetryPolicy(max_retries=1))
    await measured.store.change_if_pending(timer.key, policy)
    assert measured.shown("duetime_timers_changed_total") == {'namespace="default"': 1}


async def test_claims_settlements_and_redrives_are_counted(measured: Measured) -> None:
    leases = await own_shards(measured.kept)
    failed: Timer = await brought_to(measured.kept, leases, make_timer("a"), TimerStatus.FAILED)
    redrives = [Redrive(key=failed.key, delivery_id="d2"), Redrive(key=UNKNOWN, delivery_id="d3")]

    await measured.store.redrive_if_failed(redrives, at(2))
    claims = await claim(measured.store, leases)
    await measured.store.settle([completion(each) for each in claims])

    assert measured.shown("duetime_timers_redriven_total") == {'namespace="default"': 1}
    assert measured.shown("duetime_timers_claimed_total") == {'namespace="default"': 1}
    assert measured.shown("duetime_store_settle_batch_size_bucket")['le="1"'] == 1


async def test_recovered_timers_are_counted(measured: Measured) -> None:
    await create(measured.kept, make_timer("a"))
    await claim(measured.kept, await own_shards(measured.kept))

    await measured.store.recover(await own_shards(measured.kept))

    assert measured.shown("duetime_timers_recovered_total") == {"": 1}


async def test_namespaces_beyond_the_limit_are_counted_as_other() -> None:
    measured = Measured(limit=1)
    for name in ("one", "two", "three"):
        await measured.store.add_namespace(Namespace(name, 1))
        timer = make_timer("a", namespace=name, num_shards=1)
        await measured.store.create([CreateRequest(timer, OnExisting.KEEP)])

    assert measured.shown("duetime_timers_created_total") == {
        'namespace="one",type="http"': 1,
        'namespace="other",type="http"': 2,
    }


async def test_every_call_is_timed_by_its_operation(measured: Measured) -> None:
    await measured.store.security.last_uses()

    counts = measured.shown("duetime_store_call_duration_seconds_count")
    assert counts['operation="last_uses"'] == 1
    assert counts['operation="add_namespace"'] == 2
    assert counts.keys() == {'operation="last_uses"', 'operation="add_namespace"'}


class BrokenStore:
    """Every call takes 0.3 seconds and fails."""

    capabilities = Capabilities(durable=True, shared_by_nodes=False)

    def __init__(self, clock: VirtualClock, error: Exception) -> None:
        self._clock = clock
        self._error = error

    async def ping(self) -> None:
        self._clock.advance(0.3)
        raise self._error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreUnavailable("away"), "unavailable"),
        (StorageFull("full"), "full"),
        (RuntimeError("a defect"), "other"),
        (InvalidInput("id", "has NUL"), None),
    ],
)
async def test_failed_calls_are_counted_by_reason(error: Exception, reason: str | None) -> None:
    clock, registry = VirtualClock(), Registry()
    calls = StoreCalls(clock, LabelValues(1))
    registry.add(calls.recorders())
    store = calls.measured(BrokenStore(clock, error))

    with pytest.raises(type(error)):
        await store.ping()

    lines = registry.render(Format.PROMETHEUS).splitlines()
    assert 'duetime_store_call_duration_seconds_sum{operation="ping"} 0.3' in lines
    failed = [line for line in lines if 'errors_total{operation="ping"' in line]
    expected = f'duetime_store_errors_total{{operation="ping",reason="{reason}"}} 1'
    assert failed == ([] if reason is None else [expected])


async def test_errors_are_counted_from_zero_so_that_the_first_ones_are_an_increase(
    measured: Measured,
) -> None:
    before = measured.shown("duetime_store_errors_total")
    assert set(before.values()) == {0}
    for operation in ("create", "get", "claim_due", "settle"):
        for reason in ("unavailable", "full", "other"):
            assert f'operation="{operation}",reason="{reason}"' in before


async def test_the_rest_of_the_store_is_its_own(measured: Measured) -> None:
    assert measured.store.capabilities == measured.kept.capabilities
    assert measured.store.security.is_short is False
