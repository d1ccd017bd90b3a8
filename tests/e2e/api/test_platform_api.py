"""The platform document's checklist, against a real server and a real receiver."""

from datetime import datetime
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from duetime import __version__
from duetime.domain.instants import Instant, format_instant, instant_of, plus_ms
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import (
    count_timers,
    create_timer,
    get_timer,
    in_ms,
    now,
    timer_body,
    wait_for_status,
)

pytestmark = [pytest.mark.e2e, on_every_database]

HOUR_MS = 3_600_000
UNKNOWN_ID = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


def instant(text: str) -> Instant:
    return instant_of(datetime.fromisoformat(text))


async def test_create_returns_the_timer(api: httpx.AsyncClient) -> None:
    execute_at = in_ms(HOUR_MS)
    body = timer_body("https://example.com/hook", execute_at, callback={"payload": {"n": 1}})
    answer = await api.post("/timers", json=body)
    assert answer.status_code == 201
    envelope = answer.json()
    assert (envelope["code"], envelope["message"]) == (0, "timer created successfully")
    data = envelope["data"]
    assert UUID(data["id"]).version == 7
    assert instant(data["execute_at"]) == execute_at
    assert (data["status"], data["callback_type"]) == ("pending", "http")
    assert data["executed_at"] is None
    assert data["created_at"] <= format_instant(now())


async def test_an_instant_may_have_any_offset(api: httpx.AsyncClient) -> None:
    body = timer_body("https://example.com/hook", in_ms(HOUR_MS))
    body["execute_at"] = "2031-01-01T02:00:00.123+02:00"
    answer = await api.post("/timers", json=body)
    assert answer.json()["data"]["execute_at"] == "2031-01-01T00:00:00.123Z"


async def test_get_returns_all_fields_as_they_were_given(api: httpx.AsyncClient) -> None:
    callback = {"headers": {"X-Tag": "a"}, "payload": {"message": "due", "deep": [1, {"x": None}]}}
    timer_id = await create_timer(
        api,
        "https://example.com/hook",
        in_ms(HOUR_MS),
        callback=callback,
        metadata={"team": "billing"},
    )
    timer = await get_timer(api, timer_id)
    assert timer["callback_config"] == {
        "type": "http",
        "url": "https://example.com/hook",
        **callback,
    }
    assert timer["metadata"] == {"team": "billing"}
    assert (timer["status"], timer["last_error"], timer["executed_at"]) == ("pending", None, None)
    assert (timer["attempt"], timer["attempts"], timer["retry_policy"]) == (0, [], None)


async def test_list_filters_sorts_and_pages(tmp_path: Path, database: Database) -> None:
    async with ServerProcess(tmp_path, **database.settings) as server, server.client() as api:
        start = in_ms(HOUR_MS)
        ids = [
            await create_timer(api, "https://example.com/hook", plus_ms(start, -1_000 * n))
            for n in range(5)
        ]
        await api.delete(f"/timers/{ids[0]}")
        answer = await api.get("/timers", params={"status": "pending", "limit": 2, "offset": 1})
        data = answer.json()["data"]
        assert [timer["id"] for timer in data["timers"]] == [ids[3], ids[2]]
        assert (data["total"], data["limit"], data["offset"]) == (4, 2, 1)
        query = {"sort": "execute_at", "order": "asc"}
        everything = (await api.get("/timers", params=query)).json()["data"]
        assert [timer["id"] for timer in everything["timers"]] == ids[::-1]
        canceled = (await api.get("/timers", params={"status": "canceled"})).json()["data"]
        assert [timer["id"] for timer in canceled["timers"]] == [ids[0]]


