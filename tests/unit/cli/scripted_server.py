"""A scripted server of the v1 API, which replaces the network."""

from collections.abc import Callable

import httpx
import msgspec
import pytest
from typer.testing import CliRunner, Result

from duetime.cli.main import command_line
from duetime.settings.definitions import SETTINGS

URL = "http://127.0.0.1:1"
OPERATIONS = "/api/v1/operations"
OPERATION_ID = "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c12"

React = Callable[[httpx.Request], httpx.Response]


class ScriptedServer:
    """Records requests, and answers those without a script with an empty page of timers."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self._scripts: dict[tuple[str, str], list[React]] = {}

    def answer(
        self,
        method: str,
        path: str,
        document: object,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        content = b"" if document is None else msgspec.json.encode(document)
        self.react(
            method, path, lambda request: httpx.Response(status, headers=headers, content=content)
        )

    def react(self, method: str, path: str, reaction: React) -> None:
        """Script the next request to that path; the last reaction repeats."""
        self._scripts.setdefault((method, path), []).append(reaction)

    def of(self, method: str, path: str) -> list[httpx.Request]:
        return [r for r in self.requests if (r.method, r.url.path) == (method, path)]

    def bodies(self, method: str, path: str) -> list[object]:
        return [msgspec.json.decode(request.content) for request in self.of(method, path)]

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        script = self._scripts.get((request.method, request.url.path))
        # The reaction reads the stream, so that it can fail in between.
        if script is None:
            return httpx.Response(200, json={"timers": [], "nextCursor": None})
        return (script.pop(0) if len(script) > 1 else script[0])(request)


def scripted_server(monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """The server for every request of a command; variables of this machine are removed."""
    for name in ("DUETIME_API_KEY", "DUETIME_URL", *SETTINGS):
        monkeypatch.delenv(name, raising=False)
    server = ScriptedServer()

    def handle(transport: object, request: httpx.Request) -> httpx.Response:
        return server.handle(request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle)
    return server


def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(command_line(), [*arguments, "--server", URL], input=stdin)


def refusal(error: str, message: str) -> dict[str, object]:
    return {"error": error, "message": message, "details": {}, "timestamp": "2030-01-01T00:00:00Z"}


def refuse_connection(request: httpx.Request) -> httpx.Response:
    """The reaction of a server that is not there any more."""
    raise httpx.ConnectError("refused") from ConnectionRefusedError()


def operation(**changes: object) -> dict[str, object]:
    """A bulk operation, as the server answers it."""
    return {
        "id": OPERATION_ID,
        "action": "redrive",
        "namespace": "default",
        "filter": {},
        "status": "completed",
        "matched": 1_234,
        "matchedIsMinimum": False,
        "scanned": 1_300,
        "changed": 1_230,
        "skipped": 4,
        "error": None,
        "createdAt": "2030-01-01T00:00:00Z",
        "updatedAt": "2030-01-01T00:00:01Z",
        "finishedAt": "2030-01-01T00:00:01Z",
        **changes,
    }


def namespaces(*names: str) -> dict[str, object]:
    """The list of namespaces, as the server answers it."""
    return {"namespaces": [namespace(name) for name in names]}


def namespace(name: str) -> dict[str, object]:
    return {
        "name": name,
        "numShards": 16,
        "retryPolicy": {
            "maxRetries": 3,
            "maxRetryAttemptsDuration": "24h",
            "initialInterval": "30s",
            "backoffMultiplier": 2.0,
            "maxInterval": "10m",
        },
        "retention": None,
        "concurrency": None,
        "maxPayloadBytes": None,
    }
