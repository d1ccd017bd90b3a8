"""Members: nodes join, beat, leave and are forgotten."""

from typing import Protocol

import pytest

from duetime.domain.keys import Epoch, ShardNumber
from duetime.ports.leases import ShardState
from duetime.ports.membership import MemberStore, NodeFacts
from duetime.testing.store_contract.steps import Store, at, own_shards


class SharedStore(Store, MemberStore, Protocol):
    """A store that the suite of shared stores can test."""


FACTS = NodeFacts(host="machine", pid=7, version="1.2.3", started_at=at(0))


async def beats_of(store: SharedStore) -> dict[str, int]:
    """The members and their beats; the observer is a member too and beats by looking."""
    view = await store.heartbeat("observer", NodeFacts(), join=True)
    return {member.node: member.beat for member in view.members if member.node != "observer"}


@pytest.mark.asyncio
class MembershipContract:
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
