"""Shards are assigned evenly and stay where they are, and all nodes agree on the assignment."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.keys import ShardNumber
from duetime.engine.cluster.shard_assignment import assign_shards

SHARDS = [ShardNumber(number) for number in range(256)]
NODES = [f"node-{number}.example:{4_000 + number}" for number in range(12)]

shard_counts = st.integers(0, 200)
node_names = st.sets(st.text(max_size=20), min_size=1, max_size=12)


def first(count: int) -> list[ShardNumber]:
    return [ShardNumber(number) for number in range(count)]


def shares(owners: dict[ShardNumber, str], nodes: list[str]) -> list[int]:
    owned = Counter(owners.values())
    return [owned[node] for node in nodes]


@given(shard_counts, node_names)
def test_every_shard_has_an_owner_and_shares_are_even(count: int, names: set[str]) -> None:
    nodes = sorted(names)
    owners = assign_shards(first(count), nodes)
    assert list(owners) == first(count)
    assert max(shares(owners, nodes)) <= -(-count // len(nodes))
    assert min(shares(owners, nodes)) >= count // len(nodes)


@given(shard_counts, node_names, st.randoms())
def test_the_order_in_which_nodes_and_shards_are_known_does_not_matter(
    count: int, names: set[str], random: Random
) -> None:
    shards, nodes = first(count), sorted(names)
    expected = assign_shards(shards, nodes)
    random.shuffle(shards)
    random.shuffle(nodes)
    assert assign_shards(shards, nodes) == expected


def test_without_nodes_no_shard_has_an_owner() -> None:
    assert assign_shards(SHARDS, []) == {}


def test_the_spread_is_the_same_in_every_release() -> None:
    # Nodes of two releases share a store while it is upgraded, and must agree.
    owners = assign_shards(first(16), ["a", "b", "c"])
    assert "".join(owners.values()) == "bbbbbabacaccaacc"


@pytest.mark.parametrize("before", range(1, 11))
def test_few_shards_move_when_a_node_joins_or_leaves(before: int) -> None:
    old, new = assign_shards(SHARDS, NODES[:before]), assign_shards(SHARDS, NODES[: before + 1])
    moved = sum(old[shard] != new[shard] for shard in SHARDS)
    needed = len(SHARDS) // (before + 1)
    assert moved <= 2 * needed


def test_few_shards_move_when_a_node_takes_the_place_of_another() -> None:
    old = assign_shards(SHARDS, NODES[:4])
    new = assign_shards(SHARDS, [*NODES[:3], NODES[11]])
    # A quarter has to.
    assert sum(old[shard] != new[shard] for shard in SHARDS) <= len(SHARDS) // 2