async def test_a_query_out_of_range_is_refused(api: httpx.AsyncClient) -> None:
    wrong = ("limit=0", "limit=201", "limit=x", "offset=-1", "status=done", "sort=id", "order=up")
    for query in wrong:
        answer = await api.get(f"/timers?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, 2), query
        assert query.split("=")[0] in answer.json()["message"]


async def test_update_changes_the_given_fields(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    timer_id = await create_timer(
        api, f"{receiver.url}/old", in_ms(HOUR_MS), callback={"payload": 1}
    )
    execute_at = in_ms(300)
    body = timer_body(f"{receiver.url}/new", execute_at, callback={"payload": 2})
    answer = await api.put(f"/timers/{timer_id}", json=body)
    assert answer.status_code == 200
    assert answer.json()["message"] == "timer updated successfully"
    assert instant(answer.json()["data"]["execute_at"]) == execute_at
    await wait_for_status(api, timer_id, "completed")
    (request,) = receiver.requests
    assert (request.target, request.body) == ("/new", b"2")
    assert request.arrived_at >= execute_at


async def test_cancel_keeps_the_timer_from_firing(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    execute_at = in_ms(400)
    canceled = await create_timer(api, f"{receiver.url}/canceled", execute_at)
    sentinel = await create_timer(api, f"{receiver.url}/sentinel", plus_ms(execute_at, 100))
    for _ in range(2):
        answer = await api.delete(f"/timers/{canceled}")
        assert answer.status_code == 200
        assert answer.json()["data"] == {"id": canceled, "status": "canceled"}
    await wait_for_status(api, sentinel, "completed")
    assert [request.target for request in receiver.requests] == ["/sentinel"]
    refused = await api.put(f"/timers/{canceled}", json={"metadata": 1})
    assert refused.status_code == 400
    assert refused.json()["message"] == "cannot update timer with status 'canceled'"


async def test_a_finished_timer_can_be_neither_canceled_nor_changed(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    timer_id = await create_timer(api, receiver.url, in_ms(150))
    await wait_for_status(api, timer_id, "completed")
    for answer, action in (
        (await api.delete(f"/timers/{timer_id}"), "cancel"),
        (await api.put(f"/timers/{timer_id}", json={"metadata": 1}), "update"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (400, 2)
        message = f"cannot {action} timer with status 'completed'"
        assert answer.json()["message"] == message


async def test_an_unknown_id_is_not_found_and_a_malformed_one_is_refused(
    api: httpx.AsyncClient,
) -> None:
    for method in ("GET", "PUT", "DELETE"):
        body = {"metadata": 1} if method == "PUT" else None
        unknown = await api.request(method, f"/timers/{UNKNOWN_ID}", json=body)
        assert (unknown.status_code, unknown.json()["code"]) == (404, 3), method
        wrong = await api.request(method, "/timers/none", json=body)
        assert (wrong.status_code, wrong.json()["code"]) == (400, 2), method


async def test_health_needs_no_key(server: ServerProcess) -> None:
    async with httpx.AsyncClient(trust_env=False) as stranger:
        answer = await stranger.get(f"{server.url}/healthz")
    assert answer.status_code == 200
    data = answer.json()["data"]
    assert (data["status"], data["database"]) == ("up", "connected")
    assert data["engine"]["running"] is True
    assert data["engine"]["shards_owned"] >= 16


async def test_requests_without_the_key_are_refused(
    server: ServerProcess, api: httpx.AsyncClient
) -> None:
    before = await count_timers(api)
    body = timer_body("https://example.com", in_ms(HOUR_MS))
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as stranger:
        for headers in ({}, {"X-API-Key": "wrong-key"}):
            for answer in (
                await stranger.get("/timers", headers=headers),
                await stranger.post("/timers", headers=headers, json=body),
                await stranger.delete(f"/timers/{UNKNOWN_ID}", headers=headers),
            ):
                assert (answer.status_code, answer.json()["code"]) == (401, 4), headers
                assert answer.json()["data"] is None
    assert await count_timers(api) == before


async def test_a_timer_is_executed_at_its_instant_and_completed(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    execute_at = in_ms(300)
    timer_id = await create_timer(
        api, f"{receiver.url}/hook?a=b", execute_at, callback={"payload": {"test": "execution"}}
    )
    timer = await wait_for_status(api, timer_id, "completed", "failed")
    (request,) = receiver.requests
    assert (request.method, request.target) == ("POST", "/hook?a=b")
    assert request.body == b'{"test":"execution"}'
    assert request.arrived_at >= execute_at
    assert timer["status"] == "completed"
    assert timer["last_error"] is None
    assert execute_at <= instant(timer["executed_at"]) <= now()
    (attempt,) = timer["attempts"]
    assert (attempt["number"], attempt["outcome"], attempt["error"]) == (1, "completed", None)
    assert instant(attempt["sent_at"]) >= execute_at
    assert timer["delivery_id"] == request.headers["webhook-id"]


async def test_a_callback_carries_the_headers_of_duetime_and_of_the_user(
    server: ServerProcess, api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    headers = {
        "Authorization": "Bearer token123",
        "X-Tag": "caf\u00e9",
        "Content-Length": "1",
        "Host": "evil.example",
        "Transfer-Encoding": "chunked",
        "Connection": "close",
        "webhook-id": "mine",
        "Webhook-Timestamp": "1",
        "TIMER-ATTEMPT": "99",
    }
    callback = {"headers": headers, "payload": {"n": 1}}
    timer_id = await create_timer(api, f"{receiver.url}/headers", in_ms(150), callback=callback)
    timer = await wait_for_status(api, timer_id, "completed")
    (request,) = receiver.of("/headers")
    got = request.headers
    assert request.body == b'{"n":1}'
    assert (got["authorization"], got["x-tag"]) == ("Bearer token123", "caf\u00e9")
    assert got["content-type"] == "application/json"
    assert got["content-length"] == "7"
    assert got["host"] == receiver.url.removeprefix("http://")
    assert got["user-agent"] == f"duetime/{__version__} timer-platform/0.1.0"
    assert got["webhook-id"] == timer["delivery_id"]
    assert abs(int(got["webhook-timestamp"]) - now() // 1_000_000) < 30
    assert got["timer-attempt"] == "1"
    assert "transfer-encoding" not in got
    assert got.get("connection") != "close"


async def test_a_callback_without_a_payload_has_no_body(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    nothing = await create_timer(api, f"{receiver.url}/nothing", in_ms(150))
    null = await create_timer(api, f"{receiver.url}/null", in_ms(150), callback={"payload": None})
    await wait_for_status(api, nothing, "completed")
    await wait_for_status(api, null, "completed")
    (without,) = receiver.of("/nothing")
    (with_null,) = receiver.of("/null")
    assert (without.body, without.headers["content-length"]) == (b"", "0")
    assert with_null.body == b"null"


async def test_repeats_with_one_idempotency_key_create_one_timer(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    body = timer_body(f"{receiver.url}/once", in_ms(1_000), idempotency_key="order-1")
    first = await api.post("/timers", json=body)
    again = await api.post("/timers", json=body)
    other = await api.post("/timers", json={**body, "metadata": {"not": "the same"}})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.json()["data"]["id"] == again.json()["data"]["id"]
    assert other.json()["code"] == 2
    await wait_for_status(api, first.json()["data"]["id"], "completed")
    late = await api.post("/timers", json=body)
    assert (late.status_code, late.json()["data"]["status"]) == (200, "completed")
    assert len(receiver.requests) == 1
