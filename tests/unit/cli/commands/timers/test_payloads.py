"""Payloads and metadata in answers of the server: kept to the letter by every command."""

import msgspec
import pytest

from duetime.api.platform.examples import DETAIL
from tests.unit.cli.commands.timers.test_v1_commands import EXACT, ORDER, UUID, timer
from tests.unit.cli.scripted_server import ScriptedServer, invoke

ANSWERED = '{"x": 1.10, "long": 0.10000000000000000555, "x": 1e400, "u": "\\u00fc"}'
SHOWN_LINES = [
    '"x": 1.10,',
    '"long": 0.10000000000000000555,',
    '"x": 1e400,',
    '"u": "\\u00fc"',
]
RAW = msgspec.Raw(ANSWERED.encode())
ORDER_ARGUMENTS = ("order-17", "--namespace", "orders")


def platform_timer(payload: msgspec.Raw) -> dict[str, object]:
    data = msgspec.convert(DETAIL["data"], dict)
    callback = {"type": "http", "url": "http://127.0.0.1/hook", "payload": payload}
    changes = {"callback_config": callback, "status": "pending", "metadata": RAW}
    return {"code": 0, "message": "", "data": data | changes}


@pytest.fixture
def timers(server: ScriptedServer) -> ScriptedServer:
    of_bus = timer(callbackUrl=None, callbackType="bus", payload=RAW)
    server.answer("GET", ORDER, timer(payload=RAW))
    server.answer("GET", f"{ORDER}-of-bus", of_bus)
    server.answer("GET", f"/timers/{UUID}", platform_timer(RAW))
    server.answer("GET", "/api/v1/timers", {"timers": [timer(payload=RAW)], "nextCursor": None})
    return server


def test_an_answer_that_is_nested_too_deep_is_not_duetimes(server: ScriptedServer) -> None:
    server.answer("GET", ORDER, msgspec.Raw(b"[" * 100_000 + b"]" * 100_000))
    result = invoke("get", *ORDER_ARGUMENTS)
    assert result.exit_code == 1
    assert "not as Duetime does" in result.output


@pytest.mark.usefixtures("timers")
@pytest.mark.parametrize(
    "arguments",
    [
        ("get", *ORDER_ARGUMENTS),
        ("get", "order-17-of-bus", "--namespace", "orders"),
        ("get", UUID),
        ("list", "--namespace", "orders"),
    ],
)
def test_json_shows_a_payload_as_it_was_written(arguments: tuple[str, ...]) -> None:
    lines = [line.strip() for line in invoke(*arguments, "--json").stdout.splitlines()]
    start = lines.index(SHOWN_LINES[0])
    assert lines[start : start + len(SHOWN_LINES)] == SHOWN_LINES


@pytest.mark.usefixtures("timers")
@pytest.mark.parametrize("id", ["order-17", "order-17-of-bus"])
def test_fields_show_a_payload_as_it_was_written(id: str) -> None:
    lines = invoke("get", id, "--namespace", "orders").stdout.splitlines()
    assert f"callback.payload: {ANSWERED}" in lines


@pytest.mark.usefixtures("timers")
def test_fields_show_metadata_as_they_were_written() -> None:
    lines = invoke("get", UUID).stdout.splitlines()
    assert {f"callback.payload: {ANSWERED}", f"metadata: {ANSWERED}"} <= set(lines)


def test_a_change_of_the_url_keeps_the_payload_as_it_was_written(timers: ScriptedServer) -> None:
    path = f"/timers/{UUID}"
    timers.answer("PUT", path, platform_timer(RAW))
    result = invoke("update", UUID, "--url", "http://127.0.0.1/other")
    assert result.exit_code == 0, result.stderr
    (request,) = timers.of("PUT", path)
    assert ANSWERED.encode() in request.content


def test_a_payload_made_from_the_instant_follows_it(server: ScriptedServer) -> None:
    due = msgspec.Raw(b'{ "execute_at": "2030-01-01T12:00:00Z" }')
    path = f"/timers/{UUID}"
    server.answer("GET", path, platform_timer(due))
    server.answer("PUT", path, platform_timer(due))
    result = invoke("update", UUID, "--at", "2031-01-01T00:00:00Z")
    assert result.exit_code == 0, result.stderr
    (request,) = server.of("PUT", path)
    assert b'"payload":{"execute_at":"2031-01-01T00:00:00Z"}' in request.content


def test_update_sends_json_as_written(server: ScriptedServer) -> None:
    server.answer("GET", ORDER, timer())
    server.answer("PUT", ORDER, timer())
    result = invoke("update", *ORDER_ARGUMENTS, "--payload", EXACT)
    assert result.exit_code == 0, result.stderr
    assert server.of("PUT", ORDER)[0].content == b'{"payload":%b}' % EXACT.encode()
