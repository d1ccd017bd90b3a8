"""The probes of orchestrators, and requests before the service has started."""

import asyncio

import structlog
from msgspec.structs import replace

from duetime.api.http.answers import RETRY_AFTER_SECONDS
from duetime.domain.errors import StoreUnavailable
from duetime.stores.memory import MemoryStore
from tests.unit.api.asgi_client import API_KEY, ApiBench, Reply, call, create_body, make_api_rules


class AskedStore(MemoryStore):
    """Counts the pings, which fail or hang if told so."""

    def __init__(self) -> None:
        super().__init__()
        self.pings = 0
        self.is_away = False
        self.hangs = False

    async def ping(self) -> None:
        self.pings += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_away:
            raise StoreUnavailable("gone")


async def opened() -> tuple[ApiBench, AskedStore]:
    store = AskedStore()
    api = ApiBench(store=store, api_rules=make_api_rules(ping_timeout_seconds=0.01))
    await api.open()
    return api, store


def told(reply: Reply) -> tuple[int, int, str]:
    if reply.status == 503:
        assert reply.headers["retry-after"] == str(RETRY_AFTER_SECONDS)
    assert list(reply.json) == ["code", "message", "data"]
    return reply.status, reply.json["code"], reply.json["message"]


async def test_a_process_is_alive_while_its_store_is_away() -> None:
    api, store = await opened()
    store.is_away = True
    assert told(await call(api.app, "GET", "/livez")) == (200, 0, "alive")
    api.app.lifecycle.is_started = False
    assert told(await call(api.app, "GET", "/livez")) == (200, 0, "alive")
    assert store.pings == 0


async def test_ready_while_store_and_engine_work() -> None:
    api, store = await opened()
    assert told(await call(api.app, "GET", "/readyz")) == (200, 0, "ready")
    api.engine = replace(api.engine, running=False)
    reply = await call(api.app, "GET", "/readyz")
    assert told(reply) == (503, 1, "the engine is not running")
    api.engine = replace(api.engine, running=True)
    api.clock.advance(1)
    store.is_away = True
    with structlog.testing.capture_logs() as logs:
        reply = await call(api.app, "GET", "/readyz")
    assert told(reply) == (503, 1, "the store does not answer")
    assert [entry["event"] for entry in logs] == ["api.store_unreachable"]


async def test_a_store_that_hangs_does_not_answer() -> None:
    api, store = await opened()
    store.hangs = True
    reply = await call(api.app, "GET", "/readyz")
    assert told(reply) == (503, 1, "the store does not answer")


async def test_the_store_is_asked_once_a_second_however_many_probe() -> None:
    api, store = await opened()
    for second in range(1, 4):
        replies = await asyncio.gather(*(call(api.app, "GET", "/readyz") for _ in range(50)))
        assert {reply.status for reply in replies} == {200}
        await call(api.app, "GET", "/readyz")
        assert store.pings == second
        api.clock.advance(1)


async def test_a_service_that_stops_is_not_ready_and_still_answers() -> None:
    api, _ = await opened()
    headers = [(b"x-api-key", API_KEY.encode()), (b"content-length", b"2"), (b"host", b"x")]
    assert api.app.fast_create.admit(b"POST", b"/timers", headers)
    api.app.drain()
    # The server ends connections after their answers, on the usual path.
    assert not api.app.fast_create.admit(b"POST", b"/timers", headers)
    assert told(await call(api.app, "GET", "/readyz")) == (503, 1, "stopping")
    assert (await call(api.app, "GET", "/livez")).status == 200
    assert (await api.create()).status == 201


async def test_requests_before_the_start_are_refused_in_the_form_of_their_api() -> None:
    api, store = await opened()
    api.app.lifecycle.is_started = False
    assert told(await call(api.app, "GET", "/readyz")) == (503, 1, "starting")
    problem = "the service is starting, try again later"
    reply = await api.create()
    assert reply.error == (503, 1, problem)
    assert reply.headers["retry-after"] == str(RETRY_AFTER_SECONDS)
    reply = await api.request("GET", "/api/v1/timers")
    assert (reply.status, reply.json["error"]) == (503, "SERVICE_UNAVAILABLE")
    assert (reply.json["message"], reply.json["details"]) == (problem, {})
    assert reply.headers["retry-after"] == str(RETRY_AFTER_SECONDS)
    headers = [(b"x-api-key", API_KEY.encode()), (b"content-length", b"2")]
    assert not api.app.fast_create.admit(b"POST", b"/timers", headers)
    # A wrong key is refused first, and documents need no store.
    assert (await call(api.app, "POST", "/timers", [b"{}"])).status == 401
    assert (await call(api.app, "GET", "/openapi.json")).status == 200
    api.app.lifecycle.is_started = True
    assert (await api.request("POST", "/timers", create_body())).status == 201
    assert store.pings == 0
