"""The columns of a table on a terminal: which are shown, how wide, and how their cells are cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rich.cells import cell_len
from rich.text import Text

GAP = "  "

Row = Sequence[Text]

_CUT = "…"
_EMPTY = {"", "-"}
_TRIED_WIDTHS = (12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 100, 120)
_HEAD_SHARES = (0.5, 0.3, 0.7, 0.85, 1.0, 0.15, 0.0)
"""Shares of a cut cell that are its beginning, the preferred one first."""


class Cut(Enum):
    """How the cells of a column get shorter."""

    NEVER = "never"
    END = "end"
    MIDDLE = "middle"
    """Somewhere in between, so that different cells stay different if possible."""

    APART = "apart"
    """As `MIDDLE`; the column takes the width that different cells need to stay different."""

    WRAP = "wrap"
    """Over several lines, between words. Only for the last column."""


@dataclass(frozen=True, slots=True)
class Column:
    """`least` is the narrowest width of a cell that is cut. A table that is too wide first cuts
    its columns to `enough`, then to `least`. An `extra` column is shown only if all others can
    have enough; the highest number leaves first."""

    heading: str
    cut: Cut = Cut.NEVER
    least: int = 0
    enough: int = 0
    extra: int = 0
    hidden_if_empty: bool = False


@dataclass(slots=True)
class _Measured:
    """A column with its cells; `width` is what it has now."""

    column: Column
    index: int
    width: int
    enough: int
    least: int


@dataclass(frozen=True, slots=True)
class FittedTable:
    """The table on a terminal; `is_cut` if a cell lost some of its text, or an extra column is
    not shown."""

    headings: list[str]
    rows: list[Row]
    widths: list[int]
    wraps: bool
    is_cut: bool


def fit(columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> FittedTable:
    """The table on a terminal of that width; None cuts nothing."""
    measured = [
        _measure(column, index, [cells[index] for cells in rows], width)
        for index, column in enumerate(columns)
        if not (column.hidden_if_empty and all(cells[index].plain in _EMPTY for cells in rows))
    ]
    candidates = len(measured)
    if width is not None:
        _drop_extras(measured, width)
        _narrow(measured, width)
    shown = [
        [Text(each.column.heading), *(cells[each.index] for cells in rows)] for each in measured
    ]
    cut = [
        cells if width is None else _cut_cells(cells, each)
        for cells, each in zip(shown, measured, strict=True)
    ]
    return FittedTable(
        headings=[cells[0].plain for cells in cut],
        rows=[list(row) for row in zip(*(cells[1:] for cells in cut), strict=True)],
        widths=[max(cell.cell_len for cell in cells) for cells in cut],
        wraps=bool(measured) and measured[-1].column.cut is Cut.WRAP,
        is_cut=len(measured) < candidates
        or any(
            new is not old
            for old_cells, new_cells in zip(shown, cut, strict=True)
            for old, new in zip(old_cells, new_cells, strict=True)
        ),
    )


def cut_apart(texts: Sequence[str], width: int) -> list[str]:
    """The texts, cut to the width in the same way, so that different ones stay different if that
    is possible."""
    first: list[str] | None = None
    different = len(set(texts))
    for share in _HEAD_SHARES:
        cut = [_cut_text(text, width, share) for text in texts]
        if len(set(cut)) == different:
            return cut
        first = first or cut
    return first or []


def _measure(column: Column, index: int, cells: Sequence[Text], width: int | None) -> _Measured:
    heading = len(column.heading)
    natural = max([heading, *(cell.cell_len for cell in cells)])
    if width is None or column.cut is Cut.NEVER:
        return _Measured(column, index, natural, natural, natural)
    least = max(column.least, heading)
    if column.cut is Cut.APART:
        least = _width_to_tell_apart([cell.plain for cell in cells], least, width)
    enough = max(column.enough, least)
    return _Measured(column, index, min(natural, width), min(natural, enough), min(natural, least))


def _width_to_tell_apart(texts: Sequence[str], least: int, most: int) -> int:
    """The first width at which cut texts stay different; `least` if there is none."""
    different = len(set(texts))
    for width in (least, *(each for each in _TRIED_WIDTHS if least < each <= most)):
        if len(set(cut_apart(texts, width))) == different:
            return width
    return least


def _drop_extras(measured: list[_Measured], width: int) -> None:
    while _total(measured, [each.enough for each in measured]) > width:
        last = max(measured, key=lambda each: each.column.extra)
        if not last.column.extra:
            return
        measured.remove(last)


def _narrow(measured: Sequence[_Measured], width: int) -> None:
    """Take width from the widest columns until the table fits or no column can be narrower."""
    for step in ("enough", "least"):
        while _total(measured, [each.width for each in measured]) > width:
            wide = [each for each in measured if each.width > getattr(each, step)]
            if not wide:
                break
            max(wide, key=lambda each: each.width).width -= 1


def _total(measured: Sequence[_Measured], widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(measured) - 1)


def _cut_cells(cells: Sequence[Text], measured: _Measured) -> list[Text]:
    if measured.column.cut in (Cut.NEVER, Cut.WRAP):
        return list(cells)
    plain = [cell.plain for cell in cells]
    heading, *texts = plain
    if measured.column.cut is Cut.END:
        cut = [_cut_text(text, measured.width, head_share=1.0) for text in texts]
    else:
        cut = cut_apart(texts, measured.width)
    return [
        cell if text == cell.plain else Text(text, style=cell.style)
        for text, cell in zip([heading, *cut], cells, strict=True)
    ]


def _cut_text(text: str, width: int, head_share: float) -> str:
    if cell_len(text) <= width:
        return text
    head = round((width - 1) * head_share)
    tail = width - 1 - head
    return _beginning(text, head) + _CUT + _beginning(text[::-1], tail)[::-1]


def _beginning(text: str, width: int) -> str:
    """As much of the text as fits into the width; some characters are two cells wide."""
    if text.isascii():
        return text[:width]
    used = 0
    for index, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return text[:index]
    return text
