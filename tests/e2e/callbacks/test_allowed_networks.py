"""A server calls only where its settings allow."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from duetime.domain.instants import format_instant
from tests.integration.delivery.egress.proxy_server import Proxy
from tests.integration.delivery.http_client.servers import serve
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.connect_record import ConnectRecord
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import (
    create_soon,
    create_timer,
    in_ms,
    wait_for_status,
    wait_until_dry,
)
from tests.real_server.v1_requests import v1_body
from tests.refused_hosts import REFUSED_HOSTS

pytestmark = pytest.mark.e2e

V1 = "/api/v1/timers"
PUBLIC_ONLY = {"CALLBACK_NETWORKS": ""}
REASON = (
    "leads to 127.0.0.1, a loopback address, which is allowed only if CALLBACK_NETWORKS includes "
    "loopback or 127.0.0.1/32"
)


async def test_every_door_refuses_what_can_never_be_allowed(tmp_path: Path) -> None:
    url, allowed = "http://127.0.0.1:9999/", "https://orders.example/"
    async with ServerProcess(tmp_path, **PUBLIC_ONLY) as server, server.client() as api:
        started = await server.wait_for_log("callbacks.allowed")
        assert started["networks"] == "public"
        body: dict[str, Any] = {"execute_in": "1h", "callback": {"type": "http", "url": url}}
        answer = await api.post("/timers", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, 2)
        assert answer.json()["message"] == f"callback.url {REASON}"
        later = v1_body("a", url, in_ms(3_600_000))
        for path in (V1, f"{V1}/create"):
            answer = await api.post(path, json=later)
            assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_INPUT")
            assert answer.json()["message"] == f"callbackUrl {REASON}"
        assert (await api.post(V1, json={**later, "callbackUrl": allowed})).is_success
        answer = await api.put(f"{V1}/default/a", json={"callbackUrl": url})
        assert (answer.status_code, answer.json()["message"]) == (400, f"callbackUrl {REASON}")
        timer_id = await create_timer(api, allowed, in_ms(3_600_000))
        answer = await api.put(f"/timers/{timer_id}", json={"callback": body["callback"]})
        assert (answer.status_code, answer.json()["message"]) == (400, f"callback.url {REASON}")
        # A callback to the service itself would let a client act with the rights of the network.
        own = server.url.replace("127.0.0.1", "2130706433")
        body["callback"]["url"] = own
        assert (await api.post("/timers", json=body)).status_code == 400


async def test_no_refused_address_is_connected_to(
    tmp_path: Path, connect_record: ConnectRecord
) -> None:
    """The timers were created while a proxy decided, so that nothing was judged."""
    proxied = ServerProcess(tmp_path, CALLBACK_PROXY="http://127.0.0.1:9")
    async with proxied, proxied.client() as api:
        timers = [
            await create_timer(api, f"http://{host}/", in_ms(3_600_000)) for host in REFUSED_HOSTS
        ]
        assert await proxied.stop() == 0
    async with (
        ServerProcess(tmp_path, **PUBLIC_ONLY, **connect_record.environ) as server,
        server.client() as api,
    ):
        for timer_id in timers:
            soon = {"execute_at": format_instant(in_ms(500))}
            assert (await api.put(f"/timers/{timer_id}", json=soon)).status_code == 200
        counts = await wait_until_dry(api)
        assert counts["failed"] == len(timers)
        for timer_id in timers:
            timer = await wait_for_status(api, timer_id, "failed")
            assert "CALLBACK_NETWORKS" in timer["last_error"]
            assert len(timer["attempts"]) == 1
        engine = (await api.get("/healthz")).json()["data"]["engine"]
        assert engine["callbacks_refused"] == len(timers)
        assert await server.stop() == 0
    assert connect_record.addresses == set()


async def test_the_record_shows_connections(
    tmp_path: Path, connect_record: ConnectRecord, receiver: CallbackReceiver
) -> None:
    """Otherwise its silence would prove nothing."""
    async with ServerProcess(tmp_path, **connect_record.environ) as server, server.client() as api:
        await wait_for_status(api, await create_soon(api, receiver.url), "completed")
    assert connect_record.addresses == {"127.0.0.1"}


async def test_a_namespace_narrows_the_list_without_a_restart(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(200, b'{"ok": true}')
    async with ServerProcess(tmp_path) as server, server.client() as api:

        async def outcome_of(id: str) -> dict[str, Any]:
            body = v1_body(id, receiver.url, in_ms(100), namespace="narrow")
            assert (await api.post(V1, json=body)).is_success

            async def look() -> dict[str, Any]:
                timer: dict[str, Any] = (await api.get(f"{V1}/narrow/{id}")).json()
                return timer

            return await poll(look, lambda timer: timer["status"] in ("failed", "completed"))

        await put_networks(api, None)
        assert (await outcome_of("before"))["status"] == "completed"
        await put_networks(api, "10.0.0.0/8")
        refused = await outcome_of("after")
        assert refused["status"] == "failed"
        assert "the list of its namespace (callbackNetworks) includes" in refused["lastError"]
        await put_networks(api, "127.0.0.0/8")
        assert (await outcome_of("again"))["status"] == "completed"


async def put_networks(api: httpx.AsyncClient, networks: str | None) -> None:
    answer = await api.put("/api/v1/namespaces/narrow", json={"callbackNetworks": networks})
    assert answer.json()["callbackNetworks"] == networks


async def test_callbacks_go_through_the_proxy(tmp_path: Path, receiver: CallbackReceiver) -> None:
    proxy = Proxy(credentials=b"dXNlcjpzZWNyZXQ=")
    async with serve(proxy.behaviour) as front:
        settings = {"CALLBACK_PROXY": f"http://user:secret@127.0.0.1:{front.port}"}
        async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
            allowed = await server.wait_for_log("callbacks.allowed")
            assert allowed["proxy"] == f"http://127.0.0.1:{front.port}"
            await wait_for_status(api, await create_soon(api, receiver.url), "completed")
        assert len(proxy.asked) == 1
        assert "secret" not in "\n".join(server.output)


@pytest.mark.parametrize("guard", ["off", "on"])
async def test_lists_that_a_proxy_switches_off_are_named_at_the_start(
    tmp_path: Path, guard: str
) -> None:
    settings = {"CALLBACK_PROXY": "http://127.0.0.1:9", "CALLBACK_NETWORKS": "api.example"}
    async with ServerProcess(tmp_path, **settings, CALLBACK_PROXY_GUARD=guard) as server:
        allowed = await server.wait_for_log("callbacks.allowed")
        warnings = [each for each in server.logs if each["event"] == "callbacks.unguarded"]
    assert allowed["networks"] == (None if guard == "off" else "api.example")
    assert [each["networks_ignored"] for each in warnings] == (
        ["api.example"] if guard == "off" else []
    )
