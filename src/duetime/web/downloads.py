"""Files that are made while they are sent."""

import csv
import io
from collections.abc import Sequence

from duetime.api.http.answers import Headers
from duetime.domain.instants import Instant, format_instant

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Cells that begin like this are formulas for spreadsheets."""


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
