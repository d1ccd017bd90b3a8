"""Rules for every path: keys, methods, unknown paths, failures."""

import asyncio
from collections.abc import Sequence

import pytest
import structlog
from msgspec.structs import replace

from duetime.api.platform.types import DiskStatus
from duetime.domain.errors import StorageFull, StoreUnavailable
from duetime.ports.store import CreateRequest, CreateResult, Page, PageQuery
from duetime.stores.memory import MemoryStore
from tests.unit.api.asgi_client import (
    API_KEY,
    ApiBench,
    RawHeaders,
    call,
    create_body,
    make_api_rules,
)

PROTECTED = [
    ("POST", "/timers"),
    ("GET", "/timers"),
    ("GET", "/timers/x"),
    ("PUT", "/timers/x"),
    ("DELETE", "/timers/x"),
]


class TestAuthentication:
    @pytest.mark.parametrize(("method", "path"), PROTECTED)
    @pytest.mark.parametrize(
        "headers",
        [
            [],
            [(b"x-api-key", b"")],
            [(b"x-api-key", b"wrong")],
            [(b"x-api-key", API_KEY[:-1].encode())],
            [(b"x-api-key", API_KEY.encode() + b"x")],
            [(b"x-api-key", API_KEY.encode() + b"\n")],
            [(b"x-api-key", b"\xff\xfe\x00")],
            [(b"x-api-key", "schlüssel".encode())],
            [(b"authorization", API_KEY.encode())],
        ],
    )
    async def test_requests_without_the_key_are_refused_before_the_body_is_read(
        self, api: ApiBench, method: str, path: str, headers: RawHeaders
    ) -> None:
        chunks = iter([b"first", b"second", b"third"])
        reply = await call(api.app, method, path, chunks, headers)
        assert reply.error == (
            401,
            4,
            "missing or invalid key: send X-API-Key, or Authorization: Bearer",
        )
        assert list(chunks) == [b"second", b"third"]

    @pytest.mark.parametrize("path", ["/timers", "/api/v1/timers"])
    @pytest.mark.parametrize("other", [b"wrong", API_KEY.encode()])
    async def test_two_keys_are_refused(self, api: ApiBench, path: str, other: bytes) -> None:
        right = (b"x-api-key", API_KEY.encode())
        for headers in ([right, (b"x-api-key", other)], [(b"x-api-key", other), right]):
            reply = await call(api.app, "GET", path, headers=headers)
            assert (reply.status, reply.json["message"]) == (
                401,
                "X-API-Key is given more than once",
            )

    async def test_a_key_beyond_ascii_works(self) -> None:
        api = ApiBench(api_key="schlüssel" * 4)
        await api.open()
        headers = [(b"x-api-key", ("schlüssel" * 4).encode())]
        assert (await call(api.app, "GET", "/timers", headers=headers)).status == 200

    async def test_authentication_may_be_turned_off(self) -> None:
        api = ApiBench(api_key=None)
        await api.open()
        assert (await call(api.app, "GET", "/timers")).status == 200


