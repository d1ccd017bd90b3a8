"""A filter for a member of the metadata means what a person who reads the metadata would expect."""

import pytest
from msgspec import Raw

from duetime.domain.bulk import TimerFilter
from duetime.testing import make_timer


def matches(metadata: str | None, key: str, value: str) -> bool:
    timer = make_timer("t", metadata=None if metadata is None else Raw(metadata.encode()))
    return TimerFilter(metadata_key=key, metadata_value=value).matches(timer)


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        ('{"a": "paid"}', "paid"),
        ('{"a": "paid"}', '"paid"'),
        ('{"a": "pa\\u0069d"}', "paid"),
        ('{"a": 7}', "7"),
        ('{"a": "7"}', "7"),
        ('{"a": true}', "true"),
        ('{"a": null}', "null"),
        ('{"a": ""}', ""),
        ('{"a": 12345678901234567890123}', "12345678901234567890123"),
        ('{"a": 0.12345678901234567890123}', "0.12345678901234567890123"),
        ('{"a": 1e999}', "1e999"),
        ('{"a": {"x": [1, 2], "y": null}}', '{"y":null,"x":[1,2]}'),
    ],
)
def test_member_matches(metadata: str, value: str) -> None:
    assert matches(metadata, "a", value)


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        (None, "paid"),
        ('{"b": "paid"}', "paid"),
        ('{"a": "unpaid"}', "paid"),
        ('{"a": "7"}', "8"),
        ('{"a": true}', "1"),
        ('{"a": 1}', "true"),
        ('{"a": 12345678901234567890123}', "12345678901234567890124"),
        ('{"a": 0.12345678901234567890123}', "0.12345678901234567890124"),
        ('{"a": [1, 2]}', "[2, 1]"),
        ('{"x": {"a": "paid"}}', "paid"),
        ('["a"]', "a"),
        ('"a"', "a"),
        ('{"a": 1}', "[" * 100_000),
        ("not JSON at all", "x"),
    ],
)
def test_member_does_not_match(metadata: str | None, value: str) -> None:
    assert not matches(metadata, "a", value)


def test_other_conditions_count_too() -> None:
    timer = make_timer("order-1", metadata=Raw(b'{"a": 1}'))
    matching = TimerFilter(id_prefix="order-", metadata_key="a", metadata_value="1")
    assert matching.matches(timer)
    assert not matching.matches(make_timer("other-1", metadata=Raw(b'{"a": 1}')))
    assert matching.reads_contents
    assert not matching.is_range
    assert not TimerFilter(id_prefix="order-").reads_contents
