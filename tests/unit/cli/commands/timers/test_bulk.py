"""`duetime cancel`, `redrive`, `reschedule` and `run-now` against a scripted server."""

import json

import pytest

from tests.unit.cli.scripted_server import (
    OPERATION_ID as ID,
)
from tests.unit.cli.scripted_server import (
    OPERATIONS,
    ScriptedServer,
    invoke,
    namespaces,
    operation,
    refusal,
    refuse_connection,
)

REDRIVE = "/api/v1/timers/redrive"
FILTERS = (
    "ID / --due-after / --due-before / --id-prefix / --endpoint / --error-contains / --metadata"
    " / --all"
)

RESCHEDULE_FILTERS = FILTERS.removeprefix("ID / ")


def script(server: ScriptedServer, *operations: dict[str, object], matched: int = 1_234) -> None:
    """Answer a count, then the start and the progress of an operation."""
    server.answer("POST", OPERATIONS, {"matched": matched, "matchedIsMinimum": False})
    first, *progress = operations or (operation(),)
    server.answer("POST", OPERATIONS, first, status=202)
    for each in progress:
        server.answer("GET", f"{OPERATIONS}/{ID}", each)


@pytest.fixture
def _asked_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duetime.cli.terminal.can_ask", lambda: True)


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


def test_the_usage_of_reschedule_names_no_ids() -> None:
    assert (
        invoke("reschedule", "--help").stdout.splitlines()[1].strip()
        == "Usage: duetime reschedule [OPTIONS]"
    )


def test_several_ids_are_canceled_and_reported(server: ScriptedServer) -> None:
    server.answer("POST", "/api/v1/timers/orders/a/cancel", {"id": "a"})
    message = "cannot cancel timer with status 'completed'"
    refused = refusal("TIMER_NOT_PENDING", message)
    server.answer("POST", "/api/v1/timers/orders/b/cancel", refused, status=409)
    result = invoke("cancel", "a", "b", "--namespace", "orders")
    assert (result.exit_code, result.stdout) == (1, "a: canceled\n")
    assert result.stderr == f"b: {message}\n"
    result = invoke("cancel", "a", "b", "--namespace", "orders", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "timers": [
            {"id": "a", "done": True, "error": None},
            {"id": "b", "done": False, "error": message},
        ]
    }


def test_a_selection_is_counted_and_then_redriven(server: ScriptedServer) -> None:
    running = operation(status="running", changed=7, finishedAt=None)
    script(server, running, running, operation())
    chosen = ("--error-contains", "HTTP 503", "--due-before", "2030-01-01T00:00:00Z")
    result = invoke("redrive", *chosen, "--yes")
    assert (result.exit_code, result.stdout) == (
        0,
        "redriven: 1,230 timers; skipped, fired or changed before: 4\n",
    )
    body = {
        "action": "redrive",
        "namespace": "default",
        "filter": {"dueBefore": "2030-01-01T00:00:00Z", "errorContains": "HTTP 503"},
    }
    assert server.bodies("POST", OPERATIONS) == [{**body, "dryRun": True}, body]


@pytest.mark.parametrize(
    ("option", "member"),
    [
        (("--by", "-1h"), {"moveBy": "-1h"}),
        (("--to", "2030-01-01T01:00:00+01:00"), {"executeAt": "2030-01-01T00:00:00Z"}),
    ],
)
def test_timers_are_moved(
    server: ScriptedServer, option: tuple[str, str], member: dict[str, str]
) -> None:
    script(server, operation(skipped=0))
    result = invoke("reschedule", *option, "--id-prefix", "a", "--endpoint", "b", "--yes")
    assert (result.exit_code, result.stdout) == (0, "rescheduled: 1,230 timers\n")
    _, body = server.bodies("POST", OPERATIONS)
    assert body == {
        "action": "reschedule",
        "namespace": "default",
        "filter": {"idPrefix": "a", "endpoint": "b"},
        **member,
    }


def test_timers_are_run_now(server: ScriptedServer) -> None:
    script(server, operation(action="run-now", skipped=0))
    result = invoke("run-now", "--metadata", "customer=a=b", "--yes")
    assert (result.exit_code, result.stdout) == (0, "made due: 1,230 timers\n")
    _, body = server.bodies("POST", OPERATIONS)
    assert body == {
        "action": "run-now",
        "namespace": "default",
        "filter": {"metadata": {"key": "customer", "value": "a=b"}},
    }


def test_every_namespace_is_covered(server: ScriptedServer) -> None:
    server.answer("GET", "/api/v1/namespaces", namespaces("default", "orders"))
    server.answer("POST", OPERATIONS, {"matched": 0, "matchedIsMinimum": False})
    server.answer("POST", OPERATIONS, {"matched": 3, "matchedIsMinimum": True})
    server.answer("POST", OPERATIONS, operation(), status=202)
    result = invoke("cancel", "--all", "--all-namespaces", "--yes", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"changed": 1_230, "skipped": 4, "operations": [ID]}
    *_, started = server.bodies("POST", OPERATIONS)
    assert started == {"action": "cancel", "namespace": "orders", "all": True}


