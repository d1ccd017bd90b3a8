"""Fields and tables: aligned on a terminal, one plain line each in a file or a pipe."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from rich.cells import cell_len, chop_cells
from rich.text import Text

from duetime.cli.output.columns import GAP, Column, Row, fit
from duetime.cli.terminal import console

MIN_VALUE_WIDTH = 20

Headings = Sequence[str | Column]

_WORD = re.compile(r"\S+\s*")


def print_fields(fields: Sequence[tuple[str, Text]]) -> None:
    """Names and values in two columns; `name: value` lines in a file or a pipe."""
    output = console()
    if not output.is_terminal:
        for name, value in fields:
            print(f"{name}: {value.plain}".rstrip())
        return
    width = max((len(name) for name, _ in fields), default=0)
    for name, value in fields:
        for line in _hanging(Text(name.ljust(width) + GAP, style="dim"), value, output.width):
            output.print(line, soft_wrap=True)


def print_table(headings: Headings, rows: Sequence[Row], *, wide: bool = False) -> bool:
    """A table that fits the terminal, unless it is to be `wide`. In a file or a pipe it is
    complete, with tabs between the cells. Returns whether any text was cut or
    a column left out."""
    output = console()
    if output.is_terminal:
        lines, is_cut = _table(headings, rows, None if wide else output.width)
        for line in lines:
            output.print(line, soft_wrap=True)
        return is_cut
    print("\t".join(_column(heading).heading for heading in headings))
    for cells in rows:
        print("\t".join(cell.plain for cell in cells))
    return False


def table_lines(headings: Headings, rows: Sequence[Row], width: int) -> list[Text]:
    """The lines of a table on a terminal of that width."""
    return _table(headings, rows, width)[0]


def _table(headings: Headings, rows: Sequence[Row], width: int | None) -> tuple[list[Text], bool]:
    table = fit([_column(heading) for heading in headings], rows, width)
    lines: list[Row] = [[Text(heading, style="bold") for heading in table.headings], *table.rows]
    shown: list[Text] = []
    for cells in lines:
        before = Text()
        for cell, cell_width in zip(cells[:-1], table.widths, strict=False):
            before.append_text(cell)
            before.append(" " * (cell_width - cell.cell_len) + GAP)
        if table.wraps and width is not None:
            shown.extend(_hanging(before, cells[-1], width, folds=True))
        else:
            shown.append(Text.assemble(before, cells[-1]))
    return shown, table.is_cut


def _column(heading: str | Column) -> Column:
    return heading if isinstance(heading, Column) else Column(heading)


def _hanging(before: Text, value: Text, width: int, *, folds: bool = False) -> Iterator[Text]:
    """The value to the right of `before`, wrapped between words. A long URL or id runs over the
    edge in one piece, so that it can be copied, unless the value `folds`."""
    value_width = max(width - before.cell_len, MIN_VALUE_WIDTH)
    for line in _broken_between_words(value, value_width, folds=folds):
        line.rstrip()
        yield Text.assemble(before, line)
        before = Text(" " * before.cell_len)


def _broken_between_words(value: Text, width: int, *, folds: bool) -> Iterable[Text]:
    offsets = []
    used = 0
    for word in _WORD.finditer(value.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            offsets.append(word.start())
            used = 0
        used += cell_len(word[0])
        if folds and cell_len(word[0].rstrip()) > width:
            pieces = list(accumulate(len(piece) for piece in chop_cells(word[0], width)))
            offsets += [word.start() + end for end in pieces[:-1]]
            used = cell_len(word[0][pieces[-2] :])
    return value.divide(offsets)
