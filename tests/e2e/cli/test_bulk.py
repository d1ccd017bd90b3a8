"""Bulk commands and the deletion of a namespace, against a real server."""

import pytest

from duetime.domain.instants import format_instant, plus_ms
from tests.polling import poll
from tests.real_server.command import Cli
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, get_v1, v1_body

pytestmark = pytest.mark.e2e

NAMESPACE = "bulk-commands"


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


async def test_timers_are_moved_canceled_and_deleted_with_their_namespace(
    cli: Cli, server: ServerProcess
) -> None:
    due_at = in_ms(3_600_000)
    async with server.client() as api:
        await api.put(f"/api/v1/namespaces/{NAMESPACE}", json={})
        timers = [
            v1_body(f"{kind}-{number}", "http://127.0.0.1:9/", due_at, namespace=NAMESPACE)
            for kind in ("a", "b")
            for number in range(300)
        ]
        more = {"namespace": NAMESPACE, "metadata": {"kind": "c"}, "retryPolicy": {"maxRetries": 9}}
        timers.append(v1_body("c", "http://127.0.0.1:9/", due_at, **more))
        answer = await api.post(f"{TIMERS}/batch", json={"timers": timers})
        assert answer.status_code == 200, answer.text

        selected = ("--namespace", NAMESPACE, "--id-prefix", "a-", "--yes")
        moved = await cli("reschedule", "--by", "1h", *selected)
        assert (moved.status, moved.output) == (0, "rescheduled: 300 timers\n")
        timer = await get_v1(api, "a-7", NAMESPACE)
        assert timer["executeAt"] == format_instant(plus_ms(due_at, 3_600_000))

        run = await cli("run-now", "--namespace", NAMESPACE, "--metadata", "kind=c", "--yes")
        assert (run.status, run.output) == (0, "made due: 1 timer\n")
        await poll(
            lambda: get_v1(api, "c", NAMESPACE), lambda timer: timer["lastError"] is not None
        )
        listed = await api.get("/api/v1/operations?limit=1")
        shown = await cli("operations", "show", listed.json()["operations"][0]["id"])
        assert "action: run-now" in shown.output
        assert "metadata: kind=c" in shown.output
        assert "started by: API_KEY" in shown.output

        canceled = await cli("cancel", *selected)
        assert (canceled.status, canceled.output) == (0, "canceled: 300 timers\n")
        assert (await get_v1(api, "a-7", NAMESPACE))["status"] == "canceled"
        assert (await get_v1(api, "b-7", NAMESPACE))["status"] == "pending"

        refused = await cli("namespaces", "delete", NAMESPACE, "--yes")
        assert refused.status == 1
        assert "timers that are pending or executing (301)" in refused.errors
        started = await cli("namespaces", "delete", NAMESPACE, "--force", "--yes")
        assert started.status == 0
        listed = await poll(
            lambda: api.get("/api/v1/operations?limit=1"),
            lambda answer: answer.json()["operations"][0]["status"] != "running",
        )
        (ended,) = listed.json()["operations"]
        assert (ended["action"], ended["status"], ended["changed"]) == (
            "delete-namespace",
            "completed",
            601,
        )
        gone = await api.get(f"/api/v1/namespaces/{NAMESPACE}")
        assert gone.json()["error"] == "NAMESPACE_NOT_FOUND"
