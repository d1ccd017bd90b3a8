"""The hash and the order of timers are promises to every SDK and every stored timer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.keys import (
    NamespaceKeys,
    TimerKey,
    shard_of,
    stable_hash,
    timer_uuid_of,
)
from duetime.domain.limits import MAX_SHARDS

# The same numbers come from `printf %s "$id" | b2sum --length 64`. Never change them.
STABLE_HASHES = {
    "a": 0x40F89E395B66422F,
    "timer-1": 0xCDBB92AE57D2382F,
    "Timer-1": 0x70ABFCD7F4575FC2,
    "0190a5b0-7e1c-7cc3-98c4-dc0c0c07398f": 0x51556185D86B6C2F,
    "\u00e9": 0xCB1ABF8BEFF3192F,
    "e\u0301": 0x3A4748957B95906D,
    "\U0001f570": 0x5ED9C9F5C5CFA7FA,
    "x" * 255: 0x49636E0C296D4D82,
}

TIMER_UUIDS = {
    TimerKey("default", "a"): "5da3715a5e6f52954b30cebc7f370882",
    TimerKey("default", "timer-1"): "1a8139bd2d2359984cd42e75479e9176",
    TimerKey("default", "\U0001f570"): "71f821833379e3c21c4f1a16bc1cb5db",
}

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=255)


@pytest.mark.parametrize(("id", "expected"), STABLE_HASHES.items())
def test_stable_hash_never_changes(id: str, expected: int) -> None:
    assert stable_hash(id) == expected


@pytest.mark.parametrize(
    ("id", "num_shards", "shard"),
    [("a", 1, 0), ("a", 16, 15), ("a", 4096, 559), ("Timer-1", 16, 2), ("timer-1", 4096, 2095)],
)
def test_shards_never_change(id: str, num_shards: int, shard: int) -> None:
    assert shard_of(id, num_shards) == shard


@pytest.mark.parametrize(("key", "expected"), TIMER_UUIDS.items())
def test_timer_uuids_never_change(key: TimerKey, expected: str) -> None:
    assert timer_uuid_of(key).hex() == expected


@given(names, st.integers(1, MAX_SHARDS))
def test_every_id_has_a_shard(id: str, num_shards: int) -> None:
    assert 0 <= shard_of(id, num_shards) < num_shards


def test_shards_are_evenly_filled() -> None:
    filled = [0] * 16
    for n in range(16_000):
        filled[shard_of(f"timer-{n}", 16)] += 1
    assert all(850 < count < 1_150 for count in filled)


@given(st.builds(TimerKey, names, names), st.builds(TimerKey, names, names))
def test_different_timers_have_different_uuids(one: TimerKey, other: TimerKey) -> None:
    assert (timer_uuid_of(one) == timer_uuid_of(other)) == (one == other)


@given(names, st.lists(names, min_size=1), st.integers(1, MAX_SHARDS))
def test_keys_made_by_a_namespace_equal_keys_made_one_by_one(
    namespace: str, ids: list[str], num_shards: int
) -> None:
    keys = NamespaceKeys(namespace, num_shards)
    for id in ids:
        key, shard, timer_uuid = keys.place(id)
        assert isinstance(key, TimerKey)
        assert key == TimerKey(namespace, id)
        assert (shard, timer_uuid) == (shard_of(id, num_shards), timer_uuid_of(key))


def test_where_the_namespace_ends_matters() -> None:
    assert timer_uuid_of(TimerKey("ab", "c")) != timer_uuid_of(TimerKey("a", "bc"))
