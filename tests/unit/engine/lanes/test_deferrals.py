"""How long deferred claims stay away."""

from duetime.domain.instants import Instant
from duetime.engine.lanes.deferrals import RETURN_EVERY_MS, Deferrals, returning_at


def next_ms(deferrals: Deferrals, now_seconds: float, turn_in_seconds: float = 0.0) -> float:
    return deferrals.next_ms(
        now_seconds, turn_in_seconds=turn_in_seconds, returns_per_second=1_000.0
    )


def test_where_claims_get_their_turn_others_return_when_theirs_is_likely() -> None:
    deferrals = Deferrals()
    assert next_ms(deferrals, 0.0) == 250
    for now_seconds, turn_in_seconds, expected_ms in (
        (1, 2.0, 2_000),
        (4, 0.1, 250),
        (6, 99, 5_000),
    ):
        deferrals.moved()
        assert next_ms(deferrals, now_seconds, turn_in_seconds) == expected_ms


def test_when_claims_get_no_turn_any_more_the_rounds_grow_from_the_last_one() -> None:
    deferrals = Deferrals()
    deferrals.moved()
    assert next_ms(deferrals, 0.0, turn_in_seconds=1.0) == 1_000
    assert next_ms(deferrals, 1.0, turn_in_seconds=1.0) == 2_000


def test_more_is_expected_until_the_last_one_had_the_time_to_return() -> None:
    deferrals = Deferrals()
    assert not deferrals.expect_more(0.0)
    last_ms = max(next_ms(deferrals, 0.0) for _ in range(3_000))
    assert last_ms > 3_000
    assert deferrals.expect_more(last_ms / 1_000 + 0.2)
    assert not deferrals.expect_more(last_ms / 1_000 + 0.3)


def test_claims_that_return_close_together_return_at_one_instant() -> None:
    step = RETURN_EVERY_MS * 1_000
    assert returning_at(Instant(0)) == 0
    assert returning_at(Instant(1)) == returning_at(Instant(step)) == step
    assert returning_at(Instant(step + 1)) == 2 * step


def test_deferred_claims_are_away_until_they_return() -> None:
    deferrals = Deferrals()
    delays_ms = [next_ms(deferrals, 0.0) for _ in range(3_000)]
    assert deferrals.away(0.0) == 3_000
    halfway_seconds = delays_ms[1_500] / 1_000
    assert abs(deferrals.away(halfway_seconds) - 1_500) <= 2 * RETURN_EVERY_MS
    assert deferrals.away(max(delays_ms) / 1_000 + RETURN_EVERY_MS / 1_000) == 0
