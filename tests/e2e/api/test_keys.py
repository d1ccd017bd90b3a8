"""API keys on real servers: teams apart, revocation across nodes, limits, the command line."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from duetime.api.v1.listing import cursor_of
from duetime.domain.instants import Instant
from duetime.ports.store import Position, ScanQuery
from tests.foreign_requests import AT, FOREIGN_REQUESTS, OWN, URL, Request, Subject
from tests.polling import poll
from tests.real_server.command import Finished, run_command
from tests.real_server.databases import Database, on_every_database, on_postgresql
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = pytest.mark.e2e

KEYS = "/api/v1/keys"
GHOST = Subject(
    namespace="team-x",
    timer_id="0199a3c2-0000-7000-8000-0000000000aa",
    failed_id="0199a3c2-0000-7000-8000-0000000000bb",
    operation_id="0199a3c2-0000-7000-8000-0000000000cc",
    key_id="ffffffffffffffff",
    secret_id="nobody's",
    cursor=cursor_of(Position(Instant(0), bytes(16)), ScanQuery(namespace="team-x")),
    idempotency_key="nobody's",
)

_INSTANT = re.compile(rb'"[0-9]{4}-[^"]*Z"')
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_CODE = re.compile(rb"code=[A-Za-z0-9_-]{43}")


async def create_key(api: httpx.AsyncClient, **changes: Any) -> Any:
    body = {"name": "a", "roles": ["read", "write"], "namespaces": ["*"], **changes}
    answer = await api.post(KEYS, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def send(api: httpx.AsyncClient, request: Request, key: str) -> httpx.Response:
    content = request.body
    if not isinstance(content, bytes):
        content = msgspec.json.encode(content)
    headers = {"Authorization": f"Bearer {key}"}
    return await api.request(request.method, request.path, content=content, headers=headers)


async def add_team(api: httpx.AsyncClient, subject: Subject) -> Subject:
    """The things of a team, with the ids that the service made."""
    assert (await api.put(f"/api/v1/namespaces/{subject.namespace}", json={})).is_success
    for namespace in (subject.namespace, "default"):
        for id in (subject.timer_id, subject.failed_id):
            body = {"namespace": namespace, "id": id, "executeAt": AT, "callbackUrl": URL}
            assert (await api.post("/api/v1/timers", json=body)).is_success
    callback = {"type": "http", "url": URL}
    platform = {"execute_at": AT, "callback": callback, "idempotency_key": subject.idempotency_key}
    assert (await api.post("/timers", json=platform)).is_success
    started = await api.post(
        "/api/v1/operations",
        json={"namespace": subject.namespace, "action": "cancel", "filter": {"idPrefix": "no"}},
    )
    secret = await api.post(f"/api/v1/namespaces/{subject.namespace}/secrets", json={})
    page = await api.get(f"/api/v1/timers?namespace={subject.namespace}&limit=1")
    key = await create_key(api, namespaces=[subject.namespace])
    return msgspec.structs.replace(
        subject,
        operation_id=started.json()["id"],
        key_id=key["id"],
        secret_id=secret.json()["id"],
        cursor=page.json()["nextCursor"],
    )


def seen(answer: httpx.Response, subject: Subject) -> tuple[int, object, bytes]:
    """All that an answer tells, apart from the names that the request had."""
    content = _INSTANT.sub(b"some-instant", answer.content)
    for name in (subject.namespace, subject.key_id):
        content = content.replace(name.encode(), b"some-name")
    # Instants have as many decimals as they need, and every request has an id of its own.
    unlike = ("date", "content-length", "x-request-id")
    headers = {name: value for name, value in answer.headers.items() if name not in unlike}
    return answer.status_code, headers, _CODE.sub(b"some-code", _UUID.sub(b"some-id", content))


@on_every_database
async def test_one_team_cannot_tell_whether_another_exists(
    server: ServerProcess, api: httpx.AsyncClient
) -> None:
    assert (await api.put(f"/api/v1/namespaces/{OWN}", json={})).is_success
    key = (await create_key(api, roles=["admin"], namespaces=[OWN]))["key"]
    template = msgspec.structs.replace(
        GHOST,
        namespace="team-b",
        timer_id=GHOST.timer_id.replace("aa", "ab"),
        failed_id=GHOST.failed_id.replace("bb", "bc"),
        idempotency_key="theirs",
    )
    theirs = await add_team(api, template)
    before = await things_of(api, theirs)
    async with server.client() as caller:
        del caller.headers["X-API-Key"]
        for operation, requests in FOREIGN_REQUESTS.items():
            for about_them, about_nobody in zip(requests(theirs), requests(GHOST), strict=True):
                answer = seen(await send(caller, about_them, key), theirs)
                expected = seen(await send(caller, about_nobody, key), GHOST)
                assert answer == expected, (operation, about_them)
                assert answer[0] < 500, (operation, about_them)
    assert await things_of(api, theirs) == before


async def things_of(api: httpx.AsyncClient, subject: Subject) -> list[bytes]:
    paths = [
        f"/api/v1/timers/export?namespace={subject.namespace}",
        "/api/v1/timers/export?namespace=default",
        f"/api/v1/namespaces/{subject.namespace}",
        f"/api/v1/namespaces/{subject.namespace}/secrets",
    ]
    return [(await api.get(path)).content for path in paths]


@on_postgresql
@pytest.mark.exclusive
async def test_a_revoked_key_stops_on_every_node_within_five_seconds(
    tmp_path: Path, database: Database
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with (
        ServerProcess(tmp_path / "one", **database.settings) as one,
        ServerProcess(tmp_path / "two", **database.settings) as two,
        one.client() as here,
        two.client() as there,
    ):
        issued = await create_key(here)
        there.headers["X-API-Key"] = issued["key"]
        body = {"execute_at": AT, "callback": {"type": "http", "url": URL}}
        # Before the node has read the keys again.
        assert (await there.post("/timers", json=body)).status_code == 201
        loop = asyncio.get_running_loop()
        assert (await here.delete(f"{KEYS}/{issued['id']}")).status_code == 204
        revoked_at = loop.time()
        while (await there.post("/timers", json=body)).status_code == 201:
            assert loop.time() < revoked_at + 5
        assert (await there.get("/timers")).status_code == 401


async def test_keys_and_their_last_use_survive_a_restart(
    server: ServerProcess, api: httpx.AsyncClient
) -> None:
    issued = await create_key(api)
    assert (await api.get("/timers", headers={"X-API-Key": issued["key"]})).status_code == 200
    await server.stop()
    await server.start()
    async with server.client() as again:
        (key,) = (await again.get(KEYS)).json()["keys"]
        assert key["lastUsedAt"] is not None
        answer = await again.get("/timers", headers={"X-API-Key": issued["key"]})
        assert answer.status_code == 200
        secret = issued["key"].rpartition("_")[2].encode()
        for path in server.directory.rglob("*"):
            if path.is_file():
                assert secret not in path.read_bytes(), path
        assert secret.decode() not in "\n".join(server.output)


async def test_connections_that_break_off_give_their_places_back(
    server: ServerProcess, api: httpx.AsyncClient
) -> None:
    issued = await create_key(api, maxConcurrent=1)
    url = httpx.URL(server.url)
    for path in ("/timers", "/api/v1/timers"):
        for sent in (b"", b"{"):
            _, writer = await asyncio.open_connection(url.host, url.port)
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {issued['key']}\r\n"
            writer.write(f"{head}Content-Length: 10\r\n\r\n".encode() + sent)
            await writer.drain()
            writer.transport.abort()
    headers = {"X-API-Key": issued["key"]}

    async def is_answered() -> bool:
        return (await api.get("/timers", headers=headers)).status_code == 200

    await poll(is_answered, bool)
    body = {"execute_at": AT, "callback": {"type": "http", "url": URL}}
    for _ in range(3):
        assert (await api.post("/timers", json=body, headers=headers)).status_code == 201


async def test_wrong_keys_are_throttled_and_right_ones_are_not(
    server: ServerProcess, api: httpx.AsyncClient
) -> None:
    statuses = []
    for number in range(25):
        answer = await api.get("/timers", headers={"X-API-Key": f"guess {number}"})
        statuses.append(answer.status_code)
    assert statuses[:20] == [401] * 20
    assert 429 in statuses
    assert (await api.get("/timers")).status_code == 200
    await server.stop()
    (line,) = (each for each in server.logs if each["event"] == "api.wrong_keys")
    assert (line["refused"], line["throttled"]) == (statuses.count(401), statuses.count(429))
    assert (line["address"], line["address_tries"]) == ("127.0.0.1", 25)
    assert "guess" not in "\n".join(server.output)


async def test_the_command_line_makes_keys_and_uses_them(
    server: ServerProcess, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async def run(*arguments: str, key: str = API_KEY) -> Finished:
        environ = {"DUETIME_URL": server.url, "DUETIME_API_KEY": key}
        return await run_command(*arguments, directory=tmp_path, **environ)

    assert (await api.put("/api/v1/namespaces/team", json={})).is_success
    made = await run("keys", "create", "t", "--role", "admin", "--namespace", "team", "--json")
    issued = msgspec.json.decode(made.output)
    listed = (await run("namespaces", key=issued["key"])).output
    assert [line.split("\t")[0] for line in listed.splitlines()] == ["name", "team"]
    refused = await run("keys", "list", key=issued["key"])
    assert refused.status == 1
    assert "this key is for some namespaces only" in refused.errors
    rotated = await run("keys", "rotate", issued["id"], "--overlap", "0s", "--json")
    fresh = msgspec.json.decode(rotated.output)
    assert (await run("namespaces", key=issued["key"])).status == 1
    assert (await run("namespaces", key=fresh["key"])).status == 0
    assert fresh["id"] in (await run("keys", "list")).output
    assert (await run("keys", "revoke", fresh["id"])).status == 0
    gone = await run("namespaces", key=fresh["key"])
    assert gone.status == 1
    assert "was not accepted" in gone.errors
