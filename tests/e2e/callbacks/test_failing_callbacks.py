"""Timers whose endpoint refuses, hangs up, is slow or cannot be reached."""

from pathlib import Path

import httpx
import pytest

from tests.real_server.callback_receiver import Answer, CallbackReceiver, Close, Hang, Reaction
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_soon, create_timer, in_ms, wait_for_status
from tests.refusing_port import refusing_port

pytestmark = [pytest.mark.e2e, on_every_database]


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


async def test_a_failed_callback_is_not_tried_again(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    failures: dict[str, tuple[Reaction, str]] = {
        "/closes": (Close(), "connection closed before an answer"),
        "/500": (Answer(500), "HTTP 500"),
        "/404": (Answer(404, b"not here"), "HTTP 404: not here"),
        "/302": (
            Answer(302, headers={"Location": "/elsewhere"}),
            "HTTP 302, but redirects are not followed (Location: /elsewhere)",
        ),
        "/304": (Answer(304), "HTTP 304"),
    }
    for target, (reaction, last_error) in failures.items():
        receiver.script(target, reaction)
        timer_id = await create_soon(api, receiver.url + target)
        timer = await wait_for_status(api, timer_id, "completed", "failed")
        assert (timer["status"], timer["last_error"]) == ("failed", last_error)
        assert timer["executed_at"] is not None
        assert [attempt["error"] for attempt in timer["attempts"]] == [last_error]
    # A later timer of the same endpoint would come after any repeat or followed redirect.
    later = await create_soon(api, f"{receiver.url}/later")
    await wait_for_status(api, later, "completed")
    assert [request.target for request in receiver.requests] == [*failures, "/later"]


async def test_a_callback_that_is_cut_off_after_a_while_is_not_repeated(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    # The same connection carries both callbacks, so the second one reuses it.
    receiver.script("/slow", Close(delay_seconds=1.2))
    await wait_for_status(api, await create_soon(api, f"{receiver.url}/quick"), "completed")
    timer_id = await create_soon(api, f"{receiver.url}/slow")
    timer = await wait_for_status(api, timer_id, "completed", "failed")
    last_error = "connection closed before an answer"
    assert (timer["status"], timer["last_error"]) == ("failed", last_error)
    assert [attempt["outcome"] for attempt in timer["attempts"]] == ["failed"]
    assert len(receiver.of("/slow")) == 1


async def test_a_callback_without_an_answer_times_out(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Hang()
    settings = {**database.settings, "CALLBACK_TIMEOUT_SECONDS": "1"}
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        timer_id = await create_soon(api, receiver.url)
        timer = await wait_for_status(api, timer_id, "completed", "failed")
        assert (timer["status"], timer["last_error"]) == ("failed", "timed out after 1 s")
        assert [attempt["error"] for attempt in timer["attempts"]] == ["timed out after 1 s"]
    assert len(receiver.requests) == 1


async def test_any_2xx_status_completes_a_timer(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    for status in (200, 201, 202, 204, 299):
        receiver.reaction = Answer(status, b"" if status == 204 else b'{"ok": false}')
        timer_id = await create_soon(api, receiver.url)
        timer = await wait_for_status(api, timer_id, "completed", "failed")
        assert timer["status"] == "completed", status


async def test_a_refused_connection_fails_the_timer(api: httpx.AsyncClient) -> None:
    with refusing_port() as port:
        timer_id = await create_soon(api, f"http://127.0.0.1:{port}/")
        timer = await wait_for_status(api, timer_id, "completed", "failed")
    assert (timer["status"], timer["last_error"]) == ("failed", "connection refused")


async def test_a_retry_policy_tries_again_until_the_endpoint_answers(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.script("/flaky", Close(), Answer(500), Answer(200))
    policy = {"max_retries": 5, "initial_interval": "50ms", "backoff_multiplier": 2}
    timer_id = await create_soon(
        api, f"{receiver.url}/flaky", callback={"payload": 7}, retry_policy=policy
    )
    timer = await wait_for_status(api, timer_id, "completed", "failed")
    assert (timer["status"], timer["last_error"], timer["attempt"]) == ("completed", None, 3)
    requests = receiver.of("/flaky")
    assert [request.headers["timer-attempt"] for request in requests] == ["1", "2", "3"]
    assert {request.headers["webhook-id"] for request in requests} == {timer["delivery_id"]}
    assert {request.body for request in requests} == {b"7"}
    assert [(a["number"], a["outcome"], a["error"]) for a in timer["attempts"]] == [
        (1, "failed", "connection closed before an answer"),
        (2, "failed", "HTTP 500"),
        (3, "completed", None),
    ]
    first, second, third = (request.arrived_at for request in requests)
    assert second - first >= 50_000
    assert third - second >= 100_000


async def test_a_timer_fails_when_its_retry_policy_ends(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(503)
    policy = {"max_attempts": 3, "initial_interval": "20ms", "backoff_multiplier": 1}
    timer_id = await create_soon(api, receiver.url, retry_policy=policy)
    timer = await wait_for_status(api, timer_id, "completed", "failed")
    assert (timer["status"], timer["last_error"], timer["attempt"]) == ("failed", "HTTP 503", 3)
    assert len(receiver.requests) == 3


async def test_a_timer_waiting_for_its_retry_can_be_canceled(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.script("/fails", Answer(500))
    policy = {"max_retries": 1, "initial_interval": "2s"}
    timer_id = await create_soon(api, f"{receiver.url}/fails", retry_policy=policy)
    await receiver.wait_for(1)
    waiting = await wait_for_status(api, timer_id, "pending")
    assert waiting["last_error"] == "HTTP 500"
    later = await create_timer(api, f"{receiver.url}/later", in_ms(2_500))
    assert (await api.delete(f"/timers/{timer_id}")).status_code == 200
    await wait_for_status(api, later, "completed")
    assert [request.target for request in receiver.requests] == ["/fails", "/later"]


async def test_retry_after_delays_the_retry(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.script("/busy", Answer(429, headers={"Retry-After": "1"}), Answer(200))
    policy = {"max_retries": 1, "initial_interval": "20ms"}
    timer_id = await create_soon(api, f"{receiver.url}/busy", retry_policy=policy)
    timer = await wait_for_status(api, timer_id, "completed", "failed")
    assert timer["status"] == "completed"
    first, second = receiver.of("/busy")
    assert second.arrived_at - first.arrived_at >= 1_000_000


async def test_a_closed_keep_alive_connection_costs_an_attempt_but_is_no_failure(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.script("/second", Close(), Answer(200))
    first = await create_soon(api, f"{receiver.url}/first")
    await wait_for_status(api, first, "completed")
    second = await create_soon(api, f"{receiver.url}/second")
    timer = await wait_for_status(api, second, "completed", "failed")
    assert (timer["status"], timer["attempt"]) == ("completed", 2)
    assert timer["attempts"][0]["error"] == "connection closed before an answer"
    outcomes = [attempt["outcome"] for attempt in timer["attempts"]]
    assert outcomes == ["interrupted", "completed"]
    sent = receiver.of("/second")
    assert [request.headers["timer-attempt"] for request in sent] == ["1", "2"]
    assert len({request.headers["webhook-id"] for request in sent}) == 1


async def test_an_endpoint_that_closes_every_connection_is_not_called_for_ever(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    receiver.script("/never", Close(), Close(), Close(), Close())
    first = await create_soon(api, f"{receiver.url}/first")
    await wait_for_status(api, first, "completed")
    timer_id = await create_soon(api, f"{receiver.url}/never")
    timer = await wait_for_status(api, timer_id, "completed", "failed")
    assert (timer["status"], timer["attempt"]) == ("failed", 2)
    assert timer["last_error"] == "connection closed before an answer"
