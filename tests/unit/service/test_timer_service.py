import asyncio
import re

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import (
    InvalidInput,
    NamespaceNotFound,
    TimerConflict,
    TimerDiffers,
    TimerNotFound,
    TimerNotPending,
    TooLarge,
)
from duetime.domain.instants import plus_ms
from duetime.domain.keys import TimerKey, shard_of, timer_uuid_of
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.ports.store import Existence, OnExisting
from duetime.service.create_requests import NewTimer
from duetime.testing.virtual_clock import START_AT
from tests.unit.service.service_bench import ServiceBench, timer_rules

YEAR_MS = 31_557_600_000
CALLBACK = HttpCallback(url="https://example.com/due", payload=Raw('{"a":1}'))


def new_timer(delay_ms: float = 10_000) -> NewTimer:
    return NewTimer(execute_at=plus_ms(START_AT, delay_ms), callback=CALLBACK)


async def test_a_created_timer_is_stored_as_asked_and_announced(bench: ServiceBench) -> None:
    policy = RetryPolicy(max_retries=1)
    result = await bench.service.create(
        replace(new_timer(), metadata=Raw("[1]"), retry_policy=policy, correlation_id="c")
    )
    assert result.existence is Existence.CREATED
    timer = result.timer
    assert timer == await bench.service.get(timer.key)
    assert timer.key.namespace == "default"
    assert timer.shard == shard_of(timer.key.id, 16)
    assert timer.timer_uuid == timer_uuid_of(timer.key)
    assert timer.execute_at == timer.due_at == plus_ms(START_AT, 10_000)
    assert timer.created_at == timer.updated_at == START_AT
    assert (timer.callback, timer.metadata, timer.retry_policy) == (CALLBACK, Raw("[1]"), policy)
    assert (timer.correlation_id, timer.fingerprint) == ("c", None)
    assert bench.wakeups.announced == [(timer.shard, timer.due_at)]


async def test_ids_and_delivery_ids_are_all_different(bench: ServiceBench) -> None:
    results = await asyncio.gather(*(bench.service.create(new_timer()) for _ in range(100)))
    timers = [result.timer for result in results]
    assert len({name for t in timers for name in (t.key.id, t.delivery_id)}) == 200


async def test_a_given_id_is_kept_and_an_existing_timer_is_answered(bench: ServiceBench) -> None:
    first = await bench.service.create(replace(new_timer(), id="mine"))
    second = await bench.service.create(replace(new_timer(), id="mine"))
    assert (second.existence, second.timer) == (Existence.EXISTING, first.timer)
    with pytest.raises(TimerDiffers) as caught:
        await bench.service.create(replace(new_timer(20_000), id="mine"))
    assert caught.value.fields == ["execute_at"]
    assert len(bench.wakeups.announced) == 1
    third = await bench.service.create(
        replace(new_timer(30_000), id="mine", on_existing=OnExisting.REPLACE)
    )
    assert third.existence is Existence.REPLACED
    assert bench.wakeups.announced[1:] == [(first.timer.shard, plus_ms(START_AT, 30_000))]


@pytest.mark.parametrize(
    ("delay_ms", "problem"),
    [
        (-1, "execute_at must be in the future"),
        (0, "execute_at must be in the future"),
        (0.001, "execute_at must be at least 5 s in the future (MIN_DELAY_SECONDS)"),
        (4_999.999, "execute_at must be at least 5 s in the future (MIN_DELAY_SECONDS)"),
        (100 * YEAR_MS + 1, "execute_at is too far in the future: at most 100 years"),
    ],
)
async def test_instants_out_of_bounds_are_refused(
    bench: ServiceBench, delay_ms: float, problem: str
) -> None:
    kept = (await bench.service.create(new_timer())).timer
    with pytest.raises(InvalidInput, match=f"^{re.escape(problem)}$"):
        await bench.service.create(new_timer(delay_ms))
    with pytest.raises(InvalidInput, match=f"^{re.escape(problem)}$"):
        await bench.service.change(kept.key, execute_at=plus_ms(START_AT, delay_ms))
    assert await bench.service.get(kept.key) == kept
    assert sum((await bench.service.counts()).values()) == 1


