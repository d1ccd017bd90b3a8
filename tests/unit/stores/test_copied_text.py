"""Text of a copy that PostgreSQL cannot hold, and damaged text."""

import msgspec
import pytest

from duetime.domain.errors import CopyRefused
from duetime.stores.copying.checksums import Checksums, Group, total_of
from duetime.stores.copying.ports import Batch, Position
from duetime.stores.copying.tables import Table, storable_rows, text_of

NOWHERE = Position("namespaces", [])


def test_rows_without_nul_are_left_alone() -> None:
    rows = [("orders", 4, '{"text": "\N{ROCKET}\\u0000"}')]
    assert storable_rows(Table.NAMESPACES, rows) is rows


def test_nul_in_a_message_is_replaced() -> None:
    entry = ("1", 2, "a\0b", "create", "ok", None, None, None, None, None)
    (row,) = storable_rows(Table.AUDIT_LOG, [entry])
    assert row == ("1", 2, "a\N{REPLACEMENT CHARACTER}b", *entry[3:])


@pytest.mark.parametrize("damaged", [b'{"url": "\xff"}', b'{"url": "\0"}', b'{"a": 1}\0'])
def test_damaged_json_never_becomes_readable(damaged: bytes) -> None:
    text = text_of("document", damaged)
    (row,) = storable_rows(Table.CREDENTIALS, [("id", text, None)])
    assert "\0" not in row[1]
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(row[1])


def test_a_name_is_never_changed() -> None:
    with pytest.raises(CopyRefused, match="cannot hold a name with a NUL character"):
        storable_rows(Table.NAMESPACES, [("a\0b", 4, "{}")])
    with pytest.raises(CopyRefused, match="a namespace is not UTF-8"):
        text_of("namespace", b"\xff")


def test_checksums_do_not_depend_on_the_order() -> None:
    rows = [(f"n{number}", number, "{}") for number in range(5)]
    results = []
    for some in (rows, rows[::-1]):
        checksums = Checksums()
        checksums.add(Batch(Table.NAMESPACES, some[:2], NOWHERE))
        checksums.add(Batch(Table.NAMESPACES, some[2:], NOWHERE))
        results.append(checksums.result())
    assert results[0] == results[1]
    assert results[0][Group(Table.NAMESPACES)].rows == 5


def test_checksums_see_every_column_and_every_repeat() -> None:
    seen = set()
    for rows in ([("n", 1, "{}")], [("n", 2, "{}")], [("n", 1, "{}")] * 2, [("m", 1, "{}")]):
        checksums = Checksums()
        checksums.add(Batch(Table.NAMESPACES, rows, NOWHERE))
        seen.add(total_of(checksums.result().values()))
    assert len(seen) == 4
