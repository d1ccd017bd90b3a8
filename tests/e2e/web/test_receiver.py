"""The built-in receiver on a real server, whose protection of callbacks is as usual."""

import re
from pathlib import Path

import httpx
import pytest

from tests.e2e.web.web_client import WebClient, words_of
from tests.polling import poll
from tests.real_server.server_process import ServerProcess
from tests.real_server.v1_requests import wait_for_v1

pytestmark = pytest.mark.e2e

TOKEN = "token-of-mine"
PAGE = f"/ui/receiver/{TOKEN}"
URL = f"https://receiver.duetime.invalid/{TOKEN}"


async def create(api: httpx.AsyncClient, id: str, url: str = URL, **more: object) -> None:
    body = {"id": id, "executeIn": "10ms", "callbackUrl": url, **more}
    answer = await api.post("/api/v1/timers", json=body)
    assert answer.is_success, answer.text


async def test_one_click_sends_a_timer_and_shows_it_arrive(
    api: httpx.AsyncClient, web: WebClient
) -> None:
    start = await web.get("/ui/receiver")
    assert start.status_code == 303
    place = start.headers["location"]
    assert re.fullmatch(r"/ui/receiver/[0-9a-f]{20}", place)
    sent = await web.send(f"{place}/send", {"answer": "200"}, page=place)
    assert sent.status_code == 303
    followed = sent.headers["location"]
    assert "Your timer fires" in words_of(await web.get(followed))

    async def look() -> str:
        return words_of(await web.get(followed))

    words = await poll(look, lambda words: "Arrived ," in words)
    assert re.search(r"Arrived , [\d.]+ m?s late", words)
    assert "after 1 attempt" in words
    assert '{"hello":"from Duetime"}' in words
    assert "webhook-id" in words
    # The browser comes back to the same receiver, and others have their own.
    assert "from Duetime" in words_of(await web.get(place))
    assert "Nothing yet" in words_of(await web.get(PAGE))


async def test_retries_are_seen(api: httpx.AsyncClient, web: WebClient) -> None:
    policy = {"initialInterval": "10ms", "maxRetries": 5}
    await create(api, "retried", f"{URL}/500-twice", retryPolicy=policy)
    await wait_for_v1(api, "retried", "completed")
    words = words_of(await web.get(f"{PAGE}?namespace=default&timer=retried"))
    assert "after 3 attempts" in words
    assert "attempt 3" in words
    await create(api, "gone", f"{URL}/410", retryPolicy={"maxRetries": 0})
    assert (await wait_for_v1(api, "gone", "failed"))["lastError"] == "HTTP 410"


async def test_signatures_are_verified_and_secrets_are_hidden(
    api: httpx.AsyncClient, web: WebClient
) -> None:
    made = await api.post("/api/v1/namespaces/default/secrets", json={})
    assert made.is_success, made.text
    await create(api, "signed", callbackHeaders={"Authorization": "Bearer hidden"})
    await wait_for_v1(api, "signed", "completed")
    page = await web.get(PAGE)
    assert "signature verified" in words_of(page)
    assert "Authorization [redacted]" in words_of(page)
    assert "Bearer hidden" not in page.text


async def test_large_and_hostile_bodies_are_shown_as_text(
    api: httpx.AsyncClient, web: WebClient
) -> None:
    hostile = "</pre><script>alert(1)</script>"
    await create(api, hostile, payload=hostile + "x" * 100_000, callbackProtocol="status")
    answer = await poll(lambda: web.get(PAGE), lambda answer: "The first 64 KiB" in answer.text)
    assert "<script>alert" not in answer.text
    assert len(answer.content) < 50_000
    found = re.search(rf'href="({PAGE}/bodies/\d+)"', answer.text)
    assert found is not None
    body = await web.get(found[1])
    assert body.headers["content-type"].startswith("text/plain")
    assert len(body.content) == 64 * 1024
    assert (await web.get(f"{PAGE}/bodies/999")).status_code == 404


async def test_another_team_sees_nothing(api: httpx.AsyncClient) -> None:
    assert (await api.put("/api/v1/namespaces/team-a", json={})).is_success
    await create(api, "mine")
    await wait_for_v1(api, "mine", "completed")
    body = {"name": "a", "roles": ["read"], "namespaces": ["team-a"]}
    key = (await api.post("/api/v1/keys", json=body)).json()["key"]
    reader = WebClient(api, key)
    words = words_of(await reader.get(f"{PAGE}?namespace=default&timer=mine"))
    assert "Nothing yet" in words
    assert "mine" not in words.replace(TOKEN, "")
    assert "may only read" in words
    sent = await reader.send(f"{PAGE}/send", {}, page=PAGE)
    assert sent.status_code == 403


async def test_bad_addresses_and_answers_are_refused(
    api: httpx.AsyncClient, web: WebClient
) -> None:
    assert (await web.get("/ui/receiver/short")).status_code == 404
    sent = await web.send(f"{PAGE}/send", {"answer": "301"}, page=PAGE)
    assert sent.status_code == 400
    assert "answer must be one of 200" in words_of(sent).lower()
    body = {"id": "x", "executeIn": "1h", "callbackUrl": f"{URL}/teapot"}
    answer = await api.post("/api/v1/timers", json=body)
    assert answer.status_code == 400
    assert "callbackUrl must be https://receiver.duetime.invalid/TOKEN" in answer.json()["message"]


async def test_callbacks_of_other_processes_are_told_from_the_store(tmp_path: Path) -> None:
    """After a restart another process serves the page, as with several workers."""
    async with ServerProcess(tmp_path, CALLBACK_NETWORKS="*.example.com:443") as server:
        async with server.client() as api:
            await create(api, "before")
            await wait_for_v1(api, "before", "completed")
        await server.stop()
        await server.start()
        async with server.client() as api:
            page = await WebClient(api).get(f"{PAGE}?namespace=default&timer=before")
            words = words_of(page)
            assert re.search(r"Arrived , [\d.]+ m?s late", words)
            assert "Another process of this service received it" in words
            assert "Nothing yet" in words
