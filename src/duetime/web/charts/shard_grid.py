"""Shards as a grid of cells, in the colour of their owner."""

import math
from collections.abc import Sequence
from itertools import groupby

from duetime.web.charts.drawing import Drawing, element, plain

COLOURS = 6
"""Owners that have a colour of their own; then the colours begin again."""

_CELL = 10.0
_WIDEST = 64
"""Cells of a row at most."""


def shard_grid(owners: Sequence[int | None], *, label: str, description: str) -> Drawing:
    """`owners` has the number of each shard's owner, or None. Neighbours in a row with the same
    owner are one path, so that thousands of shards stay small."""
    columns = min(max(math.isqrt(4 * len(owners)), 8), _WIDEST, max(len(owners), 1))
    rows = math.ceil(len(owners) / columns)
    cells: dict[int | None, list[str]] = {}
    for row in range(rows):
        start = row * columns
        column = 0
        for owner, run in groupby(owners[start : start + columns]):
            length = len(list(run))
            cells.setdefault(owner, []).append(_run(row, column, length))
            column += length
    pieces = [
        element("path", kind=colour_of(owner), d="".join(runs)) for owner, runs in cells.items()
    ]
    width, height = columns * _CELL, rows * _CELL
    return Drawing(
        element(
            "svg",
            *pieces,
            kind="chart shards",
            role="img",
            aria_label=f"{label}. {description}",
            viewBox=f"0 0 {plain(width)} {plain(height)}",
            width=plain(width * 1.6),
        )
    )


def colour_of(owner: int | None) -> str:
    """The class of an owner's colour."""
    return "nobody" if owner is None else f"owner-{owner % COLOURS + 1}"


def _run(row: int, column: int, length: int) -> str:
    size = _CELL - 2
    y = row * _CELL + 1
    return "".join(
        f"M{plain((column + step) * _CELL + 1)} {plain(y)}h{plain(size)}v{plain(size)}"
        f"h-{plain(size)}z"
        for step in range(length)
    )
