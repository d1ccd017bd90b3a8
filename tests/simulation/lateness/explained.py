"""The arithmetic of explanations: no microsecond is missing, and none is counted twice."""

from duetime.domain.instants import Instant
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.timer import Timer
from duetime.ports.endpoints import FiringReport
from duetime.service.explaining import Explanation
from duetime.service.explaining.explaining import explanation_of

NOBODY = FiringReport(node="nobody", owns_shard=False)


def explained(timer: Timer, now: Instant, report: FiringReport = NOBODY) -> Explanation:
    """The explanation, once its sums are checked."""
    explanation = explanation_of(timer, report, now)
    periods = explanation.periods
    edges = [explanation.asked_at, *(period.to_at for period in periods)]
    assert [period.from_at for period in periods] == edges[:-1], explanation
    assert edges[-1] == explanation.until_at, explanation
    assert all(period.microseconds > 0 for period in periods), explanation
    total = sum(period.microseconds for period in periods)
    assert total == explanation.until_at - explanation.asked_at, explanation
    assert explanation.verdict
    return explanation


def milliseconds(explanation: Explanation) -> dict[WaitCause, float]:
    """The time of each cause."""
    sums: dict[WaitCause, float] = {}
    for period in explanation.periods:
        sums[period.cause] = sums.get(period.cause, 0.0) + period.microseconds / 1_000
    return sums
