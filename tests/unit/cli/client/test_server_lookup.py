"""The server and the key that a command uses."""

import pytest

from duetime.cli.client.server_lookup import find_key


@pytest.mark.parametrize(
    ("given", "dotenv", "environ", "source"),
    [
        ("a", {}, {}, "--api-key"),
        ("a", {"API_KEY": "b"}, {"DUETIME_API_KEY": "a", "API_KEY": "c"}, "DUETIME_API_KEY"),
        ("c", {}, {"API_KEY": "c"}, "API_KEY"),
        (None, {"API_KEY": "b"}, {}, "API_KEY in .env"),
        (None, {"API_KEY": "b", "DUETIME_API_KEY": "d"}, {}, "DUETIME_API_KEY in .env"),
    ],
)
def test_the_source_of_a_key_is_known(
    given: str | None, dotenv: dict[str, str], environ: dict[str, str], source: str
) -> None:
    key = find_key(given, dotenv, environ)
    assert key is not None
    assert key.source == source
