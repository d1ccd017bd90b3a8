"""`duetime audit-log`: one page of the audit log, and entries as they are made."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from duetime.cli.commands.security import audit_follower
from duetime.cli.main import command_line
from tests.unit.cli.scripted_server import ScriptedServer, invoke, refusal, refuse_connection

PATH = "/api/v1/audit-log"


def entry(id: str, at: str = "2030-01-01T00:00:00Z", **changes: object) -> dict[str, object]:
    return {
        "id": id,
        "at": at,
        "actor": "billing",
        "keyId": "k7",
        "address": "192.0.2.7",
        "action": "timer.cancel",
        "namespace": "orders",
        "target": f"order-{id}",
        "result": "ok",
        "details": None,
        **changes,
    }


def page(*entries: dict[str, object], cursor: str | None = None) -> dict[str, object]:
    return {"entries": list(entries), "nextCursor": cursor}


@pytest.fixture(autouse=True)
def polls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_follower, "POLL_SECONDS", 0.0)


def press_ctrl_c(request: httpx.Request) -> httpx.Response:
    raise KeyboardInterrupt


def follow(server: ScriptedServer, *answers: object, options: tuple[str, ...] = ()) -> list[str]:
    """The ids that are shown while the server answers like this."""
    for answer in answers:
        server.answer("GET", PATH, answer)
    server.react("GET", PATH, press_ctrl_c)
    result = invoke("audit-log", "--follow", "--json", *options)
    assert result.exit_code == 0
    return [json.loads(line)["id"] for line in result.stdout.splitlines()]


def test_a_page_is_a_table_with_the_way_to_the_next_one(server: ScriptedServer) -> None:
    failed = entry("2", result="TIMER_NOT_FOUND", details="dueBefore=2030-01-01T00:00:00Z")
    server.answer("GET", PATH, page(entry("1"), failed, cursor="a-b="))
    result = invoke("audit-log")
    assert result.exit_code == 0
    heading, first, second, note = result.stdout.splitlines()
    assert heading.split("\t") == [
        *("at", "actor", "key", "action", "namespace", "target", "result", "address", "details")
    ]
    assert first.split("\t") == [
        *("2030-01-01T00:00:00Z", "billing", "k7", "timer.cancel", "orders", "order-1", "ok"),
        *("192.0.2.7", "-"),
    ]
    assert "TIMER_NOT_FOUND" in second
    assert note == "2 entries; more with --cursor a-b="


def test_an_empty_log_is_said(server: ScriptedServer) -> None:
    server.answer("GET", PATH, page())
    assert invoke("audit-log").stdout == "0 entries\n"


def test_json_is_the_servers_data(server: ScriptedServer) -> None:
    server.answer("GET", PATH, page(entry("1")))
    assert json.loads(invoke("audit-log", "--json").stdout) == page(entry("1"))


def test_options_become_parameters(server: ScriptedServer) -> None:
    server.answer("GET", PATH, page())
    result = invoke(
        *("audit-log", "--actor", "billing", "--action", "timer.cancel", "--namespace", "a b"),
        *("--target", "t", "--since", "2030-01-01T00:00:00+01:00", "--limit", "7"),
        *("--until", "2031-01-01T00:00:00Z", "--cursor", "c"),
    )
    assert result.exit_code == 0
    assert dict(server.requests[0].url.params) == {
        "actor": "billing",
        "action": "timer.cancel",
        "namespace": "a b",
        "target": "t",
        "from": "2029-12-31T23:00:00Z",
        "until": "2031-01-01T00:00:00Z",
        "cursor": "c",
        "limit": "7",
    }


def test_since_may_be_a_duration(server: ScriptedServer) -> None:
    server.answer("GET", PATH, page())
    assert invoke("audit-log", "--since", "24h").exit_code == 0
    assert "from" in server.requests[0].url.params


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--since", "yesterday"),
            "--since: must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z, or a "
            "duration such as 24h\n",
        ),
        (("--until", "1h"), "--until: must be a date and time in ISO 8601"),
        (("--follow", "--until", "2031-01-01T00:00:00Z"), "--follow: goes on with new entries"),
        (("--follow", "--cursor", "c"), "--follow: goes on with new entries"),
    ],
)
def test_wrong_options_are_refused(
    server: ScriptedServer, arguments: tuple[str, ...], problem: str
) -> None:
    result = invoke("audit-log", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(problem)
    assert server.requests == []


def test_the_servers_refusal_is_shown(server: ScriptedServer) -> None:
    message = "this key lacks the role 'admin'"
    server.answer("GET", PATH, refusal("FORBIDDEN", message), status=403)
    for follow in ((), ("--follow",)):
        result = invoke("audit-log", *follow)
        assert (result.exit_code, result.stderr) == (1, f"{message}\n")


def test_parameters_are_named_as_options(server: ScriptedServer) -> None:
    message = "cursor is of another list: actor, target, from and until must be the same"
    server.answer("GET", PATH, refusal("INVALID_INPUT", message), status=400)
    shown = invoke("audit-log").stderr
    assert shown == (
        "--cursor is of another list: --actor, --target, --since and --until must be the same\n"
    )


def test_control_characters_cannot_drive_the_terminal(server: ScriptedServer) -> None:
    for _ in range(3):
        server.answer("GET", PATH, page(entry("1", target="a\x1b[2Jb\nc")))
    server.react("GET", PATH, press_ctrl_c)
    for follow in ((), ("--follow",)):
        shown = invoke("audit-log", *follow).stdout
        assert "a\\x1b[2Jb\\nc" in shown
        assert "\x1b" not in shown


def test_follow_shows_the_newest_last_in_readable_lines(server: ScriptedServer) -> None:
    second = entry(
        *("2", "2030-01-01T00:00:01Z"),
        actor="API_KEY",
        keyId=None,
        details="force",
        result="NAMESPACE_NOT_EMPTY",
    )
    server.answer("GET", PATH, page(second, entry("1")))
    server.react("GET", PATH, press_ctrl_c)
    result = invoke("audit-log", "--follow")
    assert result.stdout.splitlines() == [
        "2030-01-01T00:00:00Z  timer.cancel     ok  orders/order-1  by billing (k7)  "
        "from 192.0.2.7",
        "2030-01-01T00:00:01Z  timer.cancel     NAMESPACE_NOT_EMPTY  orders/order-2  by API_KEY  "
        "from 192.0.2.7  (force)",
    ]


def test_follow_shows_each_entry_once_also_late_ones(server: ScriptedServer) -> None:
    first = entry("1", at="2030-01-01T00:00:10Z")
    late = entry("2", at="2030-01-01T00:00:09Z")
    third = entry("3", at="2030-01-01T00:00:30Z")
    shown = follow(
        server,
        page(first),
        page(first),
        page(first),
        page(first, late),
        page(third, first, late),
        page(third),
        options=("--actor", "billing"),
    )
    assert shown == ["1", "2", "3"]
    asked = [request.url.params for request in server.requests]
    assert {params["actor"] for params in asked} == {"billing"}
    # Each look overlaps with the one before.
    assert asked[1]["from"] == "2030-01-01T00:00:00Z"
    assert asked[-1]["from"] == "2030-01-01T00:00:20Z"


def test_follow_takes_older_entries_that_were_left_out_at_first_for_old(
    server: ScriptedServer,
) -> None:
    older, newest = entry("1", at="2030-01-01T00:00:00Z"), entry("2", at="2030-01-01T00:00:01Z")
    new = entry("3", at="2030-01-01T00:00:02Z")
    shown = follow(
        server,
        page(newest, cursor="c"),
        page(newest, older),
        page(new, newest, older),
        options=("--limit", "1"),
    )
    assert shown == ["2", "3"]


def test_follow_reads_all_pages_of_a_burst(server: ScriptedServer) -> None:
    burst = [entry(str(n), at=f"2030-01-01T00:00:{n:02}Z") for n in range(1, 5)]
    shown = follow(
        server,
        page(burst[0]),
        page(burst[0]),
        page(burst[3], burst[2], cursor="c"),
        page(burst[1], burst[0]),
    )
    assert shown == ["1", "2", "3", "4"]


def test_follow_begins_with_an_empty_log(server: ScriptedServer) -> None:
    assert follow(server, page(), page(), page(entry("1"))) == ["1"]


def test_follow_survives_a_restart_of_the_server(server: ScriptedServer) -> None:
    first = entry("1", at="2030-01-01T00:00:00Z")
    during = entry("2", at="2030-01-01T00:00:20Z")
    after = entry("3", at="2030-01-01T00:01:00Z")
    for answer in (page(first), page(first)):
        server.answer("GET", PATH, answer)
    for _ in range(3):
        server.react("GET", PATH, refuse_connection)
    server.answer("GET", PATH, refusal("SERVICE_UNAVAILABLE", "starting"), status=503)
    # The entries that a node had to keep in memory come after the rest.
    for answer in (page(after, first), page(after, during, first)):
        server.answer("GET", PATH, answer)
    server.react("GET", PATH, press_ctrl_c)
    result = invoke("audit-log", "--follow", "--json")
    assert result.exit_code == 0
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["1", "3", "2"]
    away, back = result.stderr.splitlines()
    assert away.startswith("no server at http://127.0.0.1:1: connection refused")
    assert away.endswith("; waiting for it")
    assert back == "the server is back"
    assert server.requests[-1].url.params["from"] == "2029-12-31T23:59:50Z"


def test_a_server_that_was_never_there_is_not_waited_for(server: ScriptedServer) -> None:
    server.react("GET", PATH, refuse_connection)
    result = invoke("audit-log", "--follow")
    assert result.exit_code == 3
    assert result.stderr.startswith("no server at http://127.0.0.1:1: connection refused")


def test_the_help_tells_the_two_audits_apart() -> None:
    runner, commands = CliRunner(), command_line(["audit", "audit-log"])
    for name, other in (("audit", "duetime audit-log"), ("audit-log", "duetime audit")):
        text = " ".join(runner.invoke(commands, [name, "--help"]).stdout.split())
        assert f"{other} is something else" in text.replace("`", "").replace("│ │ ", "")
