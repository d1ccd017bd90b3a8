"""Files that are made while they are sent."""

import csv
import io
from collections import Counter
from collections.abc import Sequence

from duetime.api.http.answers import Headers
from duetime.domain.errors import Unavailable
from duetime.domain.instants import Instant, format_instant
from duetime.domain.security.access import UNCHECKED, Access

MAX_EXPORTS = 4
"""Exports of one kind under way at once in this process: each keeps the store busy."""

MAX_EXPORTS_OF_KEY = 2
"""Exports of one kind and key: a client may take hours to read one. If no key is asked for, the
callers cannot be told apart."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Cells that begin like this are formulas for spreadsheets."""


class RunningExports:
    """Counts the exports of one kind that are under way in this process, by key."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()

    def check_room(self, access: Access) -> None:
        """Raises `Unavailable`."""
        if self._running.total() >= MAX_EXPORTS:
            raise Unavailable("too many exports are running here: try again when one has ended")
        if access != UNCHECKED and self._running[_key_of(access)] >= MAX_EXPORTS_OF_KEY:
            raise Unavailable("too many exports of this key are running: wait until one has ended")

    def begin(self, access: Access) -> None:
        self._running[_key_of(access)] += 1

    def end(self, access: Access) -> None:
        self._running[_key_of(access)] -= 1
        self._running += Counter()  # Forgets keys that have none.


def _key_of(access: Access) -> str:
    return access.key_id or access.name


def file_headers(name: str, suffix: str, media_type: str, now: Instant) -> Headers:
    """The headers of a file whose name has the time of its making."""
    stamp = format_instant(now)[:19].replace(":", "")
    return (
        (b"content-type", media_type.encode()),
        (b"content-disposition", f'attachment; filename="{name}-{stamp}.{suffix}"'.encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    )


def csv_row(cells: Sequence[str]) -> bytes:
    """A row of CSV. No cell of it is a formula."""
    text = io.StringIO()
    csv.writer(text).writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    return text.getvalue().encode(errors="replace")
