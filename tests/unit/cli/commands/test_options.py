"""Options that several commands have."""

import pytest

from duetime.cli.commands.options import read_headers


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("Foo=bar", "Foo", "bar"),
        ("Foo: bar", "Foo", "bar"),
        ("X-Time=12:30", "X-Time", "12:30"),
        ("Authorization: Basic YTpi==", "Authorization", "Basic YTpi=="),
        ("Empty=", "Empty", ""),
    ],
)
def test_headers_are_read_in_either_form(text: str, name: str, value: str) -> None:
    assert read_headers([text]) == {name: value}
