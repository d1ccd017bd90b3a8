"""Decides whether the wall clock may be believed when timers are to be deleted by it."""

import math

import structlog

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant

_log = structlog.get_logger()

JUMP_SECONDS = 5.0
"""Change of the wall clock against the monotonic clock that is a jump; less is a correction."""

ABSENCE_SECONDS = 3_600.0
"""Distance from the last believed instant above which a clock is doubted at the start: the service
may have been down for that long, or the clock may be ahead."""

BELIEVED_AFTER_SECONDS = 3_600.0
"""Time after which a clock that jumped ahead, and has not jumped since, is believed."""


class ClockTrust:
    """Compares the wall clock with the monotonic clock, which cannot be set.

    A clock that jumps ahead is doubted until it is set back, or has kept its new time for an hour:
    the monotonic clock cannot tell a wrong time from a wrong one put right. A clock that is behind
    is believed, because it only makes timers stay longer.

    `believed_at` is the last instant at which a clock was believed before this start. None if there
    is none: the clock is doubted then, too.
    """

    def __init__(self, now: Instant, monotonic_seconds: float, believed_at: Instant | None) -> None:
        self._believed_seconds = -math.inf
        if believed_at is not None:
            absent_seconds = (now - believed_at) / MICROSECONDS_PER_SECOND
            self._believed_seconds = wall_offset_seconds(now, monotonic_seconds) - absent_seconds
        self._allowed_seconds = ABSENCE_SECONDS
        self._doubted_seconds: float | None = None
        self._doubted_since_seconds = 0.0

    def believes(self, now: Instant, monotonic_seconds: float) -> bool:
        """Whether the wall clock may be believed. Has to be asked every minute or so."""
        offset_seconds = wall_offset_seconds(now, monotonic_seconds)
        ahead_seconds = offset_seconds - self._believed_seconds
        if ahead_seconds <= self._allowed_seconds:
            self._believe(offset_seconds, "it was set back")
            return True
        doubted_seconds = self._doubted_seconds
        self._doubted_seconds = offset_seconds
        if doubted_seconds is None or abs(offset_seconds - doubted_seconds) > JUMP_SECONDS:
            self._doubted_since_seconds = monotonic_seconds
            _log_doubt(ahead_seconds)
        if monotonic_seconds - self._doubted_since_seconds < BELIEVED_AFTER_SECONDS:
            return False
        self._believe(offset_seconds, "it has kept its time")
        return True

    def _believe(self, offset_seconds: float, why: str) -> None:
        self._believed_seconds = offset_seconds
        self._allowed_seconds = JUMP_SECONDS
        if self._doubted_seconds is not None:
            self._doubted_seconds = None
            _log.info("clock.trusted", why=why)


def _log_doubt(ahead_seconds: float) -> None:
    if ahead_seconds == math.inf:
        _log.info(
            "clock.unconfirmed",
            believed_in_seconds=BELIEVED_AFTER_SECONDS,
            advice="no earlier start has confirmed a time, so finished timers are not pruned yet",
        )
        return
    _log.warning(
        "clock.jumped",
        ahead_seconds=round(ahead_seconds, 1),
        believed_in_seconds=BELIEVED_AFTER_SECONDS,
        advice="finished timers are not pruned for now, and timers fire by this clock: "
        "check it (NTP)",
    )


def wall_offset_seconds(now: Instant, monotonic_seconds: float) -> float:
    """The distance of the wall clock from the monotonic one. It changes when the former is set."""
    return now / MICROSECONDS_PER_SECOND - monotonic_seconds
