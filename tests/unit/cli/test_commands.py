"""The command line without a server: help, usage and errors."""

import json
import socket
import ssl
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from typer.testing import CliRunner, Result

from duetime import __version__
from duetime.cli.main import command_line
from duetime.settings.definitions import SETTINGS

COMMANDS = [
    *("dev", "serve", "listen", "create", "get", "list", "update", "cancel", "health"),
    *("redrive", "explain", "import", "export", "keys", "secrets", "open"),
    *("namespaces", "endpoints", "bus", "migrate", "cluster", "audit", "backup", "restore"),
]
NOBODY = "http://127.0.0.1:1"
ID = "01980000-0000-7000-8000-000000000000"


@pytest.fixture(autouse=True)
def _empty_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the .env, key file and variables of the machine that runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("DUETIME_API_KEY", "DUETIME_URL", *SETTINGS):
        monkeypatch.delenv(name, raising=False)


def invoke(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command_line(), arguments, input=stdin)


def refused(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    """The exit status, and the single line on standard error."""
    result = invoke(*arguments, stdin=stdin)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return result.exit_code, line


def test_version() -> None:
    assert invoke("--version").stdout == f"duetime {__version__}\n"


def test_duetime_without_arguments_lists_the_commands() -> None:
    text = invoke().output
    for command in COMMANDS:
        assert f" {command} " in text
    assert "--install-completion" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"duetime {command}" in result.stdout.replace("Usage: root", "Usage: duetime")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "--at / --in: one of them is needed"),
        (["--in", "1s", "--at", "2030-01-01T00:00:00Z"], "--at / --in: give one of them, not both"),
        (["--in", "10"], '--in: must be a duration such as "500ms", "30s", "1h30m" or "7d"'),
        (["--at", "tomorrow"], "--at: must be a date and time in ISO 8601"),
        (["--at", "2030-01-01T00:00:00"], "--at: must have a UTC offset"),
        (["--in", "1s", "--payload", "{nope"], "--payload: is not valid JSON: "),
        (["--in", "1s", "--payload", "@missing.json"], "--payload: missing.json: No such file"),
        (["--in", "1s", "--payload", "-"], "--payload: is not valid JSON: "),
        (["--in", "1s", "--metadata", "{nope"], "--metadata: is not valid JSON: "),
        (["--at", "2030-02-31T00:00:00Z"], "--at: 2030-02-31 does not exist, that month has 28"),
        (["--in", "1s", "--header", "nope"], "--header: 'nope' is not NAME=VALUE"),
        (["--in", "1s", "--header", "=x"], "--header: '=x' is not NAME=VALUE"),
        (["--in", "1s", "--payload", "1", "--no-payload"], "--payload / --no-payload: give one"),
        (["--in", "1s", "--max-interval", "x"], "--max-interval: must be a duration"),
        (["--in", "1s", "--max-duration", "x"], "--max-duration: must be a duration"),
        (["--in", "1s", "--initial-interval", "x"], "--initial-interval: must be a duration"),
        (["--in", "1s", "--server", "localhost:8080"], "'localhost:8080' is not the URL of a"),
    ],
)
def test_create_refuses_wrong_options(arguments: list[str], line: str) -> None:
    code, error = refused("create", "--url", "http://127.0.0.1/", *arguments, stdin="")
    assert code == 2
    assert error.startswith(line)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "--url / --nats-topic: one of them is needed"),
        (["--url", "http://x", "--nats-topic", "a"], "--url / --nats-topic: give one"),
        (["--url", "http://x", "--nats-key", "k"], "--nats-key: is for callbacks over NATS"),
        (["--url", "http://x", "--ack"], "--ack: is for callbacks over NATS"),
        (["--nats-topic", "a", "--id", "b"], "--nats-topic: cannot be used with the v1 API"),
    ],
)
def test_create_needs_exactly_one_destination(arguments: list[str], line: str) -> None:
    code, error = refused("create", *arguments, "--in", "1h")
    assert code == 2
    assert error.startswith(line)


