"""Bulk commands on more namespaces than operations may run at once."""

import json
from collections.abc import Sequence

import httpx
import msgspec
import pytest

from duetime.clock import SystemClock
from tests.unit.cli.scripted_server import (
    OPERATIONS,
    ScriptedServer,
    invoke,
    namespaces,
    operation,
    refusal,
)

TOO_MANY = refusal("TOO_MANY_OPERATIONS", "20 operations are running: wait until one has ended")
EVERYWHERE = ("cancel", "--all", "--all-namespaces", "--yes")


class BusyServer:
    """Runs `room` operations at once. One ends after it was looked at twice, with three timers
    changed. Operations of other clients take the room for `others_until` seconds."""

    def __init__(self, server: ScriptedServer, names: Sequence[str], room: int) -> None:
        self.others_until = 0.0
        self.now = 0.0
        self.refused: dict[str, httpx.Response] = {}
        self.looks: dict[str, int] = {}
        self._room = room
        server.answer("GET", "/api/v1/namespaces", namespaces(*names))
        server.react("POST", OPERATIONS, self._start)
        for name in names:
            server.react("GET", f"{OPERATIONS}/{name}", self._look)

    @property
    def running(self) -> list[str]:
        return [name for name, looks in self.looks.items() if looks < 2]

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def _start(self, request: httpx.Request) -> httpx.Response:
        body = msgspec.json.decode(request.content)
        name = body["namespace"]
        if "dryRun" in body:
            return httpx.Response(200, json={"matched": 3, "matchedIsMinimum": False})
        if name in self.refused:
            return self.refused[name]
        if len(self.running) >= self._room or self.now < self.others_until:
            return httpx.Response(429, json=TOO_MANY, headers={"Retry-After": "2"})
        self.looks[name] = 0
        return httpx.Response(202, json=self._operation(name))

    def _look(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        self.looks[name] += 1
        return httpx.Response(200, json=self._operation(name))

    def _operation(self, name: str) -> dict[str, object]:
        status = "running" if name in self.running else "completed"
        changed = 0 if status == "running" else 3
        return operation(id=name, namespace=name, status=status, changed=changed, skipped=0)


@pytest.fixture
def busy(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> BusyServer:
    """Room for two of five operations. Sleeping takes no time."""
    busy = BusyServer(server, ("a", "b", "c", "d", "e"), room=2)
    monkeypatch.setattr(SystemClock, "sleep", lambda _, seconds: busy.sleep(seconds))
    monkeypatch.setattr(SystemClock, "monotonic", lambda _: busy.now)
    return busy


@pytest.mark.usefixtures("busy")
def test_operations_are_started_as_others_end() -> None:
    result = invoke(*EVERYWHERE)
    assert (result.stderr, result.stdout) == ("", "canceled: 15 timers\n")
    assert result.exit_code == 0


def test_a_command_waits_for_the_operations_of_others(busy: BusyServer) -> None:
    busy.others_until = 60
    result = invoke(*EVERYWHERE)
    assert (result.exit_code, result.stdout) == (0, "canceled: 15 timers\n")
    assert result.stderr == f"waiting: {TOO_MANY['message']}\n"


def test_a_command_does_not_wait_forever(busy: BusyServer) -> None:
    busy.others_until = 1e9
    result = invoke(*EVERYWHERE, "--quiet")
    assert (result.exit_code, result.stdout) == (1, "canceled: 0 timers\n")
    message = TOO_MANY["message"]
    assert result.stderr == (
        f"namespace 'a': {message}\nnothing was started for 5 namespaces: run the command again\n"
    )


def test_operations_are_followed_when_another_is_refused(busy: BusyServer) -> None:
    gone = refusal("NAMESPACE_NOT_FOUND", "namespace not found")
    busy.refused["c"] = httpx.Response(400, json=gone)
    result = invoke(*EVERYWHERE, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "changed": 12,
        "skipped": 0,
        "operations": ["a", "b", "d", "e"],
    }
    assert result.stderr == "namespace 'c': namespace not found\n"


def test_operations_are_followed_when_the_server_stumbles(busy: BusyServer) -> None:
    busy.refused["d"] = httpx.Response(502, text="Bad Gateway")
    result = invoke(*EVERYWHERE)
    assert (result.exit_code, result.stdout) == (1, "canceled: 9 timers\n")
    assert result.stderr == (
        "http://127.0.0.1:1 answered HTTP 502, but not as Duetime does\n"
        "nothing was started for 2 namespaces: run the command again\n"
    )


def test_operations_that_cannot_be_followed_are_named(
    busy: BusyServer, server: ScriptedServer
) -> None:
    server.answer("GET", f"{OPERATIONS}/b", refusal("INTERNAL_ERROR", "internal error"), 500)
    busy.refused["c"] = httpx.Response(400, json=refusal("NAMESPACE_NOT_FOUND", "gone"))
    busy.refused["d"] = busy.refused["e"] = busy.refused["c"]
    result = invoke(*EVERYWHERE)
    assert (result.exit_code, result.stdout) == (1, "canceled: 3 timers so far\n")
    assert "internal error\n" in result.stderr
    assert "the server goes on; to see how far it is:\n  duetime operations show b\n" in (
        result.stderr
    )


def test_an_interrupted_command_says_what_goes_on(
    busy: BusyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(_: SystemClock, seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", interrupt)
    result = invoke(*EVERYWHERE)
    assert (result.exit_code, result.stdout) == (1, "canceled: 0 timers so far\n")
    assert result.stderr == (
        "nothing was started for 3 namespaces: run the command again\n"
        "the server goes on; to stop it:\n"
        "  duetime operations abort a\n"
        "  duetime operations abort b\n"
    )
