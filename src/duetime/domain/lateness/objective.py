"""The lateness objective of a namespace, and what is left of its error budget."""

import re

from msgspec import Struct

from duetime.domain.instants import (
    MICROSECONDS_PER_MS,
    format_duration,
    parse_duration_ms,
)

LEAST_PERCENT, MOST_PERCENT = 1.0, 99.9999
SHORTEST_WITHIN_MS, LONGEST_WITHIN_MS = 1, 3_600_000
HOUR_MS = 3_600_000
MAX_WINDOW_HOURS = 90 * 24
MAX_OBJECTIVE_CHARACTERS = 100

LOW_BUDGET = 0.25
"""Share of an error budget below which people are warned."""

EXAMPLE = "99.9 % within 100ms over 30d"
_FORM = f'must be an objective such as "{EXAMPLE}"'
_TEXT = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,4})?)\s*%\s*within\s+(\S.*?)\s+over\s+(\S.*?)\s*")
_SPACE_IN_DURATION = re.compile(r"(?<=[0-9])\s+(?=[a-z])")


class LatenessObjective(Struct, frozen=True, kw_only=True):
    """`percent` of the attempts should be sent within `within_ms` after they were due, over the
    last `window_hours`. A retry is late against the instant that it was planned for."""

    percent: float
    within_ms: int
    window_hours: int

    @property
    def text(self) -> str:
        within, window = format_duration(self.within_ms), format_duration(self.window_ms)
        return f"{round(self.percent, 4):.8g} % within {within} over {window}"

    @property
    def within_microseconds(self) -> int:
        return self.within_ms * MICROSECONDS_PER_MS

    @property
    def window_ms(self) -> int:
        return self.window_hours * HOUR_MS

    @property
    def ratio(self) -> float:
        """The share of attempts that should be in time."""
        return round(self.percent / 100, 9)

    @property
    def budget_share(self) -> float:
        """The share of attempts that may be late."""
        return round(1 - self.percent / 100, 9)

    def problem(self) -> str | None:
        """The reason why this is no objective, for the person who wrote it."""
        if not LEAST_PERCENT <= self.percent <= MOST_PERCENT:
            return f"must ask for {LEAST_PERCENT:g} to {MOST_PERCENT:g} %"
        if not SHORTEST_WITHIN_MS <= self.within_ms <= LONGEST_WITHIN_MS:
            return "must be within 1ms to 1h"
        if not 1 <= self.window_hours <= MAX_WINDOW_HOURS:
            return "must be over whole hours, from 1h to 90d"
        return None


def parse_objective(text: str) -> LatenessObjective:
    """The objective of a text such as "99.9 % within 100 ms over 30 d".

    Raises ValueError with a message for the person who wrote the text.
    """
    match = _TEXT.fullmatch(text) if len(text) <= MAX_OBJECTIVE_CHARACTERS else None
    if match is None:
        raise ValueError(_FORM)
    try:
        within_ms, window_ms = (
            parse_duration_ms(_SPACE_IN_DURATION.sub("", part)) for part in match.groups()[1:]
        )
    except ValueError:
        raise ValueError(_FORM) from None
    hours, rest_ms = divmod(window_ms, HOUR_MS)
    objective = LatenessObjective(
        percent=float(match[1]), within_ms=within_ms, window_hours=0 if rest_ms else hours
    )
    problem = objective.problem()
    if problem is not None:
        raise ValueError(problem)
    return objective


class LatenessCount(Struct, frozen=True):
    """The attempts of a namespace in one hour, counted from 1970, that were in time or late."""

    namespace: str
    hour: int
    in_time: int
    late: int


class InTimeOrLate(Struct):
    """Attempts that were in time, and those that were late."""

    in_time: int = 0
    late: int = 0

    def add(self, more: "InTimeOrLate | LatenessCount") -> None:
        self.in_time += more.in_time
        self.late += more.late


class ErrorBudget(Struct, frozen=True, kw_only=True):
    """The attempts within an objective's window, and the share of its error budget that is left: 1
    is all of it, and below 0 the objective is missed."""

    attempts: int
    late: int
    left: float


def error_budget(objective: LatenessObjective, in_time: int, late: int) -> ErrorBudget:
    attempts = in_time + late
    spent = late / (attempts * objective.budget_share) if attempts else 0.0
    return ErrorBudget(attempts=attempts, late=late, left=1 - spent)
