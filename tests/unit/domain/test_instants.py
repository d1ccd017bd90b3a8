from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.instants import (
    Instant,
    datetime_of,
    format_duration,
    format_instant,
    instant_of,
    parse_duration_ms,
    parse_instant,
    plus_ms,
)

FIRST = instant_of(datetime(1, 1, 2, tzinfo=UTC))
LAST = instant_of(datetime(9999, 12, 30, tzinfo=UTC))

instants = st.integers(FIRST, LAST).map(Instant)
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(instants)
def test_an_instant_survives_its_text(instant: Instant) -> None:
    text = format_instant(instant)
    assert parse_instant(text) == instant
    assert instant_of(datetime.fromisoformat(text)) == instant
    assert instant_of(msgspec.convert(text, datetime)) == instant


@given(instants, offsets)
def test_an_instant_is_the_same_in_every_zone(instant: Instant, zone: timezone) -> None:
    assert instant_of(datetime_of(instant).astimezone(zone)) == instant


@given(st.lists(instants, min_size=2))
def test_instants_sort_as_moments_do(some: list[Instant]) -> None:
    assert sorted(some) == [instant_of(m) for m in sorted(datetime_of(i) for i in some)]


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_893_456_000_000_000, "2030-01-01T00:00:00Z"),
        (1_893_456_000_120_000, "2030-01-01T00:00:00.120Z"),
        (1_893_456_000_000_007, "2030-01-01T00:00:00.000007Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
    ],
)
def test_text_has_the_decimals_it_needs(instant: int, text: str) -> None:
    assert format_instant(Instant(instant)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("2030-01-01T00:00:00Z", "2030-01-01t00:00:00Z", "2030-01-01 00:00:00+00:00"),
        *("2030-01-01T01:30:00+01:30", "2029-12-31T19:00-05:00", "20300101T000000Z"),
    ],
)
def test_instants_are_read_with_any_offset(text: str) -> None:
    assert parse_instant(text) == 1_893_456_000_000_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((text, "must be a date and time") for text in ("", "tomorrow", "2030-01-01", "T")),
        *((text, "must be a date and time") for text in ("2030-02-30T00:00:00Z", " " * 65)),
        ("10000-01-01T00:00:00Z", "must be a date and time"),
        ("2030-01-01T00:00:00." + "0" * 99 + "Z", "must be a date and time"),
        ("2030-01-01T00:00:00", "must have a UTC offset"),
    ],
)
def test_a_text_that_is_no_instant_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_instant(text)


def test_a_naive_moment_is_refused() -> None:
    with pytest.raises(TypeError):
        instant_of(datetime(2030, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("duration_ms", "instant"), [(0, 10), (1, 1_010), (0.25, 260), (-1, -990), (1.0004, 1_010)]
)
def test_plus_ms(duration_ms: float, instant: int) -> None:
    assert plus_ms(Instant(10), duration_ms) == instant


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("0s", 0),
        ("500ms", 500),
        ("30s", 30_000),
        ("1.5s", 1_500),
        ("10m", 600_000),
        ("1h30m", 5_400_000),
        ("24h", 86_400_000),
        ("2d", 172_800_000),
        ("1d2h3m4s5ms", 93_784_005),
        ("0.001s", 1),
    ],
)
def test_durations_are_read(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    "text",
    [
        *("", "30", "s", "-1s", "+1s", "1 s", " 1s", "1s ", "1s\n", "1w", "1S", "1,5s", ".5s"),
        *("5.s", "1e3s", "PT30S", "inf", "NaNs", "\u0663s", "1" * 32 + "s"),
    ],
)
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        parse_duration_ms(text)


@given(st.integers(0, 366 * 86_400_000 * 100))
def test_a_duration_survives_its_text(duration_ms: int) -> None:
    assert parse_duration_ms(format_duration(duration_ms)) == duration_ms


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0s"),
        (30_000, "30s"),
        (90_500, "1m30s500ms"),
        (1, "1ms"),
        (86_400_000, "24h"),
        (7 * 86_400_000, "7d"),
        (129_600_000, "36h"),
    ],
)
def test_durations_are_written(duration_ms: int, text: str) -> None:
    assert format_duration(duration_ms) == text
