"""Secrets of callbacks are sent to the endpoints only: they are not in answers, logs, exports,
documents or error texts."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from duetime.api.docs.routes import DOCUMENTS
from duetime.api.http.operation import Operation
from duetime.api.platform.routes import HEALTH, PLATFORM
from duetime.api.v1.routes.table import V1
from duetime.domain.instants import format_instant
from tests.brokers.running_broker import RunningBroker
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.command import Cli, run_command
from tests.real_server.databases import Database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import (
    create_timer,
    get_timer,
    in_ms,
    timer_body,
    wait_for_status,
)
from tests.real_server.v1_requests import TIMERS, create_v1, v1_body, v1_path

pytestmark = pytest.mark.e2e

FAR = in_ms(3_600_000)
MARK = "s3cr3t-m4rk"
PAYLOAD_MARK = "p4yl04d-m4rk"
HEADERS = {
    "Authorization": f"Bearer {MARK}/1",
    "Cookie": f"session={MARK}-2",
    "X-Api-Key": f"{MARK}-3",
    "Webhook-Token": f"{MARK}-4",
}
PAYLOAD = {"text": PAYLOAD_MARK}
READS: tuple[Operation[Any], ...] = tuple(
    operation
    for group in (*PLATFORM, *V1, *HEALTH, *DOCUMENTS)
    for operation in group.operations
    if operation.method == "GET"
)


@pytest.fixture
async def server(
    tmp_path: Path, database: Database, broker: RunningBroker
) -> AsyncIterator[ServerProcess]:
    settings = {"NATS_URL": broker.url, "LOG_LEVEL": "trace", "AUDIT_CREATES": "all"}
    async with ServerProcess(tmp_path, **database.settings, **settings) as process:
        yield process


class Search:
    """Collects texts, and the places in which a secret was found."""

    def __init__(self) -> None:
        self.found: list[str] = []
        # The beginning of a mark counts, too: a text may be cut.
        self.marks = [MARK[:5]]

    def look(self, place: str, text: str, *others: str) -> None:
        for mark in (*self.marks, *others):
            position = text.find(mark)
            if position >= 0:
                self.found.append(f"{place}: {text[max(position - 80, 0) : position + 80]}")


def url_of(receiver: CallbackReceiver, path: str) -> str:
    """The URL with a password."""
    return receiver.url.replace("//", f"//user:{MARK}-5@") + path


def paths_of(operation: Operation[Any], values: dict[str, list[str]]) -> Iterator[str]:
    """The path with each known value of its parameters, or with their examples."""
    paths = [operation.path]
    for parameter in operation.parameters:
        if parameter.place == "path":
            name = "{" + parameter.name + "}"
            known = values.get(parameter.name, [str(parameter.example)])
            paths = [path.replace(name, value) for path in paths for value in known]
    yield from paths


async def create_through_every_door(
    api: httpx.AsyncClient, receiver: CallbackReceiver, search: Search
) -> tuple[list[str], list[str]]:
    """The ids of platform timers and of v1 timers, pending and failed."""
    echo = json.dumps({"ok": False, "message": f"no {MARK}/1", "headers": HEADERS}).encode()
    receiver.script("/echo", Answer(500, echo))
    receiver.script("/refuse", Answer(200, echo))
    location = f"/login?password={MARK}-5&token={MARK}-4"
    receiver.script(
        "/moved", Answer(302, f"<a href='{location}'>".encode(), {"Location": location})
    )
    callback = {"headers": HEADERS, "payload": PAYLOAD}
    platform = [await create_timer(api, url_of(receiver, "/far"), FAR, callback=callback)]
    for path in ("/echo", "/moved"):
        failing = await create_timer(api, url_of(receiver, path), in_ms(100), callback=callback)
        await wait_for_status(api, failing, "failed")
        platform.append(failing)
    nats = {"type": "nats", "topic": "a.b", "headers": {"X-Token": MARK}, "payload": PAYLOAD}
    answer = await api.post("/timers", json={"execute_at": format_instant(FAR), "callback": nats})
    assert answer.status_code == 201, answer.text
    platform.append(answer.json()["data"]["id"])

    url = url_of(receiver, "/far")
    more = {"callbackHeaders": HEADERS, "payload": PAYLOAD}
    for path, body in (
        (TIMERS, v1_body("created", url, FAR, **more)),
        (f"{TIMERS}/create", v1_body("upserted", url, FAR, **more)),
        (f"{TIMERS}/batch", {"timers": [v1_body("batched", url, FAR, **more)]}),
        (f"{TIMERS}/import", v1_body("imported", url, FAR, **more)),
    ):
        answer = await api.post(path, json=body)
        assert answer.status_code == 200, answer.text
        search.look(path, answer.text)
    full = (await api.get(f"{TIMERS}/export?secrets=true")).json()["timers"]
    copy = next(timer for timer in full if timer["id"] == "created") | {"id": "restored"}
    answer = await api.post(f"{TIMERS}/import", json={"full": 1, "timer": copy})
    assert answer.json()["created"] == 1, answer.text
    policy = {"maxRetries": 0}
    refused = url_of(receiver, "/refuse")
    await create_v1(api, "refused", refused, in_ms(100), retryPolicy=policy, **more)
    await receiver.wait_for(1, lambda request: request.target == "/refuse")
    v1 = ["created", "upserted", "batched", "imported", "restored", "refused"]
    return platform, v1


async def search_errors(api: httpx.AsyncClient, platform: str, url: str, search: Search) -> None:
    """Requests that carry secrets and are refused."""
    headers: tuple[object, ...] = (
        {"Authorization": f"{MARK}\n"},
        {"Authorization": [MARK]},
        {"Bad Name": MARK},
        {"X-Other-Key": "[redacted]", "Authorization": MARK},
        MARK,
    )
    for given in headers:
        body = timer_body(url, FAR, callback={"headers": given})
        for answer in (
            await api.post("/timers", json=body),
            await api.put(f"/timers/{platform}", json={"callback": body["callback"]}),
            await api.post(TIMERS, json=v1_body("new", url, FAR, callbackHeaders=given)),
            await api.put(v1_path("created"), json={"callbackHeaders": given}),
        ):
            assert answer.status_code == 400, answer.text
            search.look("error", answer.text)
        lines = v1_body("new", url, FAR, callbackHeaders=given)
        for path, many in (("batch", {"timers": [lines]}), ("import", lines)):
            search.look(path, (await api.post(f"{TIMERS}/{path}", json=many)).text)
    conflict = v1_body("created", f"{url}/other", FAR, callbackHeaders={"X-Key": MARK})
    for body in (conflict, {**conflict, "callbackUrl": f"ftp://{MARK}@a/"}):
        search.look("conflict", (await api.post(TIMERS, json=body)).text)
    search.look("text", (await api.post(TIMERS, content=f'{{"{MARK}'.encode())).text)


async def search_commands(cli: Cli, platform: list[str], v1: list[str], search: Search) -> None:
    commands = [
        ("list", "--wide"),
        ("list", "--all-namespaces", "--wide"),
        ("list", "--json"),
        ("list", "--namespace", "default", "--json"),
        ("export",),
        ("export", "--full", "--status", "all"),
        ("operations",),
        ("endpoints",),
        ("namespaces",),
        ("health",),
        ("audit-log",),
        ("audit-log", "--json"),
        ("secrets", "list", "default"),
        ("update", platform[0], "--header", f"X-Token={MARK}"),
        ("update", v1[0], "--header", f"X-Token={MARK}", "--json"),
        ("cancel", v1[1]),
        *(("get", id) for id in (*platform, v1[-1])),
        ("get", v1[0], "--json"),
    ]
    for command in commands:
        finished = await cli(*command)
        assert finished.status in (0, 1), finished.errors
        search.look(" ".join(command), finished.output + finished.errors)
    # The updates have kept the secrets that they were shown as hidden.
    for id in (platform[0], v1[0]):
        shown = await cli("get", id, "--with-secrets")
        assert all(value in shown.output for value in HEADERS.values())


async def test_no_secret_is_found_anywhere(
    server: ServerProcess,
    api: httpx.AsyncClient,
    receiver: CallbackReceiver,
    cli: Cli,
    database: Database,
    tmp_path: Path,
) -> None:
    search = Search()
    created = await api.post("/api/v1/namespaces/default/secrets", json={})
    search.marks.append(created.json()["secret"].removeprefix("whsec_")[:12])
    platform, v1 = await create_through_every_door(api, receiver, search)
    # The endpoint has got them.
    (called,) = receiver.of("/echo")
    assert called.headers["authorization"] == HEADERS["Authorization"]
    failed = await get_timer(api, platform[1])
    assert "no [redacted]" in failed["attempts"][0]["answer"]
    operation = {"action": "cancel", "filter": {"idPrefix": "nothing"}, "dryRun": False}
    await api.post("/api/v1/operations", json=operation)
    operations = (await api.get("/api/v1/operations")).json()["operations"]
    values = {
        "id": platform,
        "namespace": ["default"],
        "timerId": v1,
        "operationId": [each["id"] for each in operations],
    }
    answered = 0
    for read in READS:
        for path in paths_of(read, values):
            answer = await api.get(path)
            answered += answer.is_success
            search.look(f"{read.id} {path}", answer.text)
    assert answered >= len(READS)
    for id in v1:
        search.look("get", (await api.post(f"{TIMERS}/get", json={"timerId": id})).text)
    assert MARK in (await api.get(f"{v1_path('created')}?secrets=true")).text

    await search_errors(api, platform[0], url_of(receiver, "/far"), search)
    await search_commands(cli, platform, v1, search)
    audited = await api.get("/api/v1/audit-log?limit=1000")
    assert "created" in audited.text
    search.look("audit log", audited.text, PAYLOAD_MARK)

    assert await server.stop() == 0
    audit = await run_command("audit", directory=tmp_path, **database.settings)
    search.look("audit", audit.output + audit.errors)
    log = "\n".join(server.output)
    assert "timer.failed" in log
    search.look("log", log, PAYLOAD_MARK)
    assert not search.found, "\n".join(search.found)
