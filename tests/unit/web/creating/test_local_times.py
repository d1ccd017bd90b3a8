"""Local times in the hours in which clocks change, and zones that nobody has."""

import pytest

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import format_instant
from duetime.web.pages.creating.instants import LocalTime


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2030-07-01T12:00", "UTC", "2030-07-01T12:00:00Z"),
        ("2030-07-01T12:00:05", "Europe/Berlin", "2030-07-01T10:00:05Z"),
        ("2030-07-01T12:00", "+05:30", "2030-07-01T06:30:00Z"),
        ("2030-07-01T12:00", "-0230", "2030-07-01T14:30:00Z"),
        ("2030-07-01T12:00+02:00", "America/New_York", "2030-07-01T10:00:00Z"),
    ],
)
def test_a_local_time_is_one_instant(text: str, zone: str, instant: str) -> None:
    first, second = LocalTime(text, zone).instants()
    assert format_instant(first) == instant
    assert second is None


def test_a_time_may_come_twice() -> None:
    first, second = LocalTime("2030-10-27T02:30", "Europe/Berlin").instants()
    assert second is not None
    assert [format_instant(first), format_instant(second)] == [
        "2030-10-27T00:30:00Z",
        "2030-10-27T01:30:00Z",
    ]


@pytest.mark.parametrize(
    ("text", "zone", "field"),
    [
        ("2030-03-31T02:30", "Europe/Berlin", "at"),
        ("", "UTC", "at"),
        ("tomorrow", "UTC", "at"),
        ("0001-01-01T00:00", "Asia/Tokyo", "at"),
        ("9999-12-31T23:59", "America/Los_Angeles", "at"),
        ("2030-01-01T00:00", "Mars/Base", "zone"),
        ("2030-01-01T00:00", "", "zone"),
        ("2030-01-01T00:00", "Europe", "zone"),
        ("2030-01-01T00:00", "../../etc/passwd", "zone"),
        ("2030-01-01T00:00", "a\0b", "zone"),
        ("2030-01-01T00:00", "x" * 5_000, "zone"),
        ("2030-01-01T00:00", "+99:99", "zone"),
    ],
)
def test_bad_input_names_its_field(text: str, zone: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        LocalTime(text, zone).instants()
    assert caught.value.field == field
