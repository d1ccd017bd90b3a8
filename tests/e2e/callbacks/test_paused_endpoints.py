"""A real server, real callbacks, and an operator who pauses their endpoint."""

from typing import Any

import httpx
import pytest

from duetime.domain.instants import Instant, plus_ms
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.command import Cli
from tests.real_server.databases import on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms, now
from tests.real_server.v1_requests import create_v1, wait_for_v1

pytestmark = [pytest.mark.e2e, pytest.mark.slow, on_every_database]

OK = Answer(body=b'{"ok": true}')


async def change(api: httpx.AsyncClient, word: str, endpoint: str, **more: object) -> Any:
    answer = await api.post(f"/api/v1/endpoints/{word}", json={"endpoint": endpoint, **more})
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def pass_by(instant: Instant) -> None:
    async def look() -> Instant:
        return now()

    await poll(look, lambda moment: moment > instant)


async def endpoint_of(api: httpx.AsyncClient, url: str) -> Any:
    listed = (await api.get("/api/v1/endpoints")).json()["endpoints"]
    return next((each for each in listed if each["endpoint"] == url), None)


async def test_a_due_timer_waits_for_the_resume_and_says_why(
    api: httpx.AsyncClient, receiver: CallbackReceiver, cli: Cli
) -> None:
    receiver.reaction = OK
    shown = await cli("endpoints", "pause", receiver.url, "--reason", "a deploy")
    assert shown.status == 0, shown.errors
    assert "by API_KEY: a deploy" in shown.output
    due_at = in_ms(200)
    await create_v1(api, "t", receiver.url, due_at)
    seen = await poll(
        lambda: endpoint_of(api, receiver.url), lambda each: each is not None and each["waiting"]
    )
    assert seen["paused"]["reason"] == "a deploy"
    await pass_by(plus_ms(due_at, 1_000))
    assert receiver.requests == []
    waiting = await wait_for_v1(api, "t", "pending")
    assert waiting["attempts"] == []
    explained = (await api.get("/api/v1/explain/default/t")).json()
    assert f"{receiver.url} is paused since" in explained["verdict"]
    assert "paused" in (await cli("endpoints")).output
    resumed = await cli("endpoints", "resume", receiver.url)
    assert resumed.status == 0, resumed.errors
    done = await wait_for_v1(api, "t", "completed")
    assert [each["number"] for each in done["attempts"]] == [1]
    assert len(receiver.requests) == 1
    explained = (await api.get("/api/v1/explain/default/t")).json()
    assert "waiting for its paused endpoint to be resumed" in explained["verdict"]
    figures = (await endpoint_of(api, receiver.url))["last15Minutes"]
    assert (figures["attempts"], figures["failures"]) == (1, 0)


async def test_a_pause_outlives_a_kill(server: ServerProcess, receiver: CallbackReceiver) -> None:
    receiver.reaction = OK
    async with server.client() as api:
        await change(api, "pause", receiver.url, reason="a deploy")
        due_at = in_ms(300)
        for number in range(20):
            await create_v1(api, f"t-{number}", receiver.url, due_at)
        await poll(
            lambda: endpoint_of(api, receiver.url), lambda each: each and each["waiting"] == 20
        )
    await server.kill()
    await server.start()
    async with server.client() as api:
        await create_v1(api, "late", receiver.url, in_ms(200))
        await poll(
            lambda: endpoint_of(api, receiver.url), lambda each: each and each["waiting"] >= 1
        )
        assert receiver.requests == []
        assert (await endpoint_of(api, receiver.url))["paused"]["reason"] == "a deploy"
        await change(api, "resume", receiver.url)
        for id in ("late", *(f"t-{number}" for number in range(20))):
            await wait_for_v1(api, id, "completed")
        assert len(receiver.requests) == 21, "once each"


async def test_an_endpoint_beside_a_paused_one_is_called_on_time(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.reaction = OK
    await change(api, "pause", "http://127.0.0.1:9")
    due_at = in_ms(400)
    batch = [
        {"id": f"p-{number}", "executeIn": "300ms", "callbackUrl": "http://127.0.0.1:9/x"}
        for number in range(1_000)
    ]
    answer = await api.post("/api/v1/timers/batch", json={"timers": batch})
    assert answer.status_code == 200, answer.text
    await create_v1(api, "t", receiver.url, due_at)
    done = await wait_for_v1(api, "t", "completed")
    assert len(done["attempts"]) == 1
    await change(api, "resume", "http://127.0.0.1:9")