class TestRouting:
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/timers"),
            ("GET", "/timers/00000000-0000-7000-8000-000000000000"),
            ("PUT", "/timers/00000000-0000-7000-8000-000000000000"),
            ("DELETE", "/timers/00000000-0000-7000-8000-000000000000"),
            ("GET", "/timers"),
        ],
    )
    async def test_unknown_query_parameters_are_refused(
        self, api: ApiBench, method: str, path: str
    ) -> None:
        status, code, message = (await api.request(method, f"{path}?dry_run=true")).error
        assert (status, code) == (400, 2)
        assert message.startswith("dry_run is not a known parameter")

    @pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/docs", "/openapi.json"])
    async def test_probes_and_documents_ignore_their_query(self, api: ApiBench, path: str) -> None:
        for query in ("verbose", "t=1700000000&t=2", "%ff"):
            assert (await call(api.app, "GET", f"{path}?{query}")).status == 200

    @pytest.mark.parametrize("path", ["/nowhere", "/timers/", "/timers/a/b", "/api/v2", "//"])
    @pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
    async def test_unknown_paths(self, api: ApiBench, method: str, path: str) -> None:
        assert (await api.request(method, path)).error == (404, 3, "no such path")

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "/timers", "GET, POST, HEAD"),
            ("PATCH", "/timers/x", "GET, PUT, DELETE, HEAD"),
            ("POST", "/healthz", "GET, HEAD"),
            ("DELETE", "/docs", "GET, HEAD"),
            ("BREW", "/", "GET, HEAD"),
        ],
    )
    async def test_wrong_methods(self, api: ApiBench, method: str, path: str, allowed: str) -> None:
        reply = await api.request(method, path)
        assert reply.error == (405, 2, f"method not allowed: this path takes {allowed}")
        assert reply.headers["allow"] == allowed

    @pytest.mark.parametrize(
        "path", ["/timers", "/healthz", "/docs", "/openapi.json", "/asyncapi.json"]
    )
    async def test_head_is_answered_like_get(self, api: ApiBench, path: str) -> None:
        assert (await api.request("HEAD", path)).status == 200

    async def test_the_bus_is_described_to_everyone(self, api: ApiBench) -> None:
        reply = await call(api.app, "GET", "/asyncapi.json")
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert reply.json["asyncapi"] == "3.0.0"

    async def test_the_front_page_leads_to_the_docs(self, api: ApiBench) -> None:
        reply = await call(api.app, "GET", "/")
        assert (reply.status, reply.headers["location"]) == (307, "/ui")


class BrokenStore(MemoryStore):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        raise self.error

    async def page(self, query: PageQuery) -> Page:
        raise self.error

    async def ping(self) -> None:
        raise self.error


class TestFailures:
    async def bench(self, error: Exception) -> ApiBench:
        api = ApiBench(store=BrokenStore(error))
        await api.open()
        return api

    @pytest.mark.parametrize(("method", "body"), [("POST", create_body()), ("GET", b"")])
    async def test_a_defect_is_logged_and_answered_without_details(
        self, method: str, body: object
    ) -> None:
        api = await self.bench(RuntimeError("secret detail"))
        with structlog.testing.capture_logs() as logs:
            reply = await api.request(method, "/timers", body)
        assert reply.error == (500, 1, "internal error")
        assert [entry["event"] for entry in logs] == ["api.request_failed"]
        assert str(logs[0]["exc_info"]) == "secret detail"

    async def test_the_answer_explains_that_the_store_is_unavailable(self) -> None:
        api = await self.bench(StoreUnavailable("the disk is full"))
        with structlog.testing.capture_logs() as logs:
            reply = await api.create()
        assert reply.error == (503, 1, "the disk is full")
        assert reply.headers["retry-after"] == "2"
        assert [entry["event"] for entry in logs] == ["api.unavailable"]

    async def test_a_full_disk_is_answered_in_the_format_of_each_api_and_not_logged_each_time(
        self,
    ) -> None:
        api = await self.bench(StorageFull("the disk is nearly full"))
        body = {
            "id": "t",
            "executeAt": "2030-01-01T00:01:00Z",
            "callbackUrl": "http://127.0.0.1:9/",
        }
        with structlog.testing.capture_logs() as logs:
            platform = await api.create()
            v1 = await api.request("POST", "/api/v1/timers", body)
        assert platform.error == (503, 1, "the disk is nearly full")
        assert (v1.status, v1.json["error"]) == (507, "INSUFFICIENT_STORAGE")
        assert v1.json["message"] == "the disk is nearly full"
        assert platform.headers["retry-after"] == v1.headers["retry-after"] == "2"
        assert not logs

    async def test_no_answer_is_sent_after_a_disconnect(self, api: ApiBench) -> None:
        sent: list[object] = []

        async def receive() -> dict[str, object]:
            return {"type": "http.disconnect"}

        async def send(message: object) -> None:
            sent.append(message)

        for method, path in (
            ("POST", "/timers"),
            ("PUT", "/timers/" + "0" * 8 + "-0000" * 3 + "-" + "0" * 12),
        ):
            scope = {
                "type": "http",
                "method": method,
                "path": path,
                "query_string": b"",
                "headers": [(b"x-api-key", API_KEY.encode())],
            }
            await api.app(scope, receive, send)
        assert sent == []


