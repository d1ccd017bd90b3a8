"""The command line without a server: help, usage, and clear refusals."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duetime import __version__
from duetime.cli.main import app

COMMANDS = ["dev", "serve", "listen", "create", "get", "list", "update", "cancel", "health"]
NOBODY = "http://127.0.0.1:1"
ID = "01980000-0000-7000-8000-000000000000"


@pytest.fixture(autouse=True)
def _empty_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No .env, no key file and no variables of the machine that runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("API_KEY", "DUETIME_API_KEY", "DUETIME_URL", "AUTH", "PORT", "DUETIME_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def invoke(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def refused(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    """Exit status and the single line on standard error."""
    result = invoke(*arguments, stdin=stdin)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return result.exit_code, line


def test_version() -> None:
    assert invoke("--version").stdout == f"duetime {__version__}\n"


def test_no_arguments_show_the_commands() -> None:
    text = invoke().output
    for command in COMMANDS:
        assert f" {command} " in text
    assert "completion" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"duetime {command}" in result.stdout.replace("Usage: root", "Usage: duetime")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "--at / --in: one of them is needed"),
        (["--in", "1s", "--at", "2030-01-01T00:00:00Z"], "--at / --in: give one of them, not both"),
        (["--in", "10"], '--in: must be a duration such as "500ms", "30s", "10m" or "1h30m"'),
        (["--at", "tomorrow"], "--at: must be a date and time in ISO 8601"),
        (["--at", "2030-01-01T00:00:00"], "--at: must have a UTC offset"),
        (["--in", "1s", "--payload", "{nope"], "--payload: is not valid JSON: "),
        (["--in", "1s", "--payload", "@missing.json"], "--payload: missing.json: No such file"),
        (["--in", "1s", "--payload", "-"], "--payload: is not valid JSON: "),
        (["--in", "1s", "--metadata", "{nope"], "--metadata: is not valid JSON: "),
        (["--in", "1s", "--header", "nope"], "--header: 'nope' is not NAME=VALUE"),
        (["--in", "1s", "--initial-interval", "x"], "--initial-interval: must be a duration"),
        (["--in", "1s", "--server", "localhost:8080"], "'localhost:8080' is not the URL of a"),
    ],
)
def test_create_refuses_what_cannot_be_meant(arguments: list[str], line: str) -> None:
    code, told = refused("create", "--url", "http://127.0.0.1/", *arguments, stdin="")
    assert code == 2
    assert told.startswith(line)


@pytest.mark.parametrize(
    "arguments",
    [
        ["health"],
        ["list"],
        ["get", ID],
        ["cancel", ID],
        ["update", ID, "--in", "1h"],
        ["create", "--url", "http://127.0.0.1/", "--in", "1s"],
    ],
)
def test_no_server_is_told_plainly(arguments: list[str]) -> None:
    code, line = refused(*arguments, "--server", NOBODY)
    assert code == 3
    assert line == f"no server at {NOBODY} (is `duetime serve` running?)"


@pytest.mark.parametrize("id", ["not/an/id", "a b", "..", "x" * 65])
def test_what_cannot_be_an_id_is_not_sent(id: str) -> None:
    assert refused("get", id, "--server", NOBODY) == (2, "ID: must be a UUID")


def test_update_needs_something_to_change() -> None:
    code, line = refused("update", ID, "--server", NOBODY)
    assert code == 2
    assert line.endswith("name what to change")


def test_serve_tells_every_problem_on_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETENTION_DAYS", "long")
    result = invoke("serve", "--config", "missing.toml")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert [line.split()[0] for line in result.stderr.splitlines()] == [
        "missing.toml",
        "API_KEY",
        "RETENTION_DAYS='long':",
    ]
