"""`duetime explain`: its picture, its words, and the namespace it asks for."""

import io

import pytest
from rich.console import Console

from duetime.api.v1.routes.explaining import LATE_EXPLANATION
from duetime.cli.output import layout
from duetime.cli.output.lateness import explanation_view
from duetime.cli.output.lateness.explanation_view import Period, timeline_lines
from tests.unit.cli.scripted_server import ScriptedServer, invoke, namespaces, refusal

PATH = "/api/v1/explain/default/order-1042-expiry"


def period(ms: float, cause: str = "breaker", attempt: int = 1) -> Period:
    return Period(ms=ms, cause=cause, attempt=attempt, sentence="It waited.", see="page#cause")


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
