"""`duetime redrive` against a scripted server."""

import pytest

from tests.unit.cli.scripted_server import ScriptedServer, invoke, refusal

REDRIVE = "/api/v1/timers/redrive"


@pytest.fixture
def _asked_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.cli.commands.timers.redrive.can_ask", lambda: True)


def test_each_id_is_redriven_and_reported(server: ScriptedServer) -> None:
    server.answer("POST", REDRIVE, {"matched": 1, "redriven": 1})
    server.answer("POST", REDRIVE, refusal("TIMER_NOT_FOUND", "timer not found"), status=404)
    server.answer("POST", REDRIVE, {"matched": 1, "redriven": 1})
    result = invoke("redrive", "a", "b/c", "d", "--namespace", "orders")
    assert result.exit_code == 1
    assert result.stdout == "a: redriven\nd: redriven\n"
    assert result.stderr == "b/c: timer not found\n"
    assert server.bodies("POST", REDRIVE) == [
        {"namespace": "orders", "timerId": id, "dryRun": False} for id in ("a", "b/c", "d")
    ]


def test_the_usage_allows_several_ids() -> None:
    assert "[OPTIONS] [ID]..." in invoke("redrive", "--help").stdout


def test_a_selection_is_counted_and_then_redriven(server: ScriptedServer) -> None:
    server.answer("POST", REDRIVE, {"matched": 1_234, "redriven": 0})
    server.answer("POST", REDRIVE, {"matched": 1_234, "redriven": 1_230})
    chosen = ("--error-contains", "HTTP 503", "--due-before", "2030-01-01T00:00:00Z")
    result = invoke("redrive", *chosen, "--yes")
    assert (result.exit_code, result.stdout) == (0, "redriven: 1,230 timers\n")
    body = {
        "namespace": "default",
        "errorContains": "HTTP 503",
        "dueBefore": "2030-01-01T00:00:00Z",
    }
    assert server.bodies("POST", REDRIVE) == [{**body, "dryRun": True}, body]


@pytest.mark.usefixtures("_asked_on_a_terminal")
@pytest.mark.parametrize(("answer", "requests"), [("y", 2), ("n", 1), ("", 1)])
def test_a_person_at_a_terminal_is_asked(
    server: ScriptedServer, answer: str, requests: int
) -> None:
    server.answer("POST", REDRIVE, {"matched": 1_234, "redriven": 0})
    server.answer("POST", REDRIVE, {"matched": 1_234, "redriven": 1_234})
    result = invoke("redrive", "--all", stdin=f"{answer}\n".encode())
    question = "Redrive 1,234 failed timers of namespace 'default'? [y/N]"
    assert question in result.output
    assert len(server.requests) == requests
    assert result.exit_code == (0 if answer == "y" else 1)


def test_a_dry_run_changes_nothing(server: ScriptedServer) -> None:
    server.answer("POST", REDRIVE, {"matched": 1, "redriven": 0})
    result = invoke("redrive", "--all", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout == "1 failed timer of namespace 'default': nothing was redriven\n"
    (body,) = server.bodies("POST", REDRIVE)
    assert body == {"namespace": "default", "all": True, "dryRun": True}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "ID / --due-after / --due-before / --error-contains / --all: say which timers"),
        (["a", "--all"], "ID / --due-after / --due-before / --error-contains / --all: give ids"),
        (["--all"], "--yes: is needed because there is no terminal"),
        (["--due-after", "soon"], "--due-after: must be a date and time"),
    ],
)
def test_wrong_options_are_refused(
    server: ScriptedServer, arguments: list[str], problem: str
) -> None:
    result = invoke("redrive", *arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(problem)
    assert not server.requests
