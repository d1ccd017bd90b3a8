"""JSON that people read and write."""

import pytest

from duetime.domain.errors import InvalidInput
from duetime.web.forms.json_text import formatted, read_json

EXACT = '{"z":12345678901234567890.12345678901234567890,"a":[1E+5,-0.0],"z":"\\u00e9\\/é"}'


def test_numbers_texts_and_order_stay_as_they_are() -> None:
    shown = formatted(EXACT.encode())
    assert '  "z": 12345678901234567890.12345678901234567890,\n' in shown
    assert bytes(read_json("payload", shown)).decode() == EXACT


def test_half_of_a_surrogate_pair_is_shown_as_it_was_written() -> None:
    assert formatted(rb'["\ud800"]') == r'["\ud800"]'


def test_long_and_deep_json_is_not_blown_up() -> None:
    deep = "[" * 60 + ",".join(["1"] * 20_000) + "]" * 60
    assert formatted(deep.encode()) == deep


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{\n  "a": 1,\n  "é" 2}', "(line 3, column 7)"),
        ("nul", "ends too early"),
        ("[1,]", "trailing comma in array (line 1, column 4)"),
        ("NaN", "(line 1, column 1)"),
        ("[" * 70 + "]" * 70, "nested deeper"),
        ("", "is empty"),
    ],
)
def test_errors_tell_where(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_json("payload", text)
    assert refused.value.field == "payload"
    assert problem in refused.value.problem
