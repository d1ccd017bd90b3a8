"""`duetime get`, `update` and `cancel` of one timer, by its id."""

import pytest

from tests.unit.cli.commands.timers.test_v1_commands import ORDER, UUID, timer
from tests.unit.cli.scripted_server import URL, ScriptedServer, invoke, refusal


@pytest.mark.parametrize(
    "command", [("get",), ("cancel",), ("update", "--in", "1h"), ("get", "--json")]
)
def test_a_timer_that_is_not_found_is_named(
    server: ScriptedServer, command: tuple[str, ...]
) -> None:
    for method, path in (("GET", ORDER), ("POST", f"{ORDER}/cancel")):
        server.answer(method, path, refusal("TIMER_NOT_FOUND", "timer not found"), status=404)
    missing = {"code": 3, "message": "timer not found", "data": None}
    for method in ("GET", "DELETE"):
        server.answer(method, f"/timers/{UUID}", missing, status=404)
    name, *options = command
    result = invoke(name, "order-17", "--namespace", "orders", *options)
    problem = f"timer not found: 'order-17' in namespace 'orders' at {URL}\n"
    assert (result.exit_code, result.stderr) == (1, problem)
    result = invoke(name, UUID, *options)
    problem = f"timer not found: '{UUID}' in namespace 'default' at {URL}\n"
    assert (result.exit_code, result.stderr) == (1, problem)


def test_cancel_keeps_the_timer(server: ScriptedServer) -> None:
    server.answer("POST", f"{ORDER}/cancel", timer(status="canceled"))
    result = invoke("cancel", "order-17", "--namespace", "orders")
    assert result.exit_code == 0
    assert result.stdout.startswith("Timer order-17 canceled.\nid: order-17\n")
    assert "status: canceled" in result.stdout.splitlines()
    server.answer("DELETE", f"/timers/{UUID}", {"code": 0, "message": "", "data": None})
    assert invoke("cancel", UUID).stdout == f"Timer {UUID} canceled.\n"
    assert [request.method for request in server.requests] == ["POST", "DELETE"]


def test_update_refuses_options_that_the_api_cannot_change(server: ScriptedServer) -> None:
    result = invoke("update", "order-17", "--namespace", "orders", "--metadata", "1")
    assert result.exit_code == 2
    assert result.stderr.startswith("--metadata: cannot be changed through the v1 API")
    assert not server.requests
    words = " ".join(invoke("update", "--help").stdout.replace("│", " ").split())
    assert "Stored with the timer, not sent; for timers without an id of your own." in words
