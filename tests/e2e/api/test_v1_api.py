"""The v1 API on a real server: callbacks, their answers, retries and reschedules."""

import json
from datetime import datetime, timedelta

import httpx
import pytest

from duetime.domain.instants import format_instant, parse_instant
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.databases import on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import (
    QUICK_RETRIES,
    TIMERS,
    Json,
    create_v1,
    get_v1,
    v1_body,
    v1_path,
    wait_for_v1,
)

pytestmark = [pytest.mark.e2e, on_every_database]

OK = Answer(body=b'{"ok": true}')
REFUSED = Answer(body=b'{"ok": false}')


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_a_callback_names_its_timer(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.reaction = OK
    payload = {"userId": "user123", "n": 1.50}
    created = await create_v1(api, "a/b %", receiver.url, in_ms(100), payload=payload)
    (request,) = await receiver.wait_for(1)
    assert json.loads(request.body) == {
        "namespace": "default",
        "id": "a/b %",
        "executeAt": created["executeAt"],
        "attempt": 1,
        "payload": payload,
    }
    assert request.headers["webhook-id"] == created["deliveryId"]
    assert request.headers["timer-attempt"] == "1"
    assert request.arrived_at >= parse_instant(created["executeAt"])
    timer = await wait_for_v1(api, "a/b %", "completed")
    assert timer["executedAt"] is not None
    assert [attempt["error"] for attempt in timer["attempts"]] == [None]


async def test_a_failing_callback_is_retried_by_its_policy(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.script("/hook", Answer(500), REFUSED, Answer(body=b"<html>"), OK)
    await create_v1(api, "retried", f"{receiver.url}/hook", in_ms(100), retryPolicy=QUICK_RETRIES)
    timer = await wait_for_v1(api, "retried", "completed", "failed")
    assert timer["status"] == "completed"
    requests = receiver.of("/hook")
    assert [request.headers["timer-attempt"] for request in requests] == ["1", "2", "3", "4"]
    assert len({request.headers["webhook-id"] for request in requests}) == 1
    attempts = timer["attempts"]
    assert [attempt["number"] for attempt in attempts] == [1, 2, 3, 4]
    errors = [attempt["error"] for attempt in attempts]
    assert errors[:2] == ["HTTP 500", 'answered {"ok": false}']
    assert errors[2].startswith('HTTP 200, but the answer is not {"ok": true|false}')
    assert errors[3] is None
    for before, after, least_ms in zip(attempts, attempts[1:], (50, 100, 200), strict=False):
        planned = instant(after["dueAt"]) - instant(before["answeredAt"])
        assert timedelta(milliseconds=least_ms) <= planned <= timedelta(milliseconds=1.2 * least_ms)
        assert instant(after["sentAt"]) >= instant(after["dueAt"])


async def test_retry_after_is_honoured(api: httpx.AsyncClient, receiver: CallbackReceiver) -> None:
    receiver.script("/hook", Answer(503, headers={"Retry-After": "1"}), OK)
    policy = {"maxRetries": 1, "initialInterval": "10ms", "maxInterval": "5s"}
    await create_v1(api, "busy", f"{receiver.url}/hook", in_ms(100), retryPolicy=policy)
    timer = await wait_for_v1(api, "busy", "completed", "failed")
    first, second = timer["attempts"]
    assert instant(second["dueAt"]) - instant(first["answeredAt"]) >= timedelta(seconds=1)


async def test_a_timer_fails_when_its_retries_are_used_up_and_can_be_redriven(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.script("/hook", Answer(500), Answer(500), OK)
    policy = {**QUICK_RETRIES, "maxRetries": 1}
    await api.put("/api/v1/namespaces/redriven", json={})
    own: Json = {"namespace": "redriven"}
    await create_v1(api, "dead", f"{receiver.url}/hook", in_ms(100), retryPolicy=policy, **own)
    failed = await wait_for_v1(api, "dead", "failed", "completed", **own)
    assert (failed["status"], failed["lastError"]) == ("failed", "HTTP 500")
    assert len(failed["attempts"]) == 2
    listed = await api.get(TIMERS, params={"status": "failed", **own})
    assert [timer["id"] for timer in listed.json()["timers"]] == ["dead"]
    body = {"all": True, "dryRun": True, **own}
    counted = await api.post(f"{TIMERS}/redrive", json=body)
    assert counted.json() == {"matched": 1, "redriven": 0}
    redriven = await api.post(f"{TIMERS}/redrive", json={"timerId": "dead", **own})
    assert redriven.json() == {"matched": 1, "redriven": 1}
    timer = await wait_for_v1(api, "dead", "completed", **own)
    assert [attempt["number"] for attempt in timer["attempts"]] == [1, 2, 1]
    first, _, last = receiver.of("/hook")
    assert first.headers["webhook-id"] != last.headers["webhook-id"]


async def test_the_answer_of_a_callback_can_reschedule_the_timer(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    next_at = in_ms(1_500)
    again = {"ok": False, "nextExecuteAt": format_instant(next_at)}
    receiver.script("/hook", Answer(500), Answer(body=json.dumps(again).encode()), OK)
    body = v1_body("again", f"{receiver.url}/hook", in_ms(500), retryPolicy=QUICK_RETRIES)
    assert (await api.post(TIMERS, json=body)).status_code == 200
    timer = await wait_for_v1(api, "again", "completed", "failed")
    requests = receiver.of("/hook")
    assert [request.headers["timer-attempt"] for request in requests] == ["1", "2", "1"]
    assert requests[2].arrived_at >= next_at
    assert requests[2].headers["webhook-id"] != requests[1].headers["webhook-id"]
    assert timer["executeAt"] == format_instant(next_at)
    outcomes = [attempt["outcome"] for attempt in timer["attempts"]]
    assert outcomes == ["failed", "rescheduled", "completed"]
    # A client that missed the answer to its create may repeat the create.
    repeated = await api.post(TIMERS, json=body)
    assert (repeated.status_code, repeated.json()["status"]) == (200, "completed")


async def test_a_create_says_if_the_timer_is_new_and_a_conflict_names_the_differences(
    api: httpx.AsyncClient,
) -> None:
    body = v1_body("one", "http://127.0.0.1:1/", in_ms(3_600_000), payload={"a": 1.50, "b": [2]})
    other = {**body, "payload": {"a": 1.5, "b": []}, "metadata": 1}
    created = await api.post(TIMERS, json=body)
    again = await api.post(TIMERS, json=body)
    refused = await api.post(TIMERS, json=other)
    replaced = await api.post(f"{TIMERS}/create", json=other)
    answers = (created, again, replaced)
    assert [each.headers["timer-existence"] for each in answers] == [
        "created",
        "existing",
        "replaced",
    ]
    assert again.json() == created.json()
    assert (refused.status_code, refused.json()["details"]) == (
        409,
        {"fields": ["payload", "metadata"]},
    )


async def test_a_removed_timer_never_fires(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.reaction = OK
    await create_v1(api, "gone", f"{receiver.url}/gone", in_ms(300))
    assert (await api.delete(v1_path("gone"))).status_code == 204
    assert (await api.get(v1_path("gone"))).status_code == 404
    await create_v1(api, "stays", f"{receiver.url}/stays", in_ms(400))
    await wait_for_v1(api, "stays", "completed")
    assert receiver.of("/gone") == []


async def test_all_timers_of_a_batch_fire(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.reaction = OK
    due_at = in_ms(500)
    bodies = [v1_body(f"timer {number}", receiver.url, due_at) for number in range(500)]
    answer = await api.post(f"{TIMERS}/batch", json={"timers": bodies})
    assert {result["status"] for result in answer.json()["results"]} == {"created"}
    requests = await receiver.wait_for(500)
    assert {json.loads(request.body)["id"] for request in requests} == {
        body["id"] for body in bodies
    }


async def test_invalid_entries_of_a_batch_are_reported_with_their_ids(
    api: httpx.AsyncClient,
) -> None:
    fine = v1_body("fine", "http://127.0.0.1:1/", in_ms(60_000))
    timers = [fine, {**fine, "id": "typo", "extra": 1}, 7]
    answer = await api.post(f"{TIMERS}/batch", json={"timers": timers})
    results = answer.json()["results"]
    assert [(each["status"], each.get("id")) for each in results] == [
        ("created", "fine"),
        ("invalid", "typo"),
        ("invalid", None),
    ]
    assert results[2]["error"]["message"] == "timer must be an object"


async def test_both_apis_show_the_same_timers(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.reaction = OK
    timer_id = "0190a0a0-0000-7000-8000-000000000001"
    await create_v1(api, timer_id, receiver.url, in_ms(100))
    await wait_for_v1(api, timer_id, "completed")
    seen = (await api.get(f"/timers/{timer_id}")).json()["data"]
    assert (seen["id"], seen["status"]) == (timer_id, "completed")
    assert (await get_v1(api, timer_id))["status"] == "completed"
