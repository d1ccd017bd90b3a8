"""Instants and durations as people write them."""

import pytest

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Delay, Instant, parse_instant
from duetime.web.forms.due import read_due, read_duration_ms, read_instant, read_span_ms

NOW = parse_instant("2030-01-01T00:00:00Z")


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
    assert read_due("execute_at", text, NOW) == Delay(minutes * 60_000)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2030-01-31T12:00:00Z", "2030-01-31T12:00:00Z"),
        ("2030-01-31T12:00:00.123456+02:00", "2030-01-31T10:00:00.123456Z"),
        ("2030-07-31 12:00 Europe/Berlin", "2030-07-31T10:00:00Z"),
        ("2030-01-31 12:00 UTC", "2030-01-31T12:00:00Z"),
        ("2030-01-31T12:00:00 02:00", "2030-01-31T10:00:00Z"),
        ("2030-01-31", "2030-01-30T23:00:00Z"),
        ("2030-01-31T12:00", "2030-01-31T11:00:00Z"),
        ("2030-07-31 12:00:30", "2030-07-31T10:00:30Z"),
        ("now", "2030-01-01T00:00:00Z"),
        ("now-1h", "2029-12-31T23:00:00Z"),
        ("now + 1 h 30 min", "2030-01-01T01:30:00Z"),
        ("now 1h", "2030-01-01T01:00:00Z"),
        ("24 h ago", "2029-12-31T00:00:00Z"),
        ("1h30m ago", "2029-12-31T22:30:00Z"),
    ],
)
def test_every_form_of_an_instant_is_read(text: str, instant: str) -> None:
    """A time without a zone is one of the browser's zone."""
    assert read_due("execute_at", text, NOW, "Europe/Berlin") == parse_instant(instant)
    assert read_instant("due_from", text, NOW, "Europe/Berlin") == parse_instant(instant)


def test_a_time_without_any_zone_is_in_utc() -> None:
    assert read_due("execute_at", "2030-01-31T12:00", NOW) == parse_instant("2030-01-31T12:00:00Z")


def test_a_duration_counts_forwards_or_back() -> None:
    hour = parse_instant("2030-01-01T01:00:00Z")
    assert read_instant("due_from", "1 h", NOW) == hour
    assert read_instant("from", "in 1 h", NOW, is_past=True) == hour
    assert read_instant("from", "1 h", NOW, is_past=True) == parse_instant("2029-12-31T23:00:00Z")
    with pytest.raises(InvalidInput, match="due_from is too far away"):
        read_instant("due_from", "in 999999999999 weeks", NOW)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2030-03-31 02:30 Europe/Berlin", "does not exist in that zone"),
        ("2030-01-31 12:00 Mars/Olympus", "does not know: Mars/Olympus"),
        ("2030-01-31 12:00 Europe", "does not know: Europe"),
        ("0001-01-01 00:00 Asia/Tokyo", "must be an instant"),
        ("tomorrow", "must be an instant"),
        ("in", "must be an instant"),
        ("ago", "must be an instant"),
        ("now-", "must be an instant"),
        ("nowhere", "must be an instant"),
        ("5", "must be an instant"),
        ("5 parsecs", "must be an instant"),
        ("1m" * 100, "must be an instant"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_due("execute_at", text, NOW)
    assert refused.value.field == "execute_at"
    assert problem in refused.value.problem


def test_a_move_may_go_back() -> None:
    assert read_duration_ms("move_by", "-15 min") == -900_000
    assert read_duration_ms("move_by", "+ 1h") == 3_600_000


def test_other_durations_are_not_negative() -> None:
    assert read_span_ms("retention", "1 h 30 min") == 5_400_000
    with pytest.raises(InvalidInput, match="retention must not be negative"):
        read_span_ms("retention", "-1 h")


@pytest.mark.parametrize("text", ["", "-", "soon", "--", "1e9 h"])
def test_a_move_needs_a_duration(text: str) -> None:
    with pytest.raises(InvalidInput, match="move_by must be a duration"):
        read_duration_ms("move_by", text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_an_offset_cannot_lead_beyond_the_calendar(text: str) -> None:
    with pytest.raises(InvalidInput, match="must be an instant"):
        read_due("due_from", text, Instant(0))
