"""Tables that fit their terminal."""

import pytest
from rich.text import Text

from duetime.cli.output.columns import Column, Cut, cut_apart, fit
from duetime.cli.output.layout import table_lines

UUIDS = [
    "01a1e5f5-3acc-74f2-8203-515d9e427f1e",
    "01a1e5f5-3acc-74f3-8203-e4d29292a549",
    "01a1e5f5-3acc-74f4-8203-7ba55b5ac65e",
]
ORDERS = [f"order-2030-000000{number}-customer-reminder-by-mail" for number in (17, 18, 19)]


def texts(*cells: str) -> list[Text]:
    return [Text(cell) for cell in cells]


@pytest.mark.parametrize("ids", [UUIDS, ORDERS, ["a" * 60 + end for end in ("1", "2", "3")]])
@pytest.mark.parametrize("width", [20, 24, 30])
def test_shortened_ids_can_be_told_apart(ids: list[str], width: int) -> None:
    cut = cut_apart(ids, width)
    assert len(set(cut)) == len(ids)
    assert all(len(id) == width and "…" in id for id in cut)


def test_a_column_of_ids_takes_the_width_that_they_need() -> None:
    columns = [Column("id", Cut.APART, least=6), Column("text", Cut.END, least=4)]
    rows = [texts(id, "x" * 100) for id in ORDERS]
    table = fit(columns, rows, 40)
    assert len({row[0].plain for row in table.rows}) == len(ORDERS)
    assert sum(table.widths) + 2 == 40
    assert table.is_cut


def test_short_cells_are_left_alone() -> None:
    columns = [
        Column("id", Cut.APART, least=9),
        Column("status"),
        Column("error", Cut.END, least=9),
    ]
    lines = table_lines(columns, [texts("a", "failed", "HTTP 503")], 80)
    assert [line.plain for line in lines] == ["id  status  error", "a   failed  HTTP 503"]


def test_the_least_useful_columns_leave_one_by_one() -> None:
    columns = [Column("a"), Column("b", extra=1), Column("c", extra=2)]
    row = texts("x" * 10, "y" * 10, "z" * 10)
    shown = [fit(columns, [row], width).headings for width in (34, 33, 22, 21, 5)]
    assert shown == [["a", "b", "c"], ["a", "b"], ["a", "b"], ["a"], ["a"]]


def test_columns_without_content_are_hidden() -> None:
    columns = [Column("id"), Column("error", hidden_if_empty=True)]
    assert fit(columns, [texts("1", "-"), texts("2", "")], 80).headings == ["id"]
    assert fit(columns, [texts("1", "-"), texts("2", "no")], 80).headings == ["id", "error"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    columns = [
        Column("id", Cut.APART, least=9, enough=36),
        Column("status"),
        Column("url", Cut.MIDDLE, least=12, enough=28),
        Column("error", Cut.WRAP, least=20, enough=20),
    ]
    rows = [
        texts(
            id, "completed", f"https://example.com/{'path/' * 50}", f"no: {'word ' * 9}{'x' * 99}"
        )
        for id in UUIDS
    ]
    lines = table_lines(columns, rows, width)
    assert max(line.cell_len for line in lines) <= width


def test_wide_characters_count_twice() -> None:
    columns = [Column("id", Cut.APART, least=9), Column("status")]
    lines = table_lines(columns, [texts("時" * 30 + "一", "ok"), texts("時" * 30 + "二", "ok")], 30)
    assert max(line.cell_len for line in lines) <= 30
    assert len({line.plain for line in lines}) == 3
