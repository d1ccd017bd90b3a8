"""Filters in an address: what is written there is read as the same filter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.bulk import TimerFilter
from duetime.testing.virtual_clock import START_AT
from duetime.web.pages.filter_fields import filter_fields, filter_in
from duetime.web.request import Fields

texts = st.text(st.characters(exclude_categories=["Cs"]))


def read(text: str) -> tuple[str | None, str | None]:
    found = filter_in(Fields([("metadata", text)]), START_AT)
    return found.metadata_key, found.metadata_value


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("customer=42", "customer", "42"),
        (" customer = 42 ", "customer", "42"),
        ("a=b=c", "a", "b=c"),
        ('"a=b"=c', "a=b", "c"),
        ('" a " = c', " a ", "c"),
        (r'"say \"hi\""=c', 'say "hi"', "c"),
        ('"=c', '"', "c"),
        (r'"\ud800"=c', r'"\ud800"', "c"),
    ],
)
def test_a_key_may_be_a_json_string(text: str, key: str, value: str) -> None:
    assert read(text) == (key, value)


@given(texts, texts.map(str.strip))
def test_any_member_is_read_as_it_was_written(key: str, value: str) -> None:
    written = dict(filter_fields(TimerFilter(metadata_key=key, metadata_value=value)))
    assert read(written["metadata"]) == (key, value)


def test_a_value_with_outer_spaces_is_written_as_json() -> None:
    written = dict(filter_fields(TimerFilter(metadata_key="a", metadata_value=" b ")))
    assert written["metadata"] == 'a=" b "'
