"""Instants and durations as people write them."""

import pytest

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Delay, parse_instant
from duetime.web.forms.due import read_due, read_duration_ms


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("in 15 min", 15),
        ("15m", 15),
        ("In 1h30m", 90),
        ("1 hour and 30 minutes", 90),
        ("2 days, 3 hours", 51 * 60),
        (" 1.5 h ", 90),
    ],
)
def test_durations_count_from_now(text: str, minutes: int) -> None:
    assert read_due("execute_at", text) == Delay(minutes * 60_000)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2030-01-31T12:00:00Z", "2030-01-31T12:00:00Z"),
        ("2030-01-31T12:00:00.123456+02:00", "2030-01-31T10:00:00.123456Z"),
        ("2030-07-31 12:00 Europe/Berlin", "2030-07-31T10:00:00Z"),
        ("2030-01-31 12:00 UTC", "2030-01-31T12:00:00Z"),
    ],
)
def test_instants_have_an_offset_or_a_zone(text: str, instant: str) -> None:
    assert read_due("execute_at", text) == parse_instant(instant)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2030-01-31T12:00", "must have a zone"),
        ("2030-03-31 02:30 Europe/Berlin", "does not exist in that zone"),
        ("2030-01-31 12:00 Mars/Olympus", "does not know: Mars/Olympus"),
        ("2030-01-31 12:00 Europe", "does not know: Europe"),
        ("0001-01-01 00:00 Asia/Tokyo", "must be an instant"),
        ("tomorrow", "must be an instant"),
        ("in", "must be an instant"),
        ("5", "must be an instant"),
        ("5 parsecs", "must be an instant"),
        ("1m" * 100, "must be an instant"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_due("execute_at", text)
    assert refused.value.field == "execute_at"
    assert problem in refused.value.problem


def test_a_move_may_go_back() -> None:
    assert read_duration_ms("move_by", "-15 min") == -900_000
    assert read_duration_ms("move_by", "+ 1h") == 3_600_000


@pytest.mark.parametrize("text", ["", "-", "soon", "--", "1e9 h"])
def test_a_move_needs_a_duration(text: str) -> None:
    with pytest.raises(InvalidInput, match="move_by must be a duration"):
        read_duration_ms("move_by", text)
