"""Members: nodes join, beat, leave, are forgotten, and hand over shards."""

from typing import Protocol

import pytest

from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.lateness.recent_slots import SlotFigures
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.endpoints import HeldTimers
from duetime.ports.leases import ShardState
from duetime.ports.membership import LostMember, MemberStore, NodeFacts, UnfinishedLease
from duetime.ports.store import Leases
from duetime.testing.store_contract.steps import (
    Store,
    at,
    claim,
    completion,
    create,
    hand_back,
    own_shards,
    stored,
)
from duetime.testing.timers import make_timer


class SharedStore(Store, MemberStore, Protocol):
    """A store that the suite of shared stores can test."""


TIMER = make_timer(execute_at=at(5))
SHARD = TIMER.shard

FACTS = NodeFacts(
    host="machine",
    pid=7,
    version="1.2.3",
    started_at=at(0),
    slots=(SlotFigures(number=1, attempts=3, completed=2, p50_ms=0.5, p99_ms=7.25),),
    held=(HeldTimers(endpoint="https://a.example", namespace="n", timers=9, since=at(1)),),
    put_off={"https://b.example": 7},
    lost=(LostMember("machine:6", at(2)),),
)


async def beats_of(store: SharedStore) -> dict[str, int]:
    """The members and their beats; the observer is a member too and beats by looking."""
    view = await store.heartbeat("observer", NodeFacts(), join=True)
    return {member.node: member.beat for member in view.members if member.node != "observer"}


async def unfinished(store: SharedStore) -> list[UnfinishedLease]:
    return list((await store.heartbeat("observer", NodeFacts(), join=True)).unfinished)


async def handed_over(store: SharedStore) -> tuple[Claim, Leases]:
    """A claim of node-1, and the leases of node-2, which has taken the claim's shard since."""
    await create(store, TIMER)
    for node in ("node-1", "node-2"):
        await store.heartbeat(node, NodeFacts(), join=True)
    leases = await own_shards(store, [SHARD])
    (claimed,) = await claim(store, leases)
    assert await store.hand_over("node-1", leases) == {SHARD}
    return claimed, await own_shards(store, [SHARD], owner="node-2")


@pytest.mark.asyncio
class HandingOverContract:
    """A former owner finishes its attempts while the shard has a new owner."""

    async def test_a_shard_that_is_handed_over_is_free(self, shared_store: SharedStore) -> None:
        await shared_store.heartbeat("node-1", NodeFacts(), join=True)
        leases = await own_shards(shared_store, [3, 4])
        stale = {ShardNumber(3): leases[ShardNumber(3)], ShardNumber(4): Epoch(7)}
        assert await shared_store.hand_over("node-1", stale) == {3}
        states = await shared_store.shards()
        assert (states[3].owner, states[3].epoch) == (None, leases[ShardNumber(3)])
        assert states[4].owner == "node-1"
        assert await unfinished(shared_store) == [
            UnfinishedLease(ShardNumber(3), leases[ShardNumber(3)], "node-1")
        ]

    async def test_a_node_that_is_no_member_hands_nothing_over(
        self, shared_store: SharedStore
    ) -> None:
        leases = await own_shards(shared_store, [3])
        assert await shared_store.hand_over("node-1", leases) == set()
        assert (await shared_store.shards())[3].owner == "node-1"
        assert await unfinished(shared_store) == []

    async def test_the_former_owner_settles_and_the_new_one_does_not_recover(
        self, shared_store: SharedStore
    ) -> None:
        claimed, leases = await handed_over(shared_store)
        assert await shared_store.recover(leases) == []
        assert await claim(shared_store, leases) == []
        assert await shared_store.settle([completion(claimed)]) == [True]
        assert (await stored(shared_store, TIMER.key)).status is TimerStatus.COMPLETED

    async def test_a_timer_that_the_former_owner_hands_back_is_claimed_by_the_new_one(
        self, shared_store: SharedStore
    ) -> None:
        claimed, leases = await handed_over(shared_store)
        assert await shared_store.settle([hand_back(claimed)]) == [True]
        (again,) = await claim(shared_store, leases)
        assert (again.attempt, again.epoch) == (1, leases[SHARD])
        assert await shared_store.settle([completion(claimed)]) == [False]
        assert await shared_store.settle([completion(again)]) == [True]

    async def test_settlements_of_former_and_present_owners_apply_in_one_batch(
        self, shared_store: SharedStore
    ) -> None:
        claimed, _ = await handed_over(shared_store)
        other = make_timer("other", execute_at=at(5), num_shards=1)
        assert other.shard == 0
        mine = await own_shards(shared_store, [0], owner="node-1")
        await create(shared_store, other)
        (present,) = await claim(shared_store, mine)
        stale = completion(present)
        batch = [completion(claimed), stale, completion(claimed)]
        assert await shared_store.settle(batch) == [True, True, False]

    async def test_the_former_owner_claims_nothing(self, shared_store: SharedStore) -> None:
        claimed, _ = await handed_over(shared_store)
        await create(shared_store, make_timer(f"{TIMER.key.id}-2", num_shards=1))
        assert await claim(shared_store, {SHARD: claimed.epoch}) == []
        assert await shared_store.hand_over("node-1", {SHARD: claimed.epoch}) == set()

    @pytest.mark.parametrize("end", ["finish", "leave", "forget"])
    async def test_once_the_lease_has_ended_what_is_left_is_recovered(
        self, shared_store: SharedStore, end: str
    ) -> None:
        claimed, leases = await handed_over(shared_store)
        if end == "finish":
            await shared_store.finish("node-2", [(SHARD, claimed.epoch)])
            assert len(await unfinished(shared_store)) == 1, "only the node itself finishes"
            await shared_store.finish("node-1", [(SHARD, claimed.epoch), (SHARD, Epoch(99))])
        elif end == "leave":
            await shared_store.leave("node-1")
        else:
            assert await shared_store.forget_member("node-1", seen_beat=1)
        assert await unfinished(shared_store) == []
        assert await shared_store.settle([completion(claimed)]) == [False]
        assert list(await shared_store.recover(leases)) == [at(5)]
        (again,) = await claim(shared_store, leases)
        assert again.attempt == 2

    async def test_a_node_that_beats_keeps_its_unfinished_leases(
        self, shared_store: SharedStore
    ) -> None:
        claimed, leases = await handed_over(shared_store)
        await shared_store.heartbeat("node-1", NodeFacts(), join=False)
        assert not await shared_store.forget_member("node-1", seen_beat=1)
        await shared_store.leave("node-2")
        assert await unfinished(shared_store) == [UnfinishedLease(SHARD, claimed.epoch, "node-1")]
        assert await shared_store.recover(leases) == []

    async def test_a_shard_may_be_unfinished_under_several_epochs(
        self, shared_store: SharedStore
    ) -> None:
        first, leases = await handed_over(shared_store)
        assert await shared_store.hand_over("node-2", leases) == {SHARD}
        latest = await own_shards(shared_store, [SHARD], owner="node-1")
        assert await shared_store.recover(latest) == []
        assert await unfinished(shared_store) == [
            UnfinishedLease(SHARD, first.epoch, "node-1"),
            UnfinishedLease(SHARD, leases[SHARD], "node-2"),
        ]
        assert await shared_store.settle([completion(first)]) == [True]


