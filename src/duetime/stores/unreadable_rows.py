"""Timers that this release cannot read: damaged ones, and ones of a later release."""

import re
import threading

import msgspec
import structlog

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey

UNREADABLE_ROW = (msgspec.DecodeError, UnicodeDecodeError)
"""Errors of stored text that this release cannot read."""

MAX_REMEMBERED = 10_000
"""Unreadable timers that are not logged again by the lists and claims that come across them."""

_log = structlog.get_logger()

# The decoder quotes the value at fault.
_QUOTED_CONTENT = re.compile("'.*'", re.DOTALL)


def log_unreadable(key: TimerKey, created_at: Instant, error: BaseException | None) -> None:
    """Log the timer once, without its content, which may hold credentials."""
    if _remembered.add((key, created_at)):
        _log.error("timer.unreadable", namespace=key.namespace, id=key.id, reason=_reason_of(error))


def _reason_of(error: BaseException | None) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error.reason} at byte {error.start}"
    return _QUOTED_CONTENT.sub("'...'", str(error))


class _RememberedTimers:
    """The timers that were logged last. Threads that read and the one that writes share it."""

    def __init__(self) -> None:
        self._timers: dict[tuple[TimerKey, Instant], None] = {}
        self._lock = threading.Lock()

    def add(self, timer: tuple[TimerKey, Instant]) -> bool:
        """Whether the timer is new; the oldest one makes room for it."""
        with self._lock:
            if timer in self._timers:
                return False
            if len(self._timers) == MAX_REMEMBERED:
                del self._timers[next(iter(self._timers))]
            self._timers[timer] = None
            return True


_remembered = _RememberedTimers()
