"""A key that is revoked, or expires, while the body of its request is on its way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from duetime.api.http.answers import Answer
from duetime.service.security.key_ring import ENDED
from tests.unit.api.asgi_client import API_KEY, ApiBench, Reply, call, create_body
from tests.unit.api.v1.v1_bench import create_body as v1_body

TIMER = "/api/v1/timers/default/one"
EXPIRES_AT = "2030-01-01T00:00:05Z"

End = Callable[[], Awaitable[None]]


async def expiring_key(api: ApiBench) -> tuple[str, End]:
    async def expire() -> None:
        api.clock.advance(5)

    return await api.issue_key("admin", expiresAt=EXPIRES_AT), expire


async def revoked_key(api: ApiBench) -> tuple[str, End]:
    key = await api.issue_key("admin")

    async def revoke() -> None:
        reply = await api.request("DELETE", f"/api/v1/keys/{key.split('_')[1]}")
        assert reply.status == 204

    return key, revoke


async def rotated_key(api: ApiBench) -> tuple[str, End]:
    key = await api.issue_key("admin")

    async def rotate() -> None:
        path = f"/api/v1/keys/{key.split('_')[1]}/rotate"
        assert (await api.request("POST", path, {"overlap": "0s"})).status == 201

    return key, rotate


async def send(api: ApiBench, method: str, path: str, key: str, *parts: bytes | End) -> Reply:
    """Send the bytes among the parts, and call the others at their place."""

    async def chunks() -> AsyncIterator[bytes]:
        for part in parts:
            if isinstance(part, bytes):
                yield part
            else:
                await part()

    return await call(api.app, method, path, chunks(), [(b"x-api-key", key.encode())])


def line(id: str) -> bytes:
    return msgspec.json.encode(v1_body(id)) + b"\n"


ends = pytest.mark.parametrize("ending", [expiring_key, revoked_key, rotated_key])
Ending = Callable[[ApiBench], Awaitable[tuple[str, End]]]


@ends
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/timers", create_body()),
        ("POST", "/api/v1/timers", v1_body()),
        ("POST", "/api/v1/timers/batch", {"timers": [v1_body()]}),
        ("PUT", TIMER, {"executeIn": "1h"}),
        ("POST", "/api/v1/timers/redrive", {"all": True}),
        ("POST", "/api/v1/operations", {"action": "cancel", "all": True}),
        ("PUT", "/api/v1/namespaces/new", {"numShards": 1}),
        ("POST", "/api/v1/namespaces/default/secrets", {}),
        ("POST", "/api/v1/keys", {"name": "door", "roles": ["admin"], "namespaces": ["*"]}),
    ],
)
async def test_a_request_is_refused_if_its_key_ends_before_its_body(
    api: ApiBench, method: str, path: str, body: object, ending: Ending
) -> None:
    key, end = await ending(api)
    whole = msgspec.json.encode(body)
    reply = await send(api, method, path, key, whole[:1], end, whole[1:])
    assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Bearer realm="duetime"')
    assert ENDED in reply.json["message"]
    assert not any((await api.timers_stored()).values())
    keys = await api.request("GET", "/api/v1/keys")
    assert "door" not in [each["name"] for each in keys.json["keys"]]


@ends
async def test_an_import_ends_with_its_key(api: ApiBench, ending: Ending) -> None:
    key, end = await ending(api)

    async def created() -> None:
        while (await api.request("GET", TIMER)).status == 404:
            await api.clock.sleep(0)

    lines = (line("one"), line("two"), created, end, line("three"), line("four"))
    reply = await send(api, "POST", "/api/v1/timers/import", key, *lines)
    assert (reply.status, reply.json["error"]) == (401, "UNAUTHORIZED")
    assert (await api.request("GET", TIMER)).status == 200
    for id in ("three", "four"):
        assert (await api.request("GET", f"/api/v1/timers/default/{id}")).status == 404
    entries = (await api.request("GET", "/api/v1/audit-log?action=timer.import")).json["entries"]
    assert [each["result"] for each in entries] == ["UNAUTHORIZED"]
    assert "created=1" in entries[0]["details"]


@ends
async def test_a_plain_create_is_refused_if_its_key_ends_before_its_body(
    api: ApiBench, ending: Ending
) -> None:
    key, end = await ending(api)
    body = msgspec.json.encode(create_body())
    length = (b"content-length", b"%d" % len(body))
    headers = [(b"x-api-key", key.encode()), (b"host", b"timers.example"), length]
    caller = api.app.fast_create.admit(b"POST", b"/timers", headers)
    assert caller is not None
    await end()
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    api.app.fast_create.handle(caller, body, answered.set_result)
    assert (await answered).status == 401
    assert not any((await api.timers_stored()).values())


async def test_a_key_that_is_rotated_with_an_overlap_goes_on(api: ApiBench) -> None:
    key = await api.issue_key("write")

    async def rotate() -> None:
        reply = await api.request("POST", f"/api/v1/keys/{key.split('_')[1]}/rotate")
        assert reply.status == 201

    body = msgspec.json.encode(create_body())
    assert (await send(api, "POST", "/timers", key, body[:1], rotate, body[1:])).status == 201


async def test_the_key_of_the_settings_never_ends(api: ApiBench) -> None:
    _, end = await revoked_key(api)
    body = msgspec.json.encode(create_body())
    assert (await send(api, "POST", "/timers", API_KEY, body[:1], end, body[1:])).status == 201
