"""Large batches: the store first assumes that all timers are new, which no caller can notice."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, HttpCallback
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import CreateRequest, Existence, OnExisting
from duetime.stores.postgres import PostgresInspector, PostgresOptions, PostgresStore
from duetime.testing.store_contract.steps import at, brought_to, create, own_shards, stored
from duetime.testing.timers import make_timer

MANY = 100


def many(prefix: str = "t") -> list[Timer]:
    """Many timers, in no particular order."""
    return [make_timer(f"{prefix}{n * 37 % MANY}", execute_at=at(1_000 + n)) for n in range(MANY)]


def assorted(*, same_namespace: bool) -> list[Timer]:
    """Timers that have little in common."""
    policies = [None, RetryPolicy(), RetryPolicy(max_retries=9)]
    metadata = [None, Raw(b'{"a": "\\u001f"}'), Raw(b"[]")]
    timers = [
        make_timer(
            f"ä-{n}",
            namespace="default" if same_namespace or n % 2 else "other",
            execute_at=at(n),
            created_at=at(-n),
            callback=BusCallback() if n % 5 else HttpCallback(url="x", payload=Raw(b"[\n\t1]")),
            retry_policy=policies[n % 3],
            metadata=metadata[n % 3],
            correlation_id=None if n % 4 else f"c{n}",
            fingerprint=bytes([n]) * 16,
        )
        for n in range(MANY)
    ]
    return [replace(timer, due_at=at(5 * n), updated_at=at(n)) for n, timer in enumerate(timers)]


@pytest.mark.parametrize("same_namespace", [True, False])
async def test_every_timer_keeps_its_own_content(
    store: PostgresStore, same_namespace: bool
) -> None:
    await store.add_namespace(Namespace("other", 16))
    timers = assorted(same_namespace=same_namespace)
    results = await create(store, *timers)
    assert [result.existence for result in results] == [Existence.CREATED] * MANY
    assert [result.timer for result in results] == timers
    assert [await stored(store, timer.key) for timer in timers] == timers


@pytest.mark.parametrize(
    "odd",
    [
        make_timer("with \x1f in it"),
        make_timer("odd", delivery_id="with \x1f in it"),
        make_timer("odd", fingerprint=b"f" * 16),
    ],
)
async def test_timers_that_cannot_be_sent_in_bulk_are_created_too(
    store: PostgresStore, odd: Timer
) -> None:
    timers = [*many(), odd]
    results = await create(store, *timers)
    assert [result.existence for result in results] == [Existence.CREATED] * (MANY + 1)
    assert [await stored(store, timer.key) for timer in timers] == timers


@pytest.mark.parametrize("on_existing", OnExisting)
@pytest.mark.parametrize("status", TimerStatus)
async def test_an_existing_timer_is_found_in_any_table(
    store: PostgresStore, options: PostgresOptions, status: TimerStatus, on_existing: OnExisting
) -> None:
    existing = await brought_to(store, await own_shards(store), make_timer("t7"), status)
    timers = many()
    results = await create(store, *timers, on_existing=on_existing)
    met = [result for result in results if result.existence is not Existence.CREATED]
    assert [result.timer.key for result in met] == [existing.key]
    is_replaced = status is TimerStatus.PENDING and on_existing is OnExisting.REPLACE
    assert met[0].existence is (Existence.REPLACED if is_replaced else Existence.EXISTING)
    assert await stored(store, existing.key) == met[0].timer
    assert sum((await store.counts()).values()) == MANY
    await expect_the_books_to_balance(options, accepted=MANY)


async def test_a_repeated_batch_is_followed_by_a_new_one(
    store: PostgresStore, options: PostgresOptions
) -> None:
    await create(store, *many())
    for _ in range(5):
        results = await create(store, *many())
        assert {result.existence for result in results} == {Existence.EXISTING}
    for round_number in range(10):
        results = await create(store, *many(f"round {round_number} "))
        assert {result.existence for result in results} == {Existence.CREATED}
    await expect_the_books_to_balance(options, accepted=11 * MANY)


async def test_an_id_that_is_wrongly_called_new_is_found(store: PostgresStore) -> None:
    timer = make_timer("same")
    await create(store, timer)
    again = [CreateRequest(make_timer(name), OnExisting.KEEP, True) for name in ("new", "same")]
    results = await store.create(again)
    assert [result.existence for result in results] == [Existence.CREATED, Existence.EXISTING]
    assert results[1].timer == timer


async def test_a_large_batch_may_have_a_key_twice(store: PostgresStore) -> None:
    timers = many()
    results = await create(store, *timers, timers[0])
    assert [result.existence for result in results[:-1]] == [Existence.CREATED] * MANY
    assert results[-1].existence is Existence.EXISTING


async def test_equal_ids_in_two_namespaces_are_two_timers(store: PostgresStore) -> None:
    await store.add_namespace(Namespace("other", 16))
    await create(store, *many())
    await store.cancel_if_pending(TimerKey("default", "t1"), at(1))
    elsewhere = [make_timer(timer.key.id, namespace="other") for timer in many()]
    results = await create(store, *elsewhere, make_timer("new"))
    assert {result.existence for result in results} == {Existence.CREATED}


async def expect_the_books_to_balance(options: PostgresOptions, *, accepted: int) -> None:
    inspector = PostgresInspector(options)
    await inspector.open()
    report = await inspector.audit(at(0))
    await inspector.close()
    assert [finding.problem for finding in report.findings] == []
    assert report.accepted == accepted
