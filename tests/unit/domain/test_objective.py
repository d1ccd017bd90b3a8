"""Lateness objectives as text, and their error budgets."""

import pytest

from duetime.domain.lateness.objective import (
    LatenessObjective,
    error_budget,
    parse_objective,
)

USUAL = LatenessObjective(percent=99.9, within_ms=100, window_hours=720)


@pytest.mark.parametrize(
    "text",
    [
        "99.9 % within 100 ms over 30 d",
        "99.9% within 100ms over 30d",
        "  99.90 %  within 0.1s over 720h ",
    ],
)
def test_an_objective_is_read_with_and_without_spaces(text: str) -> None:
    assert parse_objective(text) == USUAL
    assert USUAL.text == "99.9 % within 100ms over 30d"


@pytest.mark.parametrize(
    "objective",
    [
        USUAL,
        LatenessObjective(percent=99.9999, within_ms=1, window_hours=1),
        LatenessObjective(percent=1, within_ms=3_600_000, window_hours=2_160),
        LatenessObjective(percent=95, within_ms=90_000, window_hours=36),
        LatenessObjective(percent=12.3456, within_ms=5, window_hours=24),
    ],
)
def test_the_text_of_an_objective_is_read_back(objective: LatenessObjective) -> None:
    assert parse_objective(objective.text) == objective


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "such as"),
        ("fast", "such as"),
        ("99.9 % in 100ms", "such as"),
        ("99.9 within 100ms over 30d", "such as"),
        ("-1 % within 100ms over 30d", "such as"),
        ("99.9 % within soon over 30d", "such as"),
        ("99.9 % within 100ms over 30d" + " " * 100, "such as"),
        ("100 % within 100ms over 30d", "99.9999 %"),
        ("99.99995 % within 100ms over 30d", "such as"),
        ("0.5 % within 100ms over 30d", "1 to"),
        ("99.9 % within 0s over 30d", "1ms to 1h"),
        ("99.9 % within 2h over 30d", "1ms to 1h"),
        ("99.9 % within 100ms over 91d", "90d"),
        ("99.9 % within 100ms over 90m", "whole hours"),
        ("99.9 % within 100ms over 0s", "whole hours"),
    ],
)
def test_a_text_that_is_no_objective_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_objective(text)


@pytest.mark.parametrize(
    ("in_time", "late", "left"),
    [(0, 0, 1.0), (1_000, 0, 1.0), (9_995, 5, 0.5), (999, 1, 0.0), (998, 2, -1.0)],
)
def test_the_budget_is_the_share_of_attempts_that_may_be_late(
    in_time: int, late: int, left: float
) -> None:
    budget = error_budget(USUAL, in_time, late)
    assert budget.left == pytest.approx(left)
    assert (budget.attempts, budget.late) == (in_time + late, late)