@pytest.mark.parametrize("delay_ms", [5_000, 100 * YEAR_MS])
async def test_the_bounds_themselves_are_accepted(bench: ServiceBench, delay_ms: float) -> None:
    assert (await bench.service.create(new_timer(delay_ms))).existence is Existence.CREATED


async def test_the_minimum_delay_may_be_zero_or_a_fraction() -> None:
    none = await ServiceBench(rules=timer_rules(min_delay_ms=0)).open()
    await none.service.create(new_timer(0.001))
    half = await ServiceBench(rules=timer_rules(min_delay_ms=500)).open()
    with pytest.raises(InvalidInput, match=r"at least 0\.5 s"):
        await half.service.create(new_timer(499))


async def test_sizes_are_limited() -> None:
    rules = timer_rules(max_payload_bytes=10, max_metadata_bytes=10)
    bench = await ServiceBench(rules=rules).open()
    large = Raw('"' + "x" * 9 + '"')
    fitting = Raw('"' + "x" * 8 + '"')
    with pytest.raises(TooLarge, match=r"^callback\.payload must be at most 10 bytes"):
        await bench.service.create(replace(new_timer(), callback=replace(CALLBACK, payload=large)))
    with pytest.raises(TooLarge, match=r"^metadata must be at most 10 bytes"):
        await bench.service.create(replace(new_timer(), metadata=large))
    callback = replace(CALLBACK, payload=fitting)
    await bench.service.create(replace(new_timer(), callback=callback, metadata=fitting))


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (RetryPolicy(max_retries=-1), "max_retries"),
        (RetryPolicy(max_retries=101), "max_retries"),
        (RetryPolicy(backoff_multiplier=0.99), "backoff_multiplier"),
        (RetryPolicy(backoff_multiplier=100.1), "backoff_multiplier"),
        (RetryPolicy(initial_interval_ms=0), "initial_interval"),
        (RetryPolicy(max_interval_ms=31 * 86_400_000), "max_interval"),
        (RetryPolicy(max_duration_ms=366 * 86_400_000), "max_retry_attempts_duration"),
        (RetryPolicy(initial_interval_ms=2, max_interval_ms=1), "initial_interval"),
    ],
)
async def test_policies_out_of_range_are_refused(
    bench: ServiceBench, policy: RetryPolicy, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await bench.service.create(replace(new_timer(), retry_policy=policy))
    assert caught.value.field == f"retry_policy.{field}"


@pytest.mark.parametrize("text", ["", "x" * 256, "a\0b", "\ud800"])
async def test_unusable_ids_and_keys_are_refused(bench: ServiceBench, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await bench.service.create(replace(new_timer(), id=text))
    assert caught.value.field == "id"
    with pytest.raises(InvalidInput) as caught:
        await bench.service.create(replace(new_timer(), idempotency_key=text))
    assert caught.value.field == "idempotency_key"


async def test_an_unknown_namespace_is_refused_everywhere(bench: ServiceBench) -> None:
    key = TimerKey("nowhere", "x")
    with pytest.raises(NamespaceNotFound):
        await bench.service.create(replace(new_timer(), namespace="nowhere"))
    for act in (bench.service.get, bench.service.change, bench.service.cancel):
        with pytest.raises(NamespaceNotFound):
            await act(key)


class TestIdempotency:
    keyed = replace(new_timer(), idempotency_key="order-1")

    async def test_a_repeat_is_answered_with_the_same_timer(self, bench: ServiceBench) -> None:
        first = await bench.service.create(self.keyed)
        again = await bench.service.create(self.keyed)
        assert first.existence is Existence.CREATED
        assert (again.existence, again.timer) == (Existence.EXISTING, first.timer)

    async def test_concurrent_repeats_make_one_timer(self, bench: ServiceBench) -> None:
        results = await asyncio.gather(*(bench.service.create(self.keyed) for _ in range(20)))
        assert sum(result.existence is Existence.CREATED for result in results) == 1
        assert sum((await bench.service.counts()).values()) == 1

    async def test_a_repeat_succeeds_when_its_instant_is_too_close_or_past(
        self, bench: ServiceBench
    ) -> None:
        first = await bench.service.create(self.keyed)
        for _ in range(2):
            bench.clock.advance(8)
            assert (await bench.service.create(self.keyed)).timer == first.timer

    async def test_other_content_is_a_conflict_even_when_invalid(self, bench: ServiceBench) -> None:
        await bench.service.create(self.keyed)
        for delay_ms in (20_000, -5):
            other = replace(self.keyed, execute_at=plus_ms(START_AT, delay_ms))
            with pytest.raises(TimerConflict, match="was used for a different timer"):
                await bench.service.create(other)

    async def test_an_invalid_first_request_is_refused(self, bench: ServiceBench) -> None:
        with pytest.raises(InvalidInput, match="in the future"):
            await bench.service.create(replace(self.keyed, execute_at=START_AT))

    async def test_a_change_does_not_turn_the_repeat_into_a_conflict(
        self, bench: ServiceBench
    ) -> None:
        first = await bench.service.create(self.keyed)
        changed = await bench.service.change(first.timer.key, metadata=Raw("1"))
        assert (await bench.service.create(self.keyed)).timer == changed

    async def test_a_key_and_an_id_exclude_each_other(self, bench: ServiceBench) -> None:
        with pytest.raises(InvalidInput, match="together with id"):
            await bench.service.create(replace(self.keyed, id="mine"))


class TestChangeAndCancel:
    async def test_only_given_fields_change(self, bench: ServiceBench) -> None:
        timer = (await bench.service.create(replace(new_timer(), metadata=Raw("1")))).timer
        bench.clock.advance(1)
        changed = await bench.service.change(timer.key, execute_at=plus_ms(START_AT, 60_000))
        assert changed.execute_at == changed.due_at == plus_ms(START_AT, 60_000)
        assert changed.updated_at == bench.clock.now()
        assert (changed.callback, changed.metadata) == (timer.callback, timer.metadata)
        assert changed.delivery_id != timer.delivery_id
        assert bench.wakeups.announced[1:] == [(timer.shard, changed.due_at)]
        assert (await bench.service.change(timer.key, metadata=None)).metadata is None

    async def test_a_missing_timer_is_not_found(self, bench: ServiceBench) -> None:
        key = TimerKey("default", "absent")
        for act in (bench.service.get, bench.service.change, bench.service.cancel):
            with pytest.raises(TimerNotFound):
                await act(key)
        with pytest.raises(TimerNotFound):
            await bench.service.change(key, execute_at=START_AT)

    async def test_canceling_twice_succeeds(self, bench: ServiceBench) -> None:
        timer = (await bench.service.create(new_timer())).timer
        for _ in range(2):
            canceled = await bench.service.cancel(timer.key)
            assert canceled.status is TimerStatus.CANCELED
        with pytest.raises(TimerNotPending, match="cannot update timer with status 'canceled'"):
            await bench.service.change(timer.key, metadata=None)

    async def test_an_executing_timer_is_refused_with_its_status(self, bench: ServiceBench) -> None:
        timer = (await bench.service.create(new_timer())).timer
        bench.clock.advance(10)
        await bench.claim_all()
        with pytest.raises(TimerNotPending, match="cannot cancel timer with status 'executing'"):
            await bench.service.cancel(timer.key)
        # The status is reported even when the new values are wrong too: it cannot be corrected.
        for execute_at in (START_AT, plus_ms(START_AT, 60_000)):
            with pytest.raises(TimerNotPending, match="cannot update timer with status 'exec"):
                await bench.service.change(timer.key, execute_at=execute_at)
