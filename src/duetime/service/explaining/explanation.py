"""The explanation of a timer, as every front door shows it."""

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.timer import TimerStatus


class Period(Struct, frozen=True, kw_only=True):
    """A time with one cause. `sentence` tells it to people, and `see` names a section of the page
    how-to/explain-a-timer. `attempt` is the attempt that waited or was under way, and in the case
    of a retry policy the one that failed."""

    from_at: Instant
    to_at: Instant
    cause: WaitCause
    attempt: int
    sentence: str = ""
    see: str = ""

    @property
    def microseconds(self) -> int:
        return self.to_at - self.from_at


class AttemptExplanation(Struct, frozen=True, kw_only=True):
    """An attempt of the current firing. `sent_at` is None if its node ended before it was recorded.
    `late` counts the microseconds from the instant at which it was due."""

    number: int
    due_at: Instant
    sent_at: Instant | None
    answered_at: Instant | None
    late: int | None
    outcome: AttemptOutcome
    error: str | None


class Explanation(Struct, frozen=True, kw_only=True):
    """Every microsecond from `asked_at` to `until_at` is in exactly one of the `periods`, which
    follow each other without gaps.

    `asked_at` is the instant of the current firing. `until_at` is the end of its last attempt, or
    now while it is unfinished. `late` is the time from `asked_at` to the sending of the last
    attempt, or to now if it is due and unfinished. It is None if the firing is neither sent nor
    due, and while another node executes it, because only that node knows whether it is sent.
    `is_live` is False if the node that answers does not know how the timer waits now, because
    `owner` does, or because no node does.
    """

    key: TimerKey
    status: TimerStatus
    verdict: str
    advice: str | None
    asked_at: Instant
    until_at: Instant
    late: int | None
    next_attempt_at: Instant | None
    periods: tuple[Period, ...]
    attempts: tuple[AttemptExplanation, ...]
    node: str
    is_live: bool
    node_url: str | None = None
    owner: str | None = None
    owner_url: str | None = None
