"""Namespaces bring shards into being, and leases say which node owns each shard."""

import pytest

from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.lateness.objective import LatenessObjective
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.ports.leases import ShardState
from duetime.testing.store_contract.steps import Reopen, Store, claim, create, own_shards, stored
from duetime.testing.timers import make_timer

SHARD = ShardNumber(3)


async def state_of(store: Store, shard: ShardNumber) -> ShardState:
    return (await store.shards())[shard]


@pytest.mark.asyncio
class LeasingContract:
    async def test_ping_answers(self, store: Store) -> None:
        await store.ping()

    async def test_the_shards_of_a_namespace_start_free(self, store: Store) -> None:
        expected = [ShardState(ShardNumber(n), Epoch(0), None) for n in range(16)]
        assert list(await store.shards()) == expected

    async def test_adding_a_namespace_again_keeps_its_shards(self, store: Store) -> None:
        first = Namespace("orders", 32)
        assert await store.add_namespace(first) == first
        assert await store.add_namespace(first) == first
        assert await store.add_namespace(Namespace("orders", 64)) == first
        assert await store.add_namespace(Namespace("default", 1)) == Namespace("default", 16)
        assert len(await store.shards()) == 32

    async def test_shards_are_shared_and_grow_to_the_largest_namespace(self, store: Store) -> None:
        leases = await own_shards(store, [SHARD])
        await store.add_namespace(Namespace("small", 1))
        assert len(await store.shards()) == 16
        await store.add_namespace(Namespace("large", 4096))
        shards = await store.shards()
        assert [state.shard for state in shards] == list(range(4096))
        assert shards[SHARD] == ShardState(SHARD, leases[SHARD], "node-1")
        assert shards[4095] == ShardState(ShardNumber(4095), Epoch(0), None)

    async def test_a_claim_raises_the_epoch_and_names_the_owner(self, store: Store) -> None:
        assert await store.claim_shards({SHARD: Epoch(0)}, owner="node-1") == {SHARD: 1}
        assert await state_of(store, SHARD) == ShardState(SHARD, Epoch(1), "node-1")
        others = [state for state in await store.shards() if state.shard != SHARD]
        assert all(state.epoch == 0 and state.owner is None for state in others)

    async def test_only_one_of_several_nodes_that_saw_the_same_epoch_gets_the_shard(
        self, store: Store
    ) -> None:
        assert await store.claim_shards({SHARD: Epoch(0)}, owner="node-1") == {SHARD: 1}
        assert await store.claim_shards({SHARD: Epoch(0)}, owner="node-2") == {}
        assert await store.claim_shards({SHARD: Epoch(2)}, owner="node-2") == {}
        assert (await state_of(store, SHARD)).owner == "node-1"
        assert await store.claim_shards({SHARD: Epoch(1)}, owner="node-2") == {SHARD: 2}
        assert await state_of(store, SHARD) == ShardState(SHARD, Epoch(2), "node-2")

    async def test_only_shards_that_have_the_seen_epoch_are_claimed(self, store: Store) -> None:
        await store.add_namespace(Namespace("large", 300))
        await own_shards(store, range(0, 300, 3))
        seen = {ShardNumber(n): Epoch(0) for n in range(300)}
        taken = await store.claim_shards(seen, owner="node-2")
        assert taken == {shard: 1 for shard in seen if shard % 3}
        owners = [state.owner for state in await store.shards()]
        assert owners == ["node-2" if n % 3 else "node-1" for n in range(300)]
        assert await store.release_shards({**seen, **taken}) == taken.keys()
        owners = [state.owner for state in await store.shards()]
        assert owners == [None if n % 3 else "node-1" for n in range(300)]

    async def test_claiming_and_releasing_nothing_is_no_error(self, store: Store) -> None:
        assert await store.claim_shards({}, owner="node-1") == {}
        assert await store.release_shards({}) == set()

    async def test_the_owner_may_claim_its_shard_again(self, store: Store) -> None:
        assert await store.claim_shards({SHARD: Epoch(0)}, owner="node-1") == {SHARD: 1}
        assert await store.claim_shards({SHARD: Epoch(1)}, owner="node-1") == {SHARD: 2}

    async def test_a_release_frees_the_shard_and_keeps_its_epoch(self, store: Store) -> None:
        await own_shards(store, [SHARD])
        assert await store.release_shards({SHARD: Epoch(1)}) == {SHARD}
        assert await state_of(store, SHARD) == ShardState(SHARD, Epoch(1), None)
        assert await store.claim_shards({SHARD: Epoch(1)}, owner="node-2") == {SHARD: 2}

    async def test_a_former_owner_cannot_release(self, store: Store) -> None:
        await own_shards(store, [SHARD])
        await own_shards(store, [SHARD], owner="node-2")
        assert await store.release_shards({SHARD: Epoch(1)}) == set()
        assert await store.release_shards({SHARD: Epoch(3)}) == set()
        assert await state_of(store, SHARD) == ShardState(SHARD, Epoch(2), "node-2")

    async def test_the_timers_of_a_small_namespace_follow_the_shared_shards(
        self, store: Store
    ) -> None:
        await store.add_namespace(Namespace("small", 1))
        await create(store, *(make_timer(f"t{n}", namespace="small", num_shards=1) for n in (1, 2)))
        assert len(await claim(store, await own_shards(store, [0]))) == 2

    async def test_closing_twice_is_closing_once(self, store: Store, reopen: Reopen) -> None:
        await store.close()
        await store.close()
        await (await reopen()).ping()


