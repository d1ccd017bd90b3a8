"""Shards as a grid of cells, in the colour of their owner."""

import math
from collections.abc import Sequence

from duetime.web.charts.drawing import Drawing, element, plain

COLOURS = 6
"""Owners that have a colour of their own; then the colours begin again."""

_CELL = 10
_WIDEST = 64
"""Cells of a row at most."""


def shard_grid(owners: Sequence[int | None], *, label: str, description: str) -> Drawing:
    """`owners` has the number of each shard's owner, or None. All shards of an owner are one path,
    so that thousands of shards stay small."""
    columns = min(max(math.isqrt(4 * len(owners)), 8), _WIDEST, max(len(owners), 1))
    rows = math.ceil(len(owners) / columns)
    cells: dict[int | None, list[str]] = {}
    size = _CELL - 2
    for shard, owner in enumerate(owners):
        row, column = divmod(shard, columns)
        square = f"M{column * _CELL + 1} {row * _CELL + 1}h{size}v{size}h-{size}z"
        cells.setdefault(owner, []).append(square)
    pieces = [
        element("path", kind=colour_of(owner), d="".join(squares))
        for owner, squares in cells.items()
    ]
    width, height = columns * _CELL, rows * _CELL
    return Drawing(
        element(
            "svg",
            *pieces,
            kind="chart shards",
            role="img",
            aria_label=f"{label}. {description}",
            viewBox=f"0 0 {width} {height}",
            width=plain(width * 1.6),
        )
    )


def colour_of(owner: int | None) -> str:
    """The class of an owner's colour."""
    return "nobody" if owner is None else f"owner-{owner % COLOURS + 1}"