class HangingStore(MemoryStore):
    async def ping(self) -> None:
        await asyncio.Event().wait()


class CountingStore(MemoryStore):
    pings = 0

    async def ping(self) -> None:
        self.pings += 1
        answered = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(answered.set_result, None)
        await answered


class TestHealth:
    async def test_up(self, api: ApiBench) -> None:
        reply = await call(api.app, "GET", "/healthz")
        assert reply.status == 200
        assert reply.json == {
            "code": 0,
            "message": "healthy",
            "data": {
                "status": "up",
                "database": "connected",
                "timestamp": "2030-01-01T00:00:00Z",
                "engine": {
                    "running": True,
                    "shards_owned": 16,
                    "lateness_ms": 0.5,
                    "in_flight": 2,
                    "local_shortages": 0,
                    "callbacks_refused": 0,
                },
            },
        }

    async def test_degraded_when_the_store_fails_or_hangs(self) -> None:
        for store in (BrokenStore(StoreUnavailable("gone")), HangingStore()):
            api = ApiBench(store=store, api_rules=make_api_rules(ping_timeout_seconds=0.01))
            with structlog.testing.capture_logs() as logs:
                reply = await call(api.app, "GET", "/healthz")
            assert reply.status == 500
            assert (reply.json["code"], reply.json["message"]) == (1, "database connection failed")
            assert (reply.data["status"], reply.data["database"]) == ("degraded", "disconnected")
            assert [entry["event"] for entry in logs] == ["api.store_unreachable"]

    async def test_checks_at_the_same_time_share_one_question_to_the_store(self) -> None:
        store = CountingStore()
        api = ApiBench(store=store)
        replies = await asyncio.gather(*(call(api.app, "GET", "/healthz") for _ in range(50)))
        assert {reply.status for reply in replies} == {200}
        assert store.pings == 1
        assert (await call(api.app, "GET", "/healthz")).status == 200
        assert store.pings == 2

    @pytest.mark.parametrize("is_full", [False, True])
    async def test_the_disk_is_named_before_the_engine(self, api: ApiBench, is_full: bool) -> None:
        disk = DiskStatus(free_bytes=10, reserve_bytes=20, short=True)
        api.engine = replace(api.engine, running=False, disk=disk, disk_is_full=is_full)
        reply = await call(api.app, "GET", "/healthz")
        assert (reply.status, reply.data["status"]) == (500, "degraded")
        assert reply.json["message"].startswith("the disk is ")
        assert reply.data["disk"] == {"free_bytes": 10, "reserve_bytes": 20, "short": True}

    async def test_degraded_when_the_engine_does_not_run(self, api: ApiBench) -> None:
        api.engine = replace(api.engine, running=False)
        reply = await call(api.app, "GET", "/healthz")
        assert reply.status == 500
        assert (reply.json["code"], reply.json["message"]) == (1, "engine is not running")
        assert (reply.data["status"], reply.data["database"]) == ("degraded", "connected")


@pytest.mark.parametrize(
    "target", [b"", b"*", b"//[", b"http://[/", b"/\xff", b"\x00", b"http://x"]
)
def test_a_refusal_has_an_answer_whatever_the_target_is(api: ApiBench, target: bytes) -> None:
    assert b'"code":2' in api.app.refusal(target, 400, "why").content


@pytest.mark.parametrize("target", [b"/api/v1/x?y", b"/api/v1/\xff", b"http://[/api/v1/x"])
def test_a_refusal_has_the_format_of_the_api(api: ApiBench, target: bytes) -> None:
    assert b'"error":"INVALID_INPUT"' in api.app.refusal(target, 400, "why").content
