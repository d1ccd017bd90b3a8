"""Creating timers: new keys, existing keys, batches."""

import pytest

from duetime.domain.callback import HttpCallback
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting
from duetime.testing.store_contract.steps import (
    Store,
    at,
    brought_to,
    claim,
    create,
    ids_of,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer

ODD_IDS = [
    "a",
    "A",
    " a",
    "a ",
    "o'clock",
    'double "quotes"',
    "back\\slash",
    "semi;colon -- comment /* */",
    "100% _under_ *star* ?mark",
    "$1 :name @name {brace} %s",
    "/slashes/../and/dots/.",
    "line\nbreak\ttab\r",
    "\x01control\x7f",
    "null",
    "0",
    "00",
    "1e3",
    "\u00e9",
    "e\u0301",
    "\u6642\u9593",
    "\u05e2\u05ea \u202eright to left",
    "\U0001f9d1\u200d\U0001f680 emoji",
    "\u2028line separator",
    "\ufeffbyte order mark",
    "x" * 255,
    "\U0001f570" * 255,
]

NOT_REPLACEABLE = [status for status in TimerStatus if status is not TimerStatus.PENDING]


@pytest.mark.asyncio
class CreatingContract:
    async def test_a_new_timer_is_created_and_can_be_read(self, store: Store) -> None:
        timer = make_timer("new", execute_at=at(5))
        assert await create(store, timer) == [CreateResult(Existence.CREATED, timer)]
        assert await store.get(timer.key) == timer

    async def test_an_unknown_timer_is_absent(self, store: Store) -> None:
        await create(store, make_timer("here"))
        assert await store.get(TimerKey("default", "elsewhere")) is None
        assert await store.get(TimerKey("elsewhere", "here")) is None

    async def test_an_empty_batch_creates_nothing(self, store: Store) -> None:
        assert await store.create([]) == []

    @pytest.mark.parametrize("status", list(TimerStatus))
    async def test_keep_leaves_an_existing_timer_alone(
        self, store: Store, status: TimerStatus
    ) -> None:
        leases = await own_shards(store)
        existing = await brought_to(store, leases, make_timer("same"), status)
        newcomer = make_timer("same", execute_at=at(50), delivery_id="newcomer")
        assert await create(store, newcomer) == [CreateResult(Existence.EXISTING, existing)]
        assert await store.get(existing.key) == existing

    @pytest.mark.parametrize("status", NOT_REPLACEABLE)
    async def test_replace_leaves_a_timer_that_is_not_pending_alone(
        self, store: Store, status: TimerStatus
    ) -> None:
        leases = await own_shards(store)
        existing = await brought_to(store, leases, make_timer("same"), status)
        newcomer = make_timer("same", execute_at=at(50), delivery_id="newcomer")
        results = await create(store, newcomer, on_existing=OnExisting.REPLACE)
        assert results == [CreateResult(Existence.EXISTING, existing)]
        assert await store.get(existing.key) == existing

    async def test_replace_replaces_all_of_a_pending_timer_but_its_creation(
        self, store: Store
    ) -> None:
        old = make_timer("same", execute_at=at(10), created_at=at(1), correlation_id="old")
        new = make_timer(
            "same",
            execute_at=at(20),
            created_at=at(2),
            delivery_id="second",
            callback=HttpCallback(url="https://example.com/second"),
        )
        await create(store, old)
        (result,) = await create(store, new, on_existing=OnExisting.REPLACE)
        assert result.existence is Existence.REPLACED
        assert result.timer.created_at == at(1)
        assert result.timer.updated_at == at(2)
        assert result.timer.execute_at == result.timer.due_at == at(20)
        assert result.timer.delivery_id == "second"
        assert result.timer.callback == new.callback
        assert result.timer.correlation_id is None
        assert await store.get(old.key) == result.timer

    async def test_a_replaced_timer_is_due_at_its_new_instant_only(self, store: Store) -> None:
        leases = await own_shards(store)
        await create(store, make_timer("sooner", execute_at=at(50)))
        await create(store, make_timer("later", execute_at=at(10)))
        await create(
            store,
            make_timer("sooner", execute_at=at(20)),
            make_timer("later", execute_at=at(60)),
            on_existing=OnExisting.REPLACE,
        )
        assert ids_of(await claim(store, leases, until_inclusive=at(30))) == ["sooner"]
        assert ids_of(await claim(store, leases, until_inclusive=at(60))) == ["later"]

    async def test_replace_creates_a_timer_that_does_not_exist(self, store: Store) -> None:
        timer = make_timer("new")
        results = await create(store, timer, on_existing=OnExisting.REPLACE)
        assert results == [CreateResult(Existence.CREATED, timer)]

    async def test_requests_for_one_key_in_one_batch_take_effect_one_after_the_other(
        self, store: Store
    ) -> None:
        first = make_timer("same", execute_at=at(1), created_at=at(0), delivery_id="first")
        second = make_timer("same", execute_at=at(2), created_at=at(5), delivery_id="second")
        third = make_timer("same", execute_at=at(3), created_at=at(6), delivery_id="third")
        kept, existing, replaced, after = await store.create(
            [
                CreateRequest(first, OnExisting.KEEP),
                CreateRequest(second, OnExisting.KEEP),
                CreateRequest(third, OnExisting.REPLACE),
                CreateRequest(second, OnExisting.KEEP),
            ]
        )
        assert kept == CreateResult(Existence.CREATED, first)
        assert existing == CreateResult(Existence.EXISTING, first)
        assert replaced.existence is Existence.REPLACED
        assert (replaced.timer.delivery_id, replaced.timer.created_at) == ("third", at(0))
        assert after == CreateResult(Existence.EXISTING, replaced.timer)
        assert await store.get(first.key) == replaced.timer
        leases = await own_shards(store)
        assert ids_of(await claim(store, leases)) == ["same"]

    async def test_results_come_in_the_order_of_the_requests(self, store: Store) -> None:
        leases = await own_shards(store)
        finished = await brought_to(store, leases, make_timer("finished"), TimerStatus.COMPLETED)
        pending = make_timer("pending", execute_at=at(9))
        await create(store, pending)
        new, other = make_timer("z-new", execute_at=at(9)), make_timer("a-new")
        results = await create(store, new, pending, other, finished)
        assert results == [
            CreateResult(Existence.CREATED, new),
            CreateResult(Existence.EXISTING, pending),
            CreateResult(Existence.CREATED, other),
            CreateResult(Existence.EXISTING, finished),
        ]

    async def test_a_big_batch_is_created_whole_and_in_order(self, store: Store) -> None:
        timers = [make_timer(f"timer-{n}", execute_at=at(n % 7)) for n in range(1_500)]
        results = await create(store, *timers)
        assert results == [CreateResult(Existence.CREATED, timer) for timer in timers]
        again = await create(store, *reversed(timers))
        assert again == [CreateResult(Existence.EXISTING, timer) for timer in reversed(timers)]
        assert (await store.counts())[TimerStatus.PENDING] == 1_500

    @pytest.mark.parametrize("size", [63, 64, 65, 500, 1_000])
    async def test_a_batch_of_any_size_finds_existing_timers(self, store: Store, size: int) -> None:
        """Every seventh timer exists, and every eleventh comes twice in the batch."""
        timers = [make_timer(f"t{n}", execute_at=at(n * 7 % 5)) for n in range(size)]
        await create(store, *timers[::7])
        batch = [*timers, *timers[::11]]
        results = await create(store, *batch)
        met = {timer.key for timer in timers[::7]}
        expected = []
        for timer in batch:
            existence = Existence.EXISTING if timer.key in met else Existence.CREATED
            expected.append(CreateResult(existence, timer))
            met.add(timer.key)
        assert results == expected
        assert (await store.counts())[TimerStatus.PENDING] == size
        claims = await claim(store, await own_shards(store))
        assert len(set(ids_of(claims))) == len(claims) == size

    async def test_a_big_batch_replaces_keeps_and_creates(self, store: Store) -> None:
        before = [make_timer(f"t{n}", execute_at=at(n), created_at=at(-1)) for n in range(300)]
        await create(store, *before)
        canceled = before[7]
        await store.cancel_if_pending(canceled.key, at(1))
        after = [make_timer(f"t{n}", execute_at=at(-n), delivery_id=f"d{n}") for n in range(600)]
        results = await store.create(
            [
                CreateRequest(timer, OnExisting.KEEP if n % 3 else OnExisting.REPLACE)
                for n, timer in enumerate(after)
            ]
        )
        existences = [result.existence for result in results]
        assert existences.count(Existence.CREATED) == 300
        assert existences.count(Existence.REPLACED) == 100
        assert existences.count(Existence.EXISTING) == 200
        assert [await store.get(timer.key) for timer in after] == [
            result.timer for result in results
        ]
        assert (await store.counts())[TimerStatus.PENDING] == 599

    async def test_the_same_id_in_two_namespaces_is_two_timers(self, store: Store) -> None:
        await store.add_namespace(Namespace("other", 16))
        mine = make_timer("same", execute_at=at(1))
        theirs = make_timer("same", namespace="other", execute_at=at(2))
        results = await create(store, mine, theirs)
        assert [result.existence for result in results] == [Existence.CREATED] * 2
        assert await store.get(mine.key) == mine
        assert await store.get(theirs.key) == theirs

    async def test_ids_are_compared_exactly_whatever_they_are_made_of(self, store: Store) -> None:
        timers = [
            make_timer(odd, execute_at=at(n), delivery_id=f"d{n}") for n, odd in enumerate(ODD_IDS)
        ]
        results = await create(store, *timers)
        assert [result.existence for result in results] == [Existence.CREATED] * len(ODD_IDS)
        for timer in timers:
            assert await stored(store, timer.key) == timer
        leases = await own_shards(store)
        assert ids_of(await claim(store, leases)) == ODD_IDS

    async def test_namespaces_are_compared_exactly_whatever_they_are_made_of(
        self, store: Store
    ) -> None:
        timers = []
        for n, odd in enumerate(ODD_IDS):
            assert await store.add_namespace(Namespace(odd, 16)) == Namespace(odd, 16)
            timers.append(make_timer("same", namespace=odd, execute_at=at(n)))
        await create(store, *timers)
        for timer in timers:
            assert await stored(store, timer.key) == timer
            assert (await store.counts(timer.key.namespace))[TimerStatus.PENDING] == 1
