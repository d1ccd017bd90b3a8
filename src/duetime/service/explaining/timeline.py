"""The time of a firing, cut into periods that follow each other without gaps."""

from collections.abc import Sequence

from duetime.domain.instants import Instant
from duetime.domain.lateness.waits import (
    SHORTEST_WAIT,
    WaitCause,
    first_of_firing,
    wait_start,
    with_time,
)
from duetime.domain.timer import Attempt, Timer, TimerStatus, Wait
from duetime.domain.transitions import was_due_at
from duetime.ports.endpoints import FiringReport
from duetime.service.explaining.explanation import Period


def attempts_of_firing(timer: Timer) -> tuple[Attempt, ...]:
    """The remembered attempts of the current firing."""
    return timer.attempts[first_of_firing(timer) :]


def asked_at_of(timer: Timer) -> Instant:
    """The instant of the current firing: a redriven timer was asked for by the redrive."""
    made = attempts_of_firing(timer)
    if made:
        return made[0].due_at
    return min(_next_due_at(timer), timer.due_at)


def _next_due_at(timer: Timer) -> Instant:
    """The instant at which the first attempt of this firing is due, as when it is claimed."""
    is_rescheduled = bool(timer.attempts) and timer.attempts[-1].error is None
    if is_rescheduled or not timer.attempts:
        return timer.execute_at
    return timer.due_at


class Timeline:
    """Periods from `asked_at` on. An instant before the end of the last period adds nothing: a
    clock that was set back makes no time."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self.asked_at = self.until_at = asked_at_of(timer)
        self.periods: list[Period] = []
        before = first_of_firing(timer)
        if before == 0 and timer.created_at > self.asked_at:
            self._add(timer.created_at, WaitCause.ACCEPTED_LATE, 1)
        made: tuple[Attempt, ...] = ()
        for attempt in timer.attempts[before:]:
            self._add_attempt(attempt, made)
            made = (*made, attempt)
        self._made = made

    def go_on(self, report: FiringReport, now: Instant) -> None:
        """Add the time up to now of a timer that is not finished."""
        number = self._timer.attempt + (self._timer.status is TimerStatus.PENDING)
        since = self._next_start(report, now)
        if since >= now:
            if self._made:
                self._add(now, WaitCause.RETRY_POLICY, self._made[-1].number)
            return
        if self._made:
            self._add(since, WaitCause.RETRY_POLICY, self._made[-1].number)
        if report.sent_at is not None:
            sent_at = Instant(min(report.sent_at, now))
            self._add_sending(report.waits, since, sent_at, self._timer.claimed_at or now, number)
            self._add(now, WaitCause.ENDPOINT, number)
        elif report.owns_shard:
            self._add_waits(report.waits, number, now)
            self._add(now, report.waits_for or WaitCause.CLAIM, number)
        else:
            missing = WaitCause.NODE_DOWN if report.owner is None else WaitCause.NOT_RECORDED
            self._add(now, missing, number)

    def _next_start(self, report: FiringReport, now: Instant) -> Instant:
        """The instant since which the next attempt is late, or at which it is due."""
        if report.waits:
            end_at = now if report.sent_at is None else report.sent_at
            return Instant(end_at - sum(wait.microseconds for wait in report.waits))
        timer = self._timer
        if not self._made:
            due_at = asked_at_of(timer)
        else:
            due_at = timer.due_at if timer.status is TimerStatus.PENDING else was_due_at(timer)
        return wait_start(due_at, timer.created_at, self._made)

    def _add_attempt(self, attempt: Attempt, before: tuple[Attempt, ...]) -> None:
        sent_at = attempt.claimed_at if attempt.sent_at is None else attempt.sent_at
        since = wait_start(attempt.due_at, self._timer.created_at, before)
        waited = sum(wait.microseconds for wait in attempt.waits)
        if since + waited > sent_at:
            # A retry that was handed back: its planned instant is only in the waits.
            since = Instant(sent_at - waited)
        if before:
            follows = attempt.number == before[-1].number + 1
            cause = WaitCause.RETRY_POLICY if follows else WaitCause.NOT_RECORDED
            self._add(since, cause, before[-1].number)
        self._add_sending(attempt.waits, since, sent_at, attempt.claimed_at, attempt.number)
        if attempt.answered_at is not None:
            self._add(attempt.answered_at, WaitCause.ENDPOINT, attempt.number)

    def _add_sending(
        self,
        waits: Sequence[Wait],
        since: Instant,
        sent_at: Instant,
        claimed_at: Instant,
        number: int,
    ) -> None:
        """Add the time until an attempt was sent, from its instants if it recorded no waits."""
        if not waits:
            derived: list[Wait] = []
            with_time(derived, max(since, self.until_at), sent_at, claimed_at)
            waits = derived
        self._add_waits(waits, number, sent_at)
        cause, last = WaitCause.ENGINE, self.periods[-1] if self.periods else None
        if last is not None and last.attempt == number and sent_at - last.to_at < SHORTEST_WAIT:
            cause = last.cause
        self._add(sent_at, cause, number)

    def _add_waits(self, waits: Sequence[Wait], number: int, until_at: Instant) -> None:
        for wait in waits:
            end_at = Instant(min(self.until_at + wait.microseconds, until_at))
            self._add(end_at, _cause_of(wait.cause), number)

    def _add(self, to_at: Instant, cause: WaitCause, attempt: int) -> None:
        if to_at <= self.until_at:
            return
        last = self.periods[-1] if self.periods else None
        if last is not None and (last.cause, last.attempt) == (cause, attempt):
            self.periods.pop()
            from_at = last.from_at
        else:
            from_at = self.until_at
        self.periods.append(Period(from_at=from_at, to_at=to_at, cause=cause, attempt=attempt))
        self.until_at = to_at


def _cause_of(word: str) -> WaitCause:
    try:
        return WaitCause(word)
    except ValueError:
        return WaitCause.NOT_RECORDED
