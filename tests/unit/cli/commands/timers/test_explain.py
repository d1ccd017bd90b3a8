"""`duetime explain`: its picture, its words, and the namespace it asks for."""

import io

import pytest
from rich.console import Console

from duetime.api.v1.routes.explaining import LATE_EXPLANATION
from duetime.cli.commands.timers.explain import MAX_REPEATS
from duetime.cli.output import layout
from duetime.cli.output.lateness import explanation_view
from duetime.cli.output.lateness.explanation_view import Period, timeline_lines
from tests.unit.cli.scripted_server import ScriptedServer, invoke, namespaces, refusal

PATH = "/api/v1/explain/default/order-1042-expiry"


def period(ms: float, cause: str = "breaker", attempt: int = 1) -> Period:
    return Period(ms=ms, cause=cause, attempt=attempt, sentence="It waited.")


def test_a_pipe_gets_plain_lines_with_every_part(server: ScriptedServer) -> None:
    server.answer("GET", PATH, LATE_EXPLANATION)
    result = invoke("explain", "order-1042-expiry")
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("Fired 5.31 s late: ")
    assert "late by: 5,312 ms" in lines
    bars = [line for line in lines if line.lstrip().startswith("+")]
    assert [line.split()[-1] for line in bars] == ["claim", "breaker", "endpoint"]
    assert [line.split()[-3] for line in bars] == ["12.0", "5,300", "42.0"]
    assert lines[-1].startswith("do: Mend the receiver")


def test_json_is_the_answer_of_the_server(server: ScriptedServer) -> None:
    server.answer("GET", PATH, LATE_EXPLANATION)
    result = invoke("explain", "order-1042-expiry", "--json")
    assert '"cause": "breaker"' in result.output


@pytest.mark.parametrize("width", [80, 72])
def test_the_picture_fits_a_narrow_terminal(width: int) -> None:
    periods = [
        period(0.4, "claim"),
        period(86_400_000.0, "node_down"),
        period(12.5, "endpoint"),
        period(30_000.0, "retry_policy"),
        period(42.0, "endpoint", attempt=12),
    ]
    lines = timeline_lines(periods, width)
    assert all(line.cell_len <= width for line in lines)
    assert all("█" in line.plain or "#" in line.plain for line in lines)


def test_bars_follow_each_other_to_scale() -> None:
    first, second = timeline_lines([period(250.0, "lane"), period(750.0)], None)
    assert first.plain.count("█") * 3 == second.plain.count("█") == 30
    assert second.plain.index("█") == first.plain.rindex("█") + 1


def test_an_output_without_blocks_gets_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    (line,) = timeline_lines([period(5.0)], None)
    assert "#" * 40 in line.plain


def test_a_terminal_of_80_columns_shows_all(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (layout, explanation_view):
        monkeypatch.setattr(
            module, "console", lambda: Console(force_terminal=True, color_system=None, width=80)
        )
    server.answer("GET", PATH, LATE_EXPLANATION)
    shown = invoke("explain", "order-1042-expiry").output.splitlines()
    assert max(map(len, shown)) <= 80


def test_another_node_is_named_with_its_address(server: ScriptedServer) -> None:
    answer = LATE_EXPLANATION | {"live": False, "owner": "two", "ownerUrl": "http://two:8080"}
    server.answer("GET", PATH, answer)
    assert "its node: two (http://two:8080)" in invoke("explain", "order-1042-expiry").output


OTHER_WORKER = LATE_EXPLANATION | {
    "live": False,
    "owner": "two",
    "ownerUrl": "http://one:8080",
    "nodeUrl": "http://one:8080",
}


def test_a_worker_that_does_not_know_is_asked_again_until_the_owner_answers(
    server: ScriptedServer,
) -> None:
    for answer in (OTHER_WORKER, OTHER_WORKER, LATE_EXPLANATION):
        server.answer("GET", PATH, answer)
    result = invoke("explain", "order-1042-expiry", "--json")
    assert '"live": true' in result.output
    assert len(server.of("GET", PATH)) == 3


def test_an_owner_that_does_not_answer_is_asked_for_a_bounded_number_of_times(
    server: ScriptedServer,
) -> None:
    server.answer("GET", PATH, OTHER_WORKER)
    result = invoke("explain", "order-1042-expiry")
    assert result.exit_code == 0
    assert "its node: two" in result.output
    assert len(server.of("GET", PATH)) == 1 + MAX_REPEATS


def test_the_last_answer_stays_if_no_other_one_comes(server: ScriptedServer) -> None:
    server.answer("GET", PATH, OTHER_WORKER)
    server.answer("GET", PATH, refusal("RATE_LIMITED", "too many requests"), status=429)
    result = invoke("explain", "order-1042-expiry")
    assert result.exit_code == 0
    assert "its node: two" in result.output


def test_the_node_that_answers_is_not_shown_as_the_one_that_fired(server: ScriptedServer) -> None:
    server.answer("GET", PATH, LATE_EXPLANATION)
    lines = invoke("explain", "order-1042-expiry").output.splitlines()
    assert f"answered by: {LATE_EXPLANATION['node']}" in lines
    assert not any(line.startswith("node:") for line in lines)


def test_no_page_is_named_that_an_installation_does_not_have(server: ScriptedServer) -> None:
    server.answer("GET", PATH, LATE_EXPLANATION)
    assert "how-to/" not in invoke("explain", "order-1042-expiry").output


def test_a_cause_is_told_by_its_longest_period(server: ScriptedServer) -> None:
    short = {"ms": 2.0, "cause": "engine", "attempt": 1, "sentence": "Short.", "see": "page"}
    long = {**short, "ms": 900.0, "sentence": "Long."}
    server.answer("GET", PATH, LATE_EXPLANATION | {"periods": [short, long]})
    output = invoke("explain", "order-1042-expiry").output
    assert "engine: Long." in output
    assert "Short." not in output


def test_the_only_namespace_of_a_key_is_taken(server: ScriptedServer) -> None:
    """The timers of the platform API are in that one."""
    server.answer("GET", "/api/v1/namespaces", namespaces("team-a"))
    server.answer("GET", "/api/v1/explain/team-a/t", LATE_EXPLANATION)
    key = "dt_" + "a" * 8
    assert invoke("explain", "t", "--api-key", key).exit_code == 0
    assert server.of("GET", "/api/v1/explain/team-a/t")


def test_ids_and_namespaces_are_encoded(server: ScriptedServer) -> None:
    server.answer("GET", "/api/v1/explain/a b/x/y", LATE_EXPLANATION)
    assert invoke("explain", "x/y", "--namespace", "a b").exit_code == 0
    assert server.requests[-1].url.raw_path == b"/api/v1/explain/a%20b/x%2Fy"


def test_an_unknown_timer_is_named_with_its_place(server: ScriptedServer) -> None:
    server.answer("GET", PATH, refusal("TIMER_NOT_FOUND", "timer not found"), status=404)
    result = invoke("explain", "order-1042-expiry")
    assert result.exit_code == 1
    assert "timer not found: 'order-1042-expiry' in namespace 'default' at " in result.output
