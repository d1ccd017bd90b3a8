"""Fields and tables: aligned on a terminal, one plain line each in a file or a pipe."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from duetime.cli.terminal import console

GAP = "  "
MIN_VALUE_WIDTH = 20

Row = Sequence[Text]

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


def print_table(headings: Sequence[str], rows: Sequence[Row]) -> None:
    """Columns, of which the last may wrap; in a file or a pipe, cells separated by tabs."""
    output = console()
    if output.is_terminal:
        for line in table_lines(headings, rows, output.width):
            output.print(line, soft_wrap=True)
        return
    print("\t".join(headings))
    for cells in rows:
        print("\t".join(cell.plain for cell in cells))


def table_lines(headings: Sequence[str], rows: Sequence[Row], width: int) -> list[Text]:
    """The lines of a table on a terminal of that width."""
    lines: list[Row] = [[Text(heading, style="bold") for heading in headings], *rows]
    widths = [max(cells[column].cell_len for cells in lines) for column in range(len(headings))]
    table: list[Text] = []
    for cells in lines:
        before = Text()
        for cell, cell_width in zip(cells[:-1], widths, strict=False):
            before.append_text(cell)
            before.append(" " * (cell_width - cell.cell_len) + GAP)
        table.extend(_hanging(before, cells[-1], width))
    return table


def _hanging(before: Text, value: Text, width: int) -> Iterator[Text]:
    """The value to the right of `before`, wrapped between words only. A long URL or id runs over
    the edge in one piece, so that it can be copied."""
    value_width = max(width - before.cell_len, MIN_VALUE_WIDTH)
    for line in _broken_between_words(value, value_width):
        line.rstrip()
        yield Text.assemble(before, line)
        before = Text(" " * before.cell_len)


def _broken_between_words(value: Text, width: int) -> Iterable[Text]:
    offsets = []
    used = 0
    for word in _WORD.finditer(value.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            offsets.append(word.start())
            used = 0
        used += cell_len(word[0])
    return value.divide(offsets)
