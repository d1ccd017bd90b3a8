"""The fast measurement of JSON depth agrees with parsing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.json_depth import is_deeper_than

JSON = st.recursive(
    st.none() | st.booleans() | st.text(alphabet='[]{}"\\a, ') | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[]{}"\\a'), inner),
)


def depth_of(value: object) -> int:
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 0


@given(st.lists(JSON, min_size=1), st.integers(0, 9))
def test_the_depth_agrees_with_parsing(values: list[object], limit: int) -> None:
    text = b"\n".join(json.dumps(value, ensure_ascii=False).encode() for value in values)
    assert is_deeper_than(text, limit) == (max(map(depth_of, values)) > limit)


@pytest.mark.parametrize("depth", [64, 65, 900])
def test_brackets_in_strings_do_not_count(depth: int) -> None:
    text = b'["]",' * depth + b"1" + b',"["]' * depth
    assert is_deeper_than(text, 64) is (depth > 64)


@given(st.lists(st.integers(1, 40), min_size=1), st.integers(0, 40))
def test_deep_neighbours_agree_with_parsing(depths: list[int], limit: int) -> None:
    text = b",".join(b'[{"a]":' * depth + b"0" + b"}]" * depth for depth in depths)
    assert is_deeper_than(text, limit) == (2 * max(depths) > limit)
