"""Namespaces bring shards into being; leases say who owns them."""

import pytest

from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.namespace import Namespace
from duetime.ports.leases import ShardState
from duetime.testing.store_contract.steps import Reopen, Store, claim, create, own_shards
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

    async def test_only_one_of_those_who_saw_the_same_epoch_gets_the_shard(
        self, store: Store
    ) -> None:
        assert await store.claim_shards({SHARD: Epoch(0)}, owner="node-1") == {SHARD: 1}
        assert await store.claim_shards({SHARD: Epoch(0)}, owner="node-2") == {}
        assert await store.claim_shards({SHARD: Epoch(2)}, owner="node-2") == {}
        assert (await state_of(store, SHARD)).owner == "node-1"
        assert await store.claim_shards({SHARD: Epoch(1)}, owner="node-2") == {SHARD: 2}
        assert await state_of(store, SHARD) == ShardState(SHARD, Epoch(2), "node-2")

    async def test_many_shards_are_claimed_at_once_as_far_as_they_are_as_seen(
        self, store: Store
    ) -> None:
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

    async def test_the_owner_itself_may_claim_anew(self, store: Store) -> None:
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
