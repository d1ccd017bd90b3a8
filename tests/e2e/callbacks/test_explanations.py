"""Timers that a real server fires late, and the explanations that it gives for them."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from duetime.domain.instants import Instant, parse_instant, plus_ms
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver, Hang
from tests.real_server.command import Cli
from tests.real_server.databases import on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, now
from tests.real_server.v1_requests import create_v1, wait_for_v1

pytestmark = [pytest.mark.e2e, pytest.mark.slow, on_every_database]

OK = b'{"ok": true}'
NO_RETRIES = {"maxRetries": 0}


async def explain(api: httpx.AsyncClient, id: str, namespace: str = "default") -> Any:
    """The explanation, whose periods add up."""
    answer = await api.get(f"/api/v1/explain/{namespace}/{quote(id, safe='')}")
    assert answer.status_code == 200, answer.text
    explanation = answer.json()
    edges = [explanation["askedAt"], *(each["toAt"] for each in explanation["periods"])]
    assert [each["fromAt"] for each in explanation["periods"]] == edges[:-1]
    assert edges[-1] == explanation["untilAt"]
    for each in explanation["periods"]:
        length = parse_instant(each["toAt"]) - parse_instant(each["fromAt"])
        assert each["ms"] == length / 1_000
    return explanation


def ms_of(explanation: Any, cause: str) -> float:
    return float(sum(each["ms"] for each in explanation["periods"] if each["cause"] == cause))


async def pass_by(instant: Instant) -> None:
    async def look() -> Instant:
        return now()

    await poll(look, lambda moment: moment > instant)


async def test_an_endpoint_that_is_slow_and_one_that_is_tried_again(
    api: httpx.AsyncClient, receiver: CallbackReceiver, cli: Cli
) -> None:
    failure = Answer(503, b"busy")
    receiver.script("/", failure, Answer(body=OK, delay_seconds=0.3))
    policy = {"maxRetries": 2, "initialInterval": "400ms", "maxInterval": "500ms"}
    await create_v1(api, "slow/er", receiver.url, in_ms(200), retryPolicy=policy)
    await wait_for_v1(api, "slow/er", "completed")
    explanation = await explain(api, "slow/er")
    assert ms_of(explanation, "endpoint") >= 300
    assert ms_of(explanation, "retry_policy") >= 390
    assert [each["outcome"] for each in explanation["attempts"]] == ["failed", "completed"]
    shown = await cli("explain", "slow/er")
    assert shown.status == 0, shown.errors
    assert shown.output.splitlines()[0] == explanation["verdict"]
    assert "retry policy: Attempt 1 failed (HTTP 503: busy); its retry was" in shown.output


async def test_a_timer_of_the_platform_api_is_found_without_a_namespace(
    api: httpx.AsyncClient, receiver: CallbackReceiver, cli: Cli
) -> None:
    timer_id = await create_timer(api, receiver.url, in_ms(100_000))
    shown = await cli("explain", str(timer_id))
    assert shown.output.startswith("Not due yet: it fires in "), shown.errors


async def test_a_namespace_at_its_limit(api: httpx.AsyncClient, receiver: CallbackReceiver) -> None:
    receiver.reaction = Answer(body=OK, delay_seconds=0.6)
    created = await api.put("/api/v1/namespaces/small", json={"concurrency": 1})
    assert created.status_code == 200
    due_at = in_ms(300)
    for n in range(3):
        await create_v1(api, f"t-{n}", receiver.url, due_at, namespace="small")
    for n in range(3):
        await wait_for_v1(api, f"t-{n}", "completed", namespace="small")
    explanations = [await explain(api, f"t-{n}", "small") for n in range(3)]
    waited = sorted(ms_of(each, "quota") for each in explanations)
    assert waited[0] < 300
    assert waited[1] > 300
    assert waited[2] > 900
    assert sum("waiting for its namespace's quota" in each["verdict"] for each in explanations) >= 2


async def test_a_breaker_that_is_open(api: httpx.AsyncClient, receiver: CallbackReceiver) -> None:
    receiver.reaction = Answer(503)
    start = in_ms(300)
    for n in range(30):
        due_at = plus_ms(start, 200 * n)
        await create_v1(api, f"early-{n}", receiver.url, due_at, retryPolicy=NO_RETRIES)
    await wait_for_v1(api, "early-29", "failed")
    receiver.reaction = Hang()
    due_at, hanging = in_ms(300), {"callbackTimeout": "4s", "retryPolicy": NO_RETRIES}
    for n in range(4):
        await create_v1(api, f"probe-{n}", receiver.url, due_at, **hanging)
    await create_v1(api, "t", receiver.url, plus_ms(due_at, 500), retryPolicy=NO_RETRIES)

    async def look() -> Any:
        return await explain(api, "t")

    waiting = await poll(look, lambda each: "breaker" in each["verdict"])
    assert f"the breaker of {receiver.url} is open since" in waiting["verdict"]
    assert waiting["live"] is True
    receiver.reaction = Answer(body=OK)
    await wait_for_v1(api, "t", "completed")
    explanation = await explain(api, "t")
    assert ms_of(explanation, "breaker") > 0.8 * explanation["latenessMs"] > 1_000


async def test_a_server_that_is_killed_and_started_again(
    server: ServerProcess, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(body=OK)
    receiver.script("/hangs", Hang(), Answer(body=OK))
    async with server.client() as api:
        under_way_at = in_ms(300)
        await create_v1(api, "under-way", f"{receiver.url}/hangs", under_way_at)
        await receiver.wait_for(1)
        due_at = in_ms(700)
        await create_v1(api, "t", receiver.url, due_at)
    await server.kill()
    await pass_by(plus_ms(due_at, 500))
    await server.start()
    async with server.client() as api:
        for id in ("t", "under-way"):
            await wait_for_v1(api, id, "completed")
        explanation = await explain(api, "t")
        assert ms_of(explanation, "node_down") >= 500
        assert "while no node was running" in explanation["verdict"]
        repeated = await explain(api, "under-way")
        assert [each["outcome"] for each in repeated["attempts"]] == ["interrupted", "completed"]
        assert ms_of(repeated, "node_down") >= 500
        sentences = " ".join(each["sentence"] for each in repeated["periods"])
        assert "The node of attempt 1 ended before an answer was recorded" in sentences
