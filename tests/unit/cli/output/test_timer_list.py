"""A list of timers, on a terminal and in a pipe."""

from collections.abc import Callable

import pytest
from rich.console import Console

from duetime.api.platform.examples import LISTED, TIMER_ID
from duetime.cli.output import layout, timer_list
from duetime.cli.output.timer_list import print_timers

URL = "https://api.example.com/v2/customers/4711/orders/{}/payment-reminders?token=abcdefgh"
Show = Callable[..., list[str]]


def timer(**changes: object) -> dict[str, object]:
    return {**LISTED, **changes}


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    def show(width: int, *timers: dict[str, object], wide: bool = False) -> list[str]:
        def terminal() -> Console:
            return Console(force_terminal=True, color_system=None, width=width)

        monkeypatch.setattr(layout, "console", terminal)
        monkeypatch.setattr(timer_list, "console", terminal)
        print_timers(timers, "the note", with_namespace=False, wide=wide)
        return capsys.readouterr().out.splitlines()

    return show


def failed(number: int) -> dict[str, object]:
    return timer(
        id=f"{TIMER_ID[:-2]}{number:02}",
        status="failed",
        callback_target=URL.format(number),
        last_error="HTTP 503 Service Unavailable: the database of the shop is being upgraded",
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_timer_has_one_line_that_fits(on_terminal: Show, width: int) -> None:
    heading, *rows, note = on_terminal(width, *(failed(number) for number in range(20)))
    assert heading.split() == ["id", "status", "due", "callback", "last_error"]
    assert len(rows) == 20
    assert max(map(len, rows)) <= width
    assert len({row.split()[0] for row in rows}) == 20
    assert all("HTTP 503" in row for row in rows)
    assert note == "the note; shortened to fit, --wide shows all"


def test_an_id_that_fits_is_whole(on_terminal: Show) -> None:
    heading, row, note = on_terminal(80, timer(callback_target="http://127.0.0.1:9000/hello"))
    assert heading.split() == ["id", "status", "due", "callback"]
    assert row.startswith(f"{TIMER_ID}  pending  in ")
    assert len(row) <= 80
    assert note.startswith("the note")


def test_a_wide_list_shortens_nothing(on_terminal: Show) -> None:
    heading, row, note = on_terminal(80, failed(7), wide=True)
    assert "execute_at" in heading
    assert URL.format(7) in row
    assert row.endswith("is being upgraded")
    assert note == "the note"


def test_a_planned_retry_is_due_in_the_future(on_terminal: Show) -> None:
    _, row, _ = on_terminal(
        80, timer(execute_at="2020-01-01T00:00:00Z", due_at="2100-01-01T00:00:00Z")
    )
    assert "pending  in " in row
    _, row, _ = on_terminal(80, timer(status="failed", execute_at="2020-01-01T00:00:00Z"))
    assert " ago " in row


def test_a_canceled_timer_is_not_due(on_terminal: Show) -> None:
    _, row, _ = on_terminal(80, timer(status="canceled", execute_at="2100-01-01T00:00:00Z"))
    assert "canceled  -" in row


def test_a_list_in_a_pipe_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    of_nats = timer(callback_type="nats", callback_target="events.timer")
    of_bus = {"id": "call-1", "callbackUrl": None, "callbackType": "bus", "lastError": "no\nway"}
    of_old_server = {"id": "old", "callback_type": "http"}
    print_timers(
        [failed(7), of_nats, of_bus, of_old_server], "the note", with_namespace=False, wide=False
    )
    head, *rows, foot = capsys.readouterr().out.splitlines()
    assert head == "id\tstatus\tdue\texecute_at\tcallback\tlast_error\tlate"
    cells = [row.split("\t") for row in rows]
    assert cells[0][3:5] == ["2030-01-01T12:00:00Z", URL.format(7)]
    assert [row[4:] for row in cells[1:]] == [
        ["nats events.timer", "-", "-"],
        ["bus", r"no\nway", "-"],
        ["http", "-", "-"],
    ]
    assert foot == "the note"
