"""Fields and tables: laid out on a terminal, plain and one line each for programs."""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from duetime.cli.terminal import console

GAP = "  "
MIN_VALUE_WIDTH = 20

Row = Sequence[Text]

_WORD = re.compile(r"\S+\s*")


def print_fields(fields: Sequence[tuple[str, Text]]) -> None:
    """Names and values below each other, or `name: value` lines into a file or a pipe."""
    output = console()
    if not output.is_terminal:
        for name, value in fields:
            print(f"{name}: {value.plain}".rstrip())
        return
    width = max((len(name) for name, _ in fields), default=0)
    for name, value in fields:
        _print_hanging(output, Text(name.ljust(width) + GAP, style="dim"), value)


def print_table(headings: Sequence[str], rows: Sequence[Row]) -> None:
    """Columns, the last of which may run over several lines; in a file or a pipe they are
    separated by tabs."""
    output = console()
    lines: list[Row] = [[Text(heading, style="bold") for heading in headings], *rows]
    if not output.is_terminal:
        for cells in lines:
            print("\t".join(cell.plain for cell in cells))
        return
    widths = [max(cells[column].cell_len for cells in lines) for column in range(len(headings))]
    for cells in lines:
        before = Text()
        for cell, width in zip(cells[:-1], widths, strict=False):
            before.append_text(cell)
            before.append(" " * (width - cell.cell_len) + GAP)
        _print_hanging(output, before, cells[-1])


def _print_hanging(output: Console, before: Text, value: Text) -> None:
    """The value beside what stands before it, broken between words only: a URL or an id that is
    too long runs over the edge in one piece, so that it can be copied."""
    width = max(output.width - before.cell_len, MIN_VALUE_WIDTH)
    for line in _broken_between_words(value, width):
        line.rstrip()
        output.print(Text.assemble(before, line), soft_wrap=True)
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
