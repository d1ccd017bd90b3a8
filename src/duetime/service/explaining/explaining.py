"""Explains a timer from its record and from the state of the engine."""

from collections.abc import Callable
from itertools import zip_longest

from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.lateness.waits import wait_start
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.ports.clock import Clock
from duetime.ports.endpoints import FiringReport
from duetime.service.explaining.explanation import AttemptExplanation, Explanation
from duetime.service.explaining.sentences import section_of, sentence_of
from duetime.service.explaining.timeline import Timeline, attempts_of_firing
from duetime.service.explaining.verdict import verdict_of
from duetime.service.timer_service import TimerService

Report = Callable[[Timer, Instant], FiringReport]
"""The engine's report on an unfinished timer. Pure and quick."""


class Explaining:
    def __init__(self, timers: TimerService, clock: Clock, report: Report) -> None:
        self._timers = timers
        self._clock = clock
        self._report = report

    async def explain(self, key: TimerKey, *, sees_endpoints: bool) -> Explanation:
        """The state of its endpoint is left out unless the caller `sees_endpoints`. Raises what
        `TimerService.get` raises."""
        timer = await self._timers.get(key)
        return self.explain_timer(timer, sees_endpoints=sees_endpoints)

    def explain_timer(self, timer: Timer, *, sees_endpoints: bool) -> Explanation:
        """As `explain`, for a timer that was just read. Its contents do not matter."""
        now = self._clock.now()
        report = self._report(timer, now)
        if not sees_endpoints:
            report = replace(report, endpoint=None)
        return explanation_of(timer, report, now)


def explanation_of(timer: Timer, report: FiringReport, now: Instant) -> Explanation:
    """A finished timer is explained from its record alone."""
    attempts = attempts_of_firing(timer)
    timeline = Timeline(timer)
    if not timer.status.is_finished:
        timeline.go_on(report, now)
    late = _late(timer, attempts, timeline, report, now)
    verdict = verdict_of(timer, attempts, timeline.periods, late, report, now)
    by_number = {attempt.number: attempt for attempt in attempts}
    is_live = timer.status.is_finished or report.owns_shard
    return Explanation(
        key=timer.key,
        status=timer.status,
        verdict=verdict.sentence,
        advice=verdict.advice,
        asked_at=timeline.asked_at,
        until_at=timeline.until_at,
        late=late,
        next_attempt_at=timer.due_at if timer.status is TimerStatus.PENDING else None,
        periods=tuple(
            replace(
                period,
                sentence=sentence_of(period, following, timer, by_number),
                see=section_of(period.cause),
            )
            for period, following in zip_longest(timeline.periods, timeline.periods[1:])
        ),
        attempts=tuple(_explained(each, timer, attempts[:n]) for n, each in enumerate(attempts)),
        node=report.node,
        node_url=report.node_url,
        is_live=is_live,
        owner=None if timer.status.is_finished else report.owner,
        owner_url=None if timer.status.is_finished else report.owner_url,
    )


def _late(
    timer: Timer,
    attempts: tuple[Attempt, ...],
    timeline: Timeline,
    report: FiringReport,
    now: Instant,
) -> int | None:
    asked_at = timeline.asked_at
    if timer.status is TimerStatus.EXECUTING and not report.owns_shard:
        return None
    if timer.status in (TimerStatus.PENDING, TimerStatus.EXECUTING):
        return max(0, now - asked_at) if now > asked_at else None
    sent = [attempt.sent_at for attempt in attempts if attempt.sent_at is not None]
    return max(0, sent[-1] - asked_at) if sent else None


def _explained(attempt: Attempt, timer: Timer, before: tuple[Attempt, ...]) -> AttemptExplanation:
    late = None
    if attempt.sent_at is not None:
        waited = sum(wait.microseconds for wait in attempt.waits)
        since = wait_start(attempt.due_at, timer.created_at, before)
        late = max(0, waited, attempt.sent_at - since)
    return AttemptExplanation(
        number=attempt.number,
        due_at=attempt.due_at,
        sent_at=attempt.sent_at,
        answered_at=attempt.answered_at,
        late=late,
        outcome=attempt.outcome,
        error=attempt.error,
    )
