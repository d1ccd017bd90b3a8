"""Judges whether an endpoint works, and remembers it while nothing is sent there.

docs/architecture/isolation.md says what an open breaker means for timers.
"""

import structlog

from duetime.domain.instants import Instant
from duetime.domain.outcome import Failed, Interrupted, Outcome
from duetime.engine.lanes.standing import MOMENT_SECONDS, Standing
from duetime.pauses import Pauses
from duetime.ports.clock import Clock

_log = structlog.get_logger()

FAILURES_TO_OPEN = 20
"""Attempts in a row that failed, or that are under way without an answer."""

TROUBLE_SECONDS = 5.0
"""Time with nothing but failures or silence, not counting pauses of this process. Many failures may
come at the same moment and say little about the next one."""

PROBES = 4
"""Attempts at once to an endpoint whose breaker is open."""

MAX_REMEMBERED = 10_000
REMEMBERED_SECONDS = 600.0


class Breaker:
    """The judgement about one endpoint:

        closed --keeps failing or hanging--> open --a sign of life--> closed

    Every instant except `opened_at` and `failing_since`, which are for people, is monotonic time.
    """

    def __init__(self, endpoint: str, clock: Clock, pauses: Pauses) -> None:
        self._clock = clock
        self._pauses = pauses
        self._row_since_seconds = 0.0
        self._opened_seconds = 0.0
        self.endpoint = endpoint
        self.failures = 0
        """Failures in a row."""
        self.failing_since: Instant | None = None
        """The instant of the first of them."""
        self.last_error: str | None = None
        self.last_used_seconds = 0.0
        self.is_open = False
        self.is_troubled = False
        """Open, or the last attempt failed: successes have to be reported too."""
        self.opened_at: Instant | None = None
        self.answered_seconds: float | None = None
        """The time of the last answer; None if there was none lately, or if it has hung since."""
        self.hung = False
        """The last attempt took long and failed."""

    def standing(self, now_seconds: float) -> Standing:
        """The standing of the endpoint, as far as ended attempts show it."""
        if self.hung:
            return Standing.HANGS
        if self.answered_seconds is None:
            return Standing.UNKNOWN
        answers = self.answered_within(MOMENT_SECONDS, now_seconds)
        return Standing.ANSWERS if answers else Standing.ANSWERED

    def answered_within(self, seconds: float, now_seconds: float) -> bool:
        return self.answered_seconds is not None and now_seconds - self.answered_seconds < seconds

    def heard(self, outcome: Outcome, now_seconds: float) -> None:
        """Take the outcome of an attempt into account."""
        if isinstance(outcome, Failed) and outcome.blames_endpoint:
            self._failed(outcome, now_seconds)
        elif not isinstance(outcome, Interrupted):
            self.failures, self.failing_since, self.is_troubled = 0, None, False
            if self.is_open:
                self.close("answered", now_seconds)

    def hangs(self, unanswered: int, silent_seconds: float) -> None:
        """Take into account that attempts under way got no answer for a while."""
        if not self.is_open and unanswered >= FAILURES_TO_OPEN:
            self._open(f"{unanswered} attempts unanswered for {silent_seconds:.1f} s")

    def close(self, why: str, now_seconds: float) -> None:
        self.is_open, self.opened_at = False, None
        open_seconds = round(now_seconds - self._opened_seconds, 3)
        _log.info("endpoint.closed", endpoint=self.endpoint, why=why, open_seconds=open_seconds)

    def _failed(self, outcome: Failed, now_seconds: float) -> None:
        if self.failures == 0:
            self._row_since_seconds = now_seconds
            self.failing_since = self._clock.now()
        self.failures += 1
        self.is_troubled = True
        self.last_error = outcome.error
        keeps_failing = (
            self.failures >= FAILURES_TO_OPEN
            and self._pauses.awake_seconds(self._row_since_seconds, now_seconds) >= TROUBLE_SECONDS
        )
        if not self.is_open and (outcome.is_away or keeps_failing):
            self._open(outcome.error)

    def _open(self, error: str) -> None:
        self.is_open = self.is_troubled = True
        self.last_error = error
        self.opened_at = self._clock.now()
        self._opened_seconds = self._clock.monotonic()
        _log.warning("endpoint.opened", endpoint=self.endpoint, failures=self.failures, error=error)


class IdleBreakers:
    """The breakers of endpoints that failed or answered lately and that nothing is sent to now.

    A bounded number of either kind is kept, for a while. An endpoint without a kept breaker is
    presumed to work, and has the standing of an unknown one.
    """

    def __init__(self, clock: Clock, pauses: Pauses) -> None:
        self._clock = clock
        self._pauses = pauses
        self._open: dict[str, Breaker] = {}
        self._closed: dict[str, Breaker] = {}
        self._faultless: dict[str, Breaker] = {}

    def take(self, endpoint: str) -> Breaker:
        """The endpoint's breaker, or a new one, for use in a lane."""
        self._forget_old_ones(self._clock.monotonic())
        remembered = (
            self._faultless.pop(endpoint, None)
            or self._closed.pop(endpoint, None)
            or self._open.pop(endpoint, None)
        )
        return remembered or Breaker(endpoint, self._clock, self._pauses)

    def put(self, breaker: Breaker, now_seconds: float) -> None:
        """Keep the breaker of a lane that is idle now."""
        self._forget_old_ones(now_seconds)
        breaker.last_used_seconds = now_seconds
        if breaker.last_error is None:
            if breaker.answered_seconds is not None:
                self._faultless[breaker.endpoint] = breaker
                if len(self._faultless) > MAX_REMEMBERED:
                    del self._faultless[next(iter(self._faultless))]
            return
        (self._open if breaker.is_open else self._closed)[breaker.endpoint] = breaker
        if len(self._open) + len(self._closed) > MAX_REMEMBERED:
            self._drop_oldest(self._closed or self._open, now_seconds)

    def find(self, endpoint: str) -> Breaker | None:
        """The breaker of an endpoint that failed lately; it stays here."""
        return self._open.get(endpoint) or self._closed.get(endpoint)

    def remembered(self, now_seconds: float) -> list[Breaker]:
        """The breakers of endpoints that failed lately."""
        self._forget_old_ones(now_seconds)
        return [*self._open.values(), *self._closed.values()]

    def _forget_old_ones(self, now_seconds: float) -> None:
        for breakers in (self._open, self._closed, self._faultless):
            while breakers and (
                next(iter(breakers.values())).last_used_seconds + REMEMBERED_SECONDS <= now_seconds
            ):
                self._drop_oldest(breakers, now_seconds)

    def _drop_oldest(self, breakers: dict[str, Breaker], now_seconds: float) -> None:
        breaker = breakers.pop(next(iter(breakers)))
        if breaker.is_open:
            breaker.close("idle", now_seconds)