@pytest.mark.parametrize(
    "arguments",
    [
        ["health"],
        ["list"],
        ["get", ID],
        ["cancel", ID],
        ["update", ID, "--in", "1h"],
        ["create", "--url", "http://127.0.0.1/", "--in", "1s"],
        ["get", "order-17"],
        ["list", "--namespace", "orders"],
        ["import", "-"],
        ["export"],
        ["redrive", "order-17"],
    ],
)
def test_an_unreachable_server_is_reported_in_one_line(arguments: list[str]) -> None:
    code, line = refused(*arguments, "--server", NOBODY)
    assert code == 3
    assert line.startswith(
        f"no server at {NOBODY}: connection refused (`make run` or `duetime dev`"
    )


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (socket.gaierror(-2, "Name or service not known"), "host name not found"),
        (ssl.SSLError(1, "wrong version number"), "the TLS handshake failed"),
        (OSError(113, "No route to host"), "no route to host"),
    ],
)
def test_the_reason_why_a_server_is_unreachable_is_reported(
    error: OSError, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise httpx.ConnectError("failed") from error

    monkeypatch.setattr(httpx.Client, "request", refuse)
    code, line = refused("health", "--server", "https://timers.example")
    assert code == 3
    assert line.startswith(f"no server at https://timers.example: {cause}")


def test_the_port_in_dotenv_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=1\n")
    assert refused("health")[1].startswith("no server at http://127.0.0.1:1: ")
    (tmp_path / ".env").write_text("PORT=1\nDUETIME_URL=http://127.0.0.1:2\n")
    assert refused("health")[1].startswith("no server at http://127.0.0.1:2: ")


@pytest.mark.parametrize("id", ["", "x" * 256])
def test_an_impossible_id_is_not_sent(id: str) -> None:
    assert refused("get", id, "--server", NOBODY) == (2, "ID: must have 1 to 255 characters")


def test_update_needs_an_option_that_changes_something() -> None:
    code, line = refused("update", ID, "--server", NOBODY)
    assert code == 2
    assert line.endswith(": give at least one of them")
    for option in ("--at", "--metadata", "--no-payload", "--max-retries", "--max-duration"):
        assert option in line.split(" / ")[:-1] or f"{option}:" in line


def test_serve_reports_each_wrong_setting_on_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETENTION_DAYS", "long")
    result = invoke("serve", "--config", "missing.toml")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert [line.split()[0] for line in result.stderr.splitlines()] == [
        "missing.toml",
        "API_KEY",
        "RETENTION_DAYS='long':",
    ]


@pytest.mark.parametrize("url", ["memory:", "sqlite:///timers.db"])
def test_several_workers_need_a_store_that_they_can_share(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "an-api-key-for-tests-of-32-characters-or-more")
    monkeypatch.setenv("DATABASE_URL", url)
    code, line = refused("serve", "--workers", "2")
    assert code == 2
    assert line.startswith("WORKERS='2': more than one process needs a store they can share")


@pytest.mark.parametrize("command", [["cluster"], ["cluster", "--watch"], ["cluster", "--json"]])
@pytest.mark.parametrize("url", ["memory:", "sqlite:///timers.db"])
def test_a_store_of_a_single_process_has_no_cluster(
    command: list[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    code, line = refused(*command)
    assert code == 2
    assert "serves a single process" in line
    assert "`duetime health`" in line


def test_a_cluster_cannot_be_watched_as_json() -> None:
    code, line = refused("cluster", "--watch", "--json")
    assert (code, line) == (2, "--watch / --json: give one of them, not both")


def test_timers_in_memory_cannot_be_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "memory:")
    assert refused("audit") == (2, "timers are kept in memory: only the server itself can see them")
    assert invoke("migrate").stdout == "timers are kept in memory: there is no schema\n"
    assert json.loads(invoke("migrate", "--json").stdout) == {
        "store": "memory",
        "version": 0,
        "newest": 0,
        "applied": [],
        "missing": [],
    }


@pytest.mark.parametrize("command", ["audit", "migrate", "cluster"])
def test_commands_that_open_the_store_report_wrong_settings(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://somewhere/else")
    monkeypatch.setenv("WORKERS", "7")
    code, line = refused(command)
    assert code == 2
    assert line.startswith("DATABASE_URL=")


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "No such file or directory"), (b"\xff\n", "is not UTF-8")]
)
def test_audit_reports_an_unreadable_file_of_timers(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "ids.txt").write_bytes(content)
    code, line = refused("audit", "--accepted", "ids.txt")
    assert code == 2
    assert line.startswith("--accepted: ids.txt")
    assert problem in line