DEFAULT = Namespace("default", 16)

EVERY_OPTION = NamespaceOptions(
    retry_policy=RetryPolicy(
        max_retries=7,
        max_duration_ms=31_536_000_000,
        initial_interval_ms=1,
        backoff_multiplier=1.1,
        max_interval_ms=86_400_000,
    ),
    retention_seconds=10**10,
    concurrency=3,
    max_payload_bytes=2**31,
    max_pending=10**9,
    callback_networks="public,10.0.0.0/8:443,*.example.com",
    slo=LatenessObjective(percent=99.95, within_ms=250, window_hours=720),
)
OPTIONS = [
    NamespaceOptions(),
    EVERY_OPTION,
    NamespaceOptions(retry_policy=RetryPolicy(max_retries=0, backoff_multiplier=1.0)),
    NamespaceOptions(retention_seconds=0),
    NamespaceOptions(concurrency=1),
    NamespaceOptions(max_payload_bytes=0),
    NamespaceOptions(max_pending=0),
]
NAMES = ["Zebra", "apple", "a-b", "a", "ab", "\u00e9", "e\u0301", "\uffee", "\U0001f570", "'", "a%"]
"""Their order by code point is neither that of a dictionary nor that of UTF-16."""


@pytest.mark.asyncio
class NamespacesContract:
    @pytest.mark.parametrize("options", OPTIONS)
    async def test_options_are_kept_as_they_were_given(
        self, store: Store, options: NamespaceOptions
    ) -> None:
        namespace = Namespace("orders", 8, options)
        assert await store.add_namespace(namespace) == namespace
        assert list(await store.namespaces()) == [DEFAULT, namespace]

    async def test_adding_an_existing_namespace_changes_nothing(self, store: Store) -> None:
        kept = Namespace("orders", 8, EVERY_OPTION)
        await store.add_namespace(kept)
        assert await store.add_namespace(Namespace("orders", 4)) == kept
        other = Namespace("orders", 8, NamespaceOptions(concurrency=9))
        assert await store.add_namespace(other) == kept
        assert list(await store.namespaces()) == [DEFAULT, kept]

    @pytest.mark.parametrize("options", OPTIONS)
    async def test_a_change_gives_other_options_and_keeps_the_shards(
        self, store: Store, options: NamespaceOptions
    ) -> None:
        await store.add_namespace(Namespace("orders", 8, EVERY_OPTION))
        changed = Namespace("orders", 8, options)
        assert await store.change_namespace("orders", options) == changed
        assert await store.add_namespace(Namespace("orders", 2)) == changed
        assert list(await store.namespaces()) == [DEFAULT, changed]

    async def test_an_unknown_namespace_is_not_changed(self, store: Store) -> None:
        assert await store.change_namespace("nowhere", EVERY_OPTION) is None
        assert await store.change_namespace("Default", EVERY_OPTION) is None
        assert list(await store.namespaces()) == [DEFAULT]

    async def test_namespaces_come_in_the_order_of_their_names(self, store: Store) -> None:
        for name in NAMES:
            await store.add_namespace(Namespace(name, 1))
        names = [namespace.name for namespace in await store.namespaces()]
        assert names == sorted([*NAMES, "default"])

    async def test_namespaces_are_found_by_their_names(self, store: Store) -> None:
        for name in NAMES:
            await store.add_namespace(Namespace(name, 1))
        found = await store.find_namespaces(["a", "default", "A", "nul\0", "\u00e9"])
        assert sorted(each.name for each in found) == ["a", "default", "\u00e9"]
        assert list(await store.find_namespaces([])) == []

    async def test_no_change_of_a_namespace_is_missed(self, store: Store) -> None:
        first = await store.namespaces_changed(None)
        assert (list(first.namespaces), first.are_all) == ([DEFAULT], True)
        orders = await store.add_namespace(Namespace("orders", 8))
        second = await store.namespaces_changed(first.mark)
        assert orders in second.namespaces
        changed = await store.change_namespace("default", EVERY_OPTION)
        third = await store.namespaces_changed(second.mark)
        assert changed in third.namespaces
        assert DEFAULT not in third.namespaces

    async def test_a_change_leaves_timers_alone(self, store: Store) -> None:
        timer = make_timer(retry_policy=RetryPolicy(max_retries=1))
        await create(store, timer)
        await store.change_namespace("default", EVERY_OPTION)
        assert await stored(store, timer.key) == timer
        (claimed,) = await claim(store, await own_shards(store))
        assert claimed.retry_policy == timer.retry_policy

    async def test_options_survive(self, store: Store, reopen: Reopen) -> None:
        await store.add_namespace(Namespace("orders", 8, EVERY_OPTION))
        await store.change_namespace("default", NamespaceOptions(concurrency=2))
        before = list(await store.namespaces())
        reopened = await reopen() if store.capabilities.durable else store
        assert list(await reopened.namespaces()) == before
        assert before == [
            Namespace("default", 16, NamespaceOptions(concurrency=2)),
            Namespace("orders", 8, EVERY_OPTION),
        ]
