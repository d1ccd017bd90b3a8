"""Large batches for a distant future: a store may write them in another way than small ones, and
their timers behave like any other."""

from random import Random

import pytest
from msgspec.structs import replace

from duetime.domain import transitions
from duetime.domain.instants import plus_ms
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.store import (
    CreateRequest,
    CreateResult,
    Existence,
    OnExisting,
    PageQuery,
    ScanQuery,
    SortField,
)
from duetime.testing.store_contract.steps import (
    Reopen,
    Store,
    at,
    claim,
    completion,
    create,
    ids_of,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer

FIRST_DUE_SECONDS = 3_600
MANY = 700


def many(prefix: str = "t", *, namespace: str = "default") -> list[Timer]:
    """Timers due at various instants from an hour on, in no order."""
    delays = [FIRST_DUE_SECONDS + n // 3 for n in range(MANY)]
    Random(7).shuffle(delays)
    return [
        make_timer(f"{prefix}{n}", namespace=namespace, execute_at=at(delay))
        for n, delay in enumerate(delays)
    ]


def in_due_order(timers: list[Timer]) -> list[Timer]:
    return sorted(timers, key=lambda timer: (timer.due_at, timer.timer_uuid))


@pytest.mark.asyncio
class BulkContract:
    async def test_every_timer_is_stored_at_once(self, store: Store) -> None:
        timers = many()
        results = await create(store, *timers)
        assert results == [CreateResult(Existence.CREATED, timer) for timer in timers]
        for timer in timers[::50]:
            assert await store.get(timer.key) == timer
        assert await store.get(TimerKey("nowhere", timers[0].key.id)) is None
        assert (await store.counts("default"))[TimerStatus.PENDING] == MANY
        query = ScanQuery(namespace="default", limit=MANY)
        assert await store.scan(query) == in_due_order(timers)
        assert await store.count_scan(query) == MANY
        page = await store.page(
            PageQuery(namespace="default", sort=SortField.EXECUTE_AT, descending=False, limit=9)
        )
        assert (page.timers, page.total) == (in_due_order(timers)[:9], MANY)

    async def test_a_scan_of_a_range_finds_timers_of_a_large_batch(self, store: Store) -> None:
        timers = many()
        await create(store, *timers)
        await create(store, make_timer("early", execute_at=at(1)))
        query = ScanQuery(
            namespace="default",
            status=TimerStatus.PENDING,
            execute_from_inclusive=at(2),
            execute_until_exclusive=at(FIRST_DUE_SECONDS + 100),
            limit=1_000,
        )
        expected = [t for t in in_due_order(timers) if t.due_at < at(FIRST_DUE_SECONDS + 100)]
        assert await store.scan(query) == expected
        assert await store.count_scan(query) == len(expected)

    @pytest.mark.parametrize("again", [1, MANY])
    async def test_repeated_creates_find_the_existing_timers(
        self, store: Store, again: int
    ) -> None:
        timers = many()
        await create(store, *timers)
        repeated = timers[:again]
        results = await create(store, *reversed(repeated))
        assert results == [CreateResult(Existence.EXISTING, t) for t in reversed(repeated)]
        assert (await store.counts())[TimerStatus.PENDING] == MANY
        assert len(await claim(store, await own_shards(store))) == MANY

    @pytest.mark.parametrize("count", [1, MANY])
    async def test_replacements_are_due_at_their_new_instants(
        self, store: Store, count: int
    ) -> None:
        timers = many()
        await create(store, *timers)
        others = [make_timer(t.key.id, execute_at=at(9_999)) for t in timers[:count]]
        results = await create(store, *others, on_existing=OnExisting.REPLACE)
        assert {result.existence for result in results} == {Existence.REPLACED}
        assert await store.get(others[0].key) == results[0].timer
        claims = await claim(store, await own_shards(store), until_inclusive=at(9_998))
        assert len(claims) == MANY - count

    @pytest.mark.parametrize("soon_first", [True, False])
    async def test_the_first_of_two_requests_for_a_key_counts(
        self, store: Store, soon_first: bool
    ) -> None:
        timers = many()
        soon, later = (
            make_timer("twice", execute_at=at(1)),
            make_timer("twice", execute_at=at(9_999)),
        )
        first, second = (soon, later) if soon_first else (later, soon)
        results = await create(store, first, *timers, second)
        assert results[0] == CreateResult(Existence.CREATED, first)
        assert results[-1] == CreateResult(Existence.EXISTING, first)
        claims = await claim(store, await own_shards(store))
        assert ids_of(claims).count("twice") == 1
        assert len(claims) == MANY + 1

    async def test_timers_that_wait_for_a_retry_keep_both_instants(self, store: Store) -> None:
        timers = [replace(timer, due_at=plus_ms(timer.due_at, 1)) for timer in many()]
        await create(store, *timers)
        assert await store.get(timers[0].key) == timers[0]
        assert await store.scan(ScanQuery(namespace="default", limit=MANY)) == in_due_order(timers)

    @pytest.mark.parametrize("keep_first", [True, False])
    async def test_a_repeat_and_a_replacement_of_one_timer_in_one_batch(
        self, store: Store, keep_first: bool
    ) -> None:
        timers = many()
        await create(store, *timers)
        repeated, replacement = timers[0], make_timer(timers[0].key.id, execute_at=at(9_999))
        keep = CreateRequest(repeated, OnExisting.KEEP)
        replacing = CreateRequest(replacement, OnExisting.REPLACE)
        others = [CreateRequest(timer, OnExisting.KEEP) for timer in timers[1:]]
        both = [keep, replacing] if keep_first else [replacing, keep]
        first, second, *rest = await store.create([*both, *others])
        outcomes = [first.existence, second.existence]
        if keep_first:
            assert outcomes == [Existence.EXISTING, Existence.REPLACED]
            assert first.timer == repeated
        else:
            assert outcomes == [Existence.REPLACED, Existence.EXISTING]
            assert second.timer == first.timer
        assert await store.get(repeated.key) == second.timer
        assert second.timer.execute_at == at(9_999)
        assert rest == [CreateResult(Existence.EXISTING, timer) for timer in timers[1:]]

    async def test_changes_cancellations_and_removals_apply(self, store: Store) -> None:
        timers = many()
        await create(store, *timers)
        moved, canceled, removed = timers[:3]
        change = Change(updated_at=at(1), delivery_id="sooner", execute_at=at(5))
        result = await store.change_if_pending(moved.key, change)
        assert result is not None
        assert result.timer == transitions.changed(moved, change)
        assert (await store.cancel_if_pending(canceled.key, at(2))) is not None
        assert (await store.remove_if_pending(removed.key)) is not None
        assert await store.get(removed.key) is None
        assert (await stored(store, canceled.key)).status is TimerStatus.CANCELED
        leases = await own_shards(store)
        assert ids_of(await claim(store, leases, until_inclusive=at(5))) == [moved.key.id]
        rest = await claim(store, leases)
        assert ids_of(rest) == [timer.key.id for timer in in_due_order(timers[3:])]
        (again,) = await create(store, make_timer(removed.key.id))
        assert again.existence is Existence.CREATED

    async def test_claims_of_large_and_small_batches_come_in_order(self, store: Store) -> None:
        timers = many()
        await create(store, *timers[:300])
        for timer in timers[300:305]:
            await create(store, timer)
        await create(store, *timers[305:])
        leases = await own_shards(store)
        expected = in_due_order(timers)
        claimed: list[str] = []
        while len(claimed) < MANY:
            batch = await store.claim_due(
                leases, now=at(0), until_inclusive=expected[len(claimed)].due_at, limit=100
            )
            claimed += ids_of(batch.claims)
            left = expected[len(claimed) :]
            assert batch.next_due_at == (left[0].due_at if left else None)
            assert all(await store.settle([completion(each) for each in batch.claims]))
        assert claimed == [timer.key.id for timer in expected]

    async def test_the_next_due_instant_is_that_of_the_leased_shards(self, store: Store) -> None:
        timers = many()
        await create(store, *timers)
        for shards in ([1], [2, 3], range(16)):
            leases = await own_shards(store, shards)
            mine = in_due_order([timer for timer in timers if timer.shard in leases])
            batch = await store.claim_due(leases, now=at(0), until_inclusive=at(5), limit=10)
            assert batch.claims == []
            assert batch.next_due_at == mine[0].due_at
            await store.cancel_if_pending(mine[0].key, at(1))
            timers.remove(mine[0])
            batch = await store.claim_due(leases, now=at(0), until_inclusive=at(5), limit=10)
            assert batch.next_due_at == mine[1].due_at

    async def test_a_batch_may_have_timers_of_several_namespaces(self, store: Store) -> None:
        await store.add_namespace(Namespace("other", 16))
        mine, theirs = many(), many(namespace="other")
        mixed = [timer for pair in zip(mine, theirs, strict=True) for timer in pair]
        results = await create(store, *mixed)
        assert {result.existence for result in results} == {Existence.CREATED}
        for namespace, timers in (("default", mine), ("other", theirs)):
            assert (await store.counts(namespace))[TimerStatus.PENDING] == MANY
            scanned = await store.scan(ScanQuery(namespace=namespace, limit=MANY))
            assert scanned == in_due_order(timers)

    async def test_large_batches_survive(self, store: Store, reopen: Reopen) -> None:
        timers = many()
        await create(store, *timers)
        await store.remove_if_pending(timers[0].key)
        reopened = await reopen() if store.capabilities.durable else store
        left = in_due_order(timers[1:])
        assert await reopened.get(left[0].key) == left[0]
        assert await reopened.scan(ScanQuery(namespace="default", limit=MANY)) == left
        assert (await create(reopened, left[0]))[0].existence is Existence.EXISTING
        claims = await claim(reopened, await own_shards(reopened))
        assert ids_of(claims) == [timer.key.id for timer in left]
