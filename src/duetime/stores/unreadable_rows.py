"""Rows that this release cannot read: damaged ones, and ones of a later release."""

import re
import threading
from collections.abc import Hashable

import msgspec
import structlog

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey

UNREADABLE_ROW = (msgspec.DecodeError, UnicodeDecodeError)
"""Errors of stored text that this release cannot read."""

MAX_REMEMBERED = 10_000
"""Unreadable rows that are not logged again by the reads and claims that come across them."""

_log = structlog.get_logger()

# The decoder quotes the value at fault.
_QUOTED_CONTENT = re.compile("'.*'", re.DOTALL)


def log_unreadable(key: TimerKey, created_at: Instant, error: BaseException | None) -> None:
    """Log the timer once, without its content, which may hold credentials."""
    if _remembered.add((key, created_at)):
        _log.error(
            "timer.unreadable", namespace=key.namespace, id=key.id, reason=unreadable_reason(error)
        )


def log_unreadable_credential(id: str, error: BaseException) -> None:
    """Log the key or secret once, without its content."""
    reason = unreadable_reason(error)
    if _remembered.add((id, reason)):
        _log.error("credential.unreadable", id=id, reason=reason)


def unreadable_reason(error: BaseException | None) -> str:
    """The reason without the content at fault."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error.reason} at byte {error.start}"
    return _QUOTED_CONTENT.sub("'...'", str(error))


class _RememberedRows:
    """The rows that were logged last. Threads that read and the one that writes share it."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, None] = {}
        self._lock = threading.Lock()

    def add(self, row: Hashable) -> bool:
        """Whether the row is new; the oldest one makes room for it."""
        with self._lock:
            if row in self._rows:
                return False
            if len(self._rows) == MAX_REMEMBERED:
                del self._rows[next(iter(self._rows))]
            self._rows[row] = None
            return True


_remembered = _RememberedRows()
