"""Numbers as people write them."""

import pytest

from duetime.domain.errors import InvalidInput
from duetime.web.forms.numbers import read_number, read_whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("1000", 1_000), ("1,000", 1_000), ("1 000 000", 1_000_000), ("1_000", 1_000)],
)
def test_whole_numbers_may_be_grouped(text: str, number: int) -> None:
    assert read_whole_number("limit", text) == number


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1.5", "1,00", "1,0000", ",1", "1e3", "٣", "9" * 20, "1 x"]
)
def test_other_texts_are_no_whole_numbers(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^limit must be a whole number$"):
        read_whole_number("limit", text)


@pytest.mark.parametrize(("text", "number"), [("2", 2.0), ("0.25", 0.25)])
def test_numbers_may_have_decimals(text: str, number: float) -> None:
    assert read_number("rate", text) == number


@pytest.mark.parametrize("text", ["", "-1", "1e9", "nan", "inf", ".5", "1.", "1,5", "9" * 16])
def test_other_texts_are_no_numbers(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^rate must be a number"):
        read_number("rate", text)