@pytest.mark.usefixtures("_asked_on_a_terminal")
@pytest.mark.parametrize(("answer", "requests"), [("y", 2), ("n", 1), ("", 1)])
def test_a_person_at_a_terminal_is_asked(
    server: ScriptedServer, answer: str, requests: int
) -> None:
    script(server)
    result = invoke("redrive", "--all", stdin=f"{answer}\n".encode())
    question = "Redrive 1,234 failed timers of namespace 'default'? [y/N]"
    assert question in result.output
    assert len(server.requests) == requests
    assert result.exit_code == (0 if answer == "y" else 1)


def test_a_dry_run_changes_nothing(server: ScriptedServer) -> None:
    script(server, matched=1)
    result = invoke("cancel", "--all", "--dry-run")
    assert result.exit_code == 0
    assert (
        result.stdout
        == "1 pending or executing timer of namespace 'default' would be canceled (dry run)\n"
    )
    (body,) = server.bodies("POST", OPERATIONS)
    assert body == {"action": "cancel", "namespace": "default", "all": True, "dryRun": True}


def test_an_operation_that_was_aborted_is_a_failure(server: ScriptedServer) -> None:
    script(server, operation(status="aborted"))
    result = invoke("redrive", "--all", "--yes")
    assert result.exit_code == 1
    assert result.stderr == f"operation {ID} aborted\n"


def test_an_operation_goes_on_when_a_lost_server_is_back(server: ScriptedServer) -> None:
    script(server, operation(status="running", changed=3_000, skipped=0, finishedAt=None))
    server.react("GET", f"{OPERATIONS}/{ID}", refuse_connection)
    result = invoke("cancel", "--all", "--yes")
    assert (result.exit_code, result.stdout) == (3, "canceled: 3,000 timers so far\n")
    _, *advice = result.stderr.splitlines()
    assert advice == [
        "the operation goes on when the server is back; to see how far it is:",
        f"  duetime operations show {ID}",
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["redrive"], f"{FILTERS}: say which timers"),
        (["cancel", "a", "--all"], f"{FILTERS}: give ids or filters, not both"),
        (["cancel", "--all-namespaces"], f"{FILTERS}: say which timers"),
        (["cancel", "a", "--dry-run"], "--dry-run: is for timers selected by filters"),
        (["redrive", "--all"], "--yes: is needed because there is no terminal"),
        (["redrive", "--due-after", "soon"], "--due-after: must be a date and time"),
        (["reschedule", "--all"], "--by / --to: give one of them: by how much, or to when"),
        (
            ["reschedule", "--all", "--by", "1h", "--to", "2030-01-01T00:00:00Z"],
            "--by / --to: give one of them, not both",
        ),
        (["reschedule", "--by", "1h", "--all"], "--yes: is needed because there is no terminal"),
        (["reschedule", "--by", "1h"], f"{RESCHEDULE_FILTERS}: say which timers; `duetime update"),
        (
            ["reschedule", "a b", "--by", "1h"],
            "ID: is not for reschedule: `duetime update 'a b' --in DURATION`",
        ),
        (["run-now"], f"{RESCHEDULE_FILTERS}: say which timers; `duetime update ID --in 1ms` runs"),
        (["run-now", "a"], "ID: is not for run-now: `duetime update a --in 1ms` runs one timer"),
        (["run-now", "--all"], "--yes: is needed because there is no terminal"),
        (["cancel", "--metadata", "customer"], "--metadata: must be KEY=VALUE, such as"),
        (["cancel", "--metadata", "=17"], "--metadata: must be KEY=VALUE, such as"),
        (["reschedule", "--all", "--yes", "--by", "1x"], "--by: must be a duration"),
        (
            ["cancel", "--all", "--yes", "--namespace", "a", "--all-namespaces"],
            "--namespace / --all-namespaces: give one of them, not both",
        ),
    ],
)
def test_wrong_options_are_refused(
    server: ScriptedServer, arguments: list[str], problem: str
) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(problem)
    assert not server.requests


def test_operations_are_listed_shown_and_aborted(server: ScriptedServer) -> None:
    server.answer("GET", OPERATIONS, {"operations": [operation()]})
    chosen = {
        "dueBefore": "2030-01-01T00:00:00Z",
        "idPrefix": "order-\n",
        "metadata": {"key": "customer", "value": "17"},
    }
    moved = operation(filter=chosen, moveBy="1h", error="no such namespace", startedBy="billing\n")
    server.answer("GET", f"{OPERATIONS}/{ID}", moved)
    server.answer("GET", f"{OPERATIONS}/{ID}", operation(executeAt="2031-01-01T00:00:00Z"))
    server.answer("DELETE", f"{OPERATIONS}/{ID}", operation(status="aborted"))
    assert ID in invoke("operations").stdout
    shown = invoke("operations", "show", ID).stdout
    assert "matched: 1,234 timers\n" in shown
    assert "changed: 1,230\nskipped: 4\nexecuting: 0\n" in shown
    assert "error: no such namespace\n" in shown
    assert "due before: 2030-01-01T00:00:00Z\nid prefix: order-\\n\n" in shown
    assert "metadata: customer=17\nmoved by: 1h\n" in shown
    assert "started by: billing\\n\n" in shown
    shown = invoke("operations", "show", ID).stdout
    assert "timers: all of the namespace\nmoved to: 2031-01-01T00:00:00Z\n" in shown
    assert "status: aborted\n" in invoke("operations", "abort", ID).stdout
    assert invoke("operations", "list").stdout == invoke("operations").stdout
    for command in (["operations"], ["operations", "list"]):
        listed = json.loads(invoke(*command, "--json").stdout)
        assert listed == {"operations": [operation()]}