@pytest.mark.asyncio
class MembershipContract(HandingOverContract):
    """Inherit from it beside `StoreContract` for a store that several nodes can share. The
    fixture `shared_store` is opened and empty but for the namespace "default" of 16 shards."""

    async def test_the_first_beat_joins_and_every_beat_counts(
        self, shared_store: SharedStore
    ) -> None:
        view = await shared_store.heartbeat("node-1", FACTS, join=True)
        (member,) = view.members
        assert (member.node, member.beat, member.facts) == ("node-1", 1, FACTS)
        await shared_store.heartbeat("node-1", FACTS, join=True)
        assert await beats_of(shared_store) == {"node-1": 2}

    async def test_the_view_has_all_members_in_the_order_of_their_names(
        self, shared_store: SharedStore
    ) -> None:
        for node in ("node-2", "node-10"):
            await shared_store.heartbeat(node, FACTS, join=True)
        view = await shared_store.heartbeat("node-1", FACTS, join=True)
        assert [member.node for member in view.members] == ["node-1", "node-10", "node-2"]

    async def test_the_view_has_all_shards_as_they_are(self, shared_store: SharedStore) -> None:
        await own_shards(shared_store, [3])
        view = await shared_store.heartbeat("node-1", FACTS, join=True)
        assert list(view.shards) == list(await shared_store.shards())
        assert view.shards[3] == ShardState(ShardNumber(3), Epoch(1), "node-1")

    async def test_the_latest_facts_count(self, shared_store: SharedStore) -> None:
        await shared_store.heartbeat("node-1", FACTS, join=True)
        changed = NodeFacts(
            host="ma\u00dfstab \U0001f600", in_flight=3, lateness_ms=1.5, clock_offset_ms=-0.25
        )
        view = await shared_store.heartbeat("node-1", changed, join=True)
        assert view.members[0].facts == changed

    async def test_a_node_that_leaves_is_gone_and_may_come_back(
        self, shared_store: SharedStore
    ) -> None:
        await shared_store.heartbeat("node-1", FACTS, join=True)
        await shared_store.leave("node-1")
        await shared_store.leave("node-1")
        assert await beats_of(shared_store) == {}
        await shared_store.heartbeat("node-1", FACTS, join=True)
        assert "node-1" in await beats_of(shared_store)

    async def test_a_forgotten_node_learns_it_from_the_view(
        self, shared_store: SharedStore
    ) -> None:
        view = await shared_store.heartbeat("node-1", FACTS, join=False)
        assert list(view.members) == []
        assert len(view.shards) == 16
        await shared_store.heartbeat("node-1", FACTS, join=True)
        view = await shared_store.heartbeat("node-1", FACTS, join=False)
        assert [(member.node, member.beat) for member in view.members] == [("node-1", 2)]

    async def test_only_a_member_without_a_new_beat_is_forgotten(
        self, shared_store: SharedStore
    ) -> None:
        await shared_store.heartbeat("node-1", FACTS, join=True)
        await shared_store.heartbeat("node-1", FACTS, join=True)
        assert await shared_store.forget_member("node-1", seen_beat=1) is False
        assert await beats_of(shared_store) == {"node-1": 2}
        assert await shared_store.forget_member("node-1", seen_beat=2) is True
        assert await shared_store.forget_member("node-1", seen_beat=2) is False
        assert await beats_of(shared_store) == {}
