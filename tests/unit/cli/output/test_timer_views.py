"""Output of timers, on a terminal and in a pipe."""

from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from duetime.api.platform.examples import DETAIL
from duetime.cli.output import layout, timer_views
from duetime.cli.output.timer_views import print_timer
from duetime.domain.outcome import INTERRUPTED

LONG_URL = "https://api.example.com/" + "segment/" * 20
Show = Callable[..., str]


def timer(**changes: object) -> dict[str, object]:
    detail: Any = DETAIL["data"]
    policy = {
        "max_retries": 5,
        "max_retry_attempts_duration": "24h",
        "initial_interval": "10s",
        "backoff_multiplier": 2.0,
        "max_interval": "10m",
    }
    return {**detail, "retry_policy": policy, **changes}


@pytest.fixture
def piped(capsys: pytest.CaptureFixture[str]) -> Show:
    def show(data: object) -> str:
        print_timer("", data)
        return capsys.readouterr().out

    return show


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    def show(data: object, width: int = 60) -> str:
        def narrow() -> Console:
            return Console(force_terminal=True, color_system=None, width=width)

        monkeypatch.setattr(layout, "console", narrow)
        monkeypatch.setattr(timer_views, "console", narrow)
        print_timer("", data)
        return capsys.readouterr().out

    return show


def test_attempts_are_a_table(piped: Show) -> None:
    failed = {
        "number": 2,
        "due_at": "2030-01-01T12:00:30Z",
        "claimed_at": "2030-01-01T12:00:30Z",
        "sent_at": None,
        "answered_at": None,
        "outcome": "failed",
        "error": "connection refused",
    }
    lines = piped(timer(attempts=[*_attempts(), failed])).splitlines()
    assert lines[-3:] == [
        "attempt\tdue\tlateness\tduration\toutcome",
        "1\t2030-01-01T12:00:00Z\t1.0 ms late\t130 ms\tcompleted",
        "2\t2030-01-01T12:00:30Z\t-\t-\tfailed: connection refused",
    ]


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({"outcome": "rescheduled", "error": None}, "rescheduled"),
        (
            {"outcome": "interrupted", "error": "connection reset"},
            "interrupted: connection reset",
        ),
        ({"outcome": "interrupted", "error": INTERRUPTED}, INTERRUPTED),
        # Older servers do not send the outcome.
        ({"error": None}, "-"),
        ({"error": "HTTP 503"}, "HTTP 503"),
    ],
)
def test_attempts_show_their_outcome(piped: Show, members: dict[str, object], shown: str) -> None:
    attempt = {"number": 1, "due_at": "2030-01-01T12:00:00Z", **members}
    *_, last = piped(timer(attempts=[attempt])).splitlines()
    assert last == f"1\t2030-01-01T12:00:00Z\t-\t-\t{shown}"


def attempt(number: int, **members: object) -> dict[str, object]:
    due_at = f"2030-01-01T12:00:0{number}.123456Z"
    sent = {"sent_at": due_at, "answered_at": f"2030-01-01T12:00:0{number}.623456Z"}
    return {
        "number": number,
        "due_at": due_at,
        **sent,
        "outcome": "failed",
        "error": "HTTP 503",
        **members,
    }


def test_attempts_that_start_over_are_set_apart(piped: Show) -> None:
    redriven = [attempt(1), attempt(2), attempt(1)]
    *_, first, second, between, third = piped(timer(attempts=redriven)).splitlines()
    assert [line.split("\t")[0] for line in (first, second, third)] == ["1", "2", "1"]
    assert between == "-\t-\t-\t-\ta new firing: attempts start over"
    # The outcome says it already.
    rescheduled = [attempt(1, outcome="rescheduled", error=None), attempt(1)]
    assert "start over" not in piped(timer(attempts=rescheduled))


@pytest.mark.parametrize("width", range(40, 121))
def test_no_instant_is_cut(on_terminal: Show, width: int) -> None:
    shown = on_terminal(
        timer(attempts=[attempt(1), attempt(2, sent_at="2030-01-01T12:00:03.123356Z")]), width
    )
    assert "…" not in shown
    assert (" 2030-01-01T12:00:01.123456Z " in shown) or width < 80


@pytest.mark.parametrize("status", ["completed", "failed", "canceled"])
def test_a_finished_timer_is_not_due(piped: Show, status: str) -> None:
    lines = piped(timer(status=status, due_at="2030-01-01T12:00:00Z")).splitlines()
    assert {"execute_at: 2030-01-01T12:00:00Z", "due_at: 2030-01-01T12:00:00Z"} <= set(lines)
    assert any(line.startswith("created_at: 2029-12-31T10:30:00Z  ") for line in lines)
    pending = piped(timer(status="pending"))
    assert "execute_at: 2030-01-01T12:00:00Z  " in pending


def test_the_last_answer_is_shown_line_by_line(piped: Show) -> None:
    (attempt,) = _attempts()[:1]
    answered = {**attempt, "outcome": "failed", "error": "HTTP 503", "answer": "down\n\x1b[1mnow\n"}
    lines = piped(timer(attempts=[answered])).splitlines()
    assert lines[-3:] == ["answer of attempt 1:", "  down", r"  \x1b[1mnow"]


def test_callback_and_retry_policy_are_readable(piped: Show) -> None:
    lines = piped(timer()).splitlines()
    assert "callback.url: https://api.example.com/webhook" in lines
    assert "callback.headers: Authorization: [redacted]" in lines
    assert 'callback.payload: {"event": "timer_triggered", "user_id": "user123"}' in lines
    assert (
        "retry_policy: at most 5 retries, the first after 10s, each wait 2 times the last, "
        "no wait above 10m, until 24h after the first attempt"
    ) in lines
    never = {"max_retries": 0, "initial_interval": "30s", "backoff_multiplier": 2.0}
    for policy in (None, never):
        assert "retry_policy: none" in piped(timer(retry_policy=policy)).splitlines()


def test_fields_in_a_pipe_are_one_line_each_without_padding(piped: Show) -> None:
    text = piped(timer(last_error="word " * 100 + "end", callback_config={"url": LONG_URL}))
    assert f"callback.url: {LONG_URL}\n" in text
    assert f"last_error: {'word ' * 100}end\n" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_terminal_wraps_between_words_only(on_terminal: Show) -> None:
    text = on_terminal(timer(last_error="word " * 30 + "end", callback_config={"url": LONG_URL}))
    lines = text.splitlines()
    assert any(line.endswith(LONG_URL) for line in lines)
    assert set(text.partition("last_error")[2].partition("executed_at")[0].split()) == {
        "word",
        "end",
    }
    assert all(len(line) <= 60 for line in lines if LONG_URL not in line)


def _attempts() -> list[dict[str, object]]:
    detail: Any = DETAIL["data"]
    attempts: list[dict[str, object]] = detail["attempts"]
    return attempts


def test_callbacks_that_are_not_made_over_http_are_shown(piped: Show) -> None:
    nats = {"type": "nats", "topic": "events.timer", "key": "user-7", "ack": True}
    lines = piped(timer(callback_type="nats", callback_config=nats)).splitlines()
    for line in ("callback_type: nats", "callback.topic: events.timer", "callback.ack: true"):
        assert line in lines
    of_bus = piped(timer(callback_type="bus", callback_config={"type": "bus"})).splitlines()
    assert "callback_type: bus" in of_bus
