"""Options that take a number: wrong values are refused in our own words."""

import pytest
from typer.testing import CliRunner

from duetime.cli.main import command_line
from tests.unit.cli.scripted_server import invoke

OPTIONS = [
    (("listen", "--status"), "a whole number from 200 to 599"),
    (("listen", "--port"), "a whole number from 0 to 65535"),
    (("dev", "--port"), "a whole number from 0 to 65535"),
    (("serve", "--port"), "a whole number from 0 to 65535"),
    (("serve", "--workers"), "a whole number of at least 1"),
    (("list", "--limit"), "a whole number from 1 to 1000"),
    (("list", "--offset"), "a whole number of at least 0"),
    (("create", "--max-retries"), "a whole number of at least 0"),
    (("update", "ID", "--max-retries"), "a whole number of at least 0"),
    (("create", "--backoff-multiplier"), "a number of at least 1"),
    (("namespaces", "set", "orders", "--shards"), "a whole number from 1 to 4096"),
    (("bus", "tail", "--last"), "a whole number from 0 to"),
    (("bus", "tail", "--count"), "a whole number of at least 1"),
]


@pytest.mark.parametrize("value", ["abc", "-1", "", "nan", "9e999"])
@pytest.mark.parametrize(("option", "expected"), OPTIONS)
def test_a_wrong_number_is_refused_with_the_range(
    option: tuple[str, ...], expected: str, value: str
) -> None:
    result = CliRunner().invoke(command_line(), [*option, value])
    assert result.exit_code == 2
    words = " ".join(result.stderr.replace("│", " ").split())
    assert f"Invalid value for '{option[-1]}': {value!r} is not {expected}" in words


@pytest.mark.parametrize(("option", "expected"), OPTIONS)
def test_help_names_no_type_of_a_library(option: tuple[str, ...], expected: str) -> None:
    *command, _ = option
    shown = CliRunner().invoke(command_line(), [*command, "--help"]).stdout
    assert "range" not in shown


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("limit", ["1", "1000"])
def test_the_bounds_of_a_range_are_taken(limit: str) -> None:
    assert invoke("list", "--namespace", "orders", "--limit", limit).exit_code == 0
