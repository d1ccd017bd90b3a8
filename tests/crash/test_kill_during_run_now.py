"""The server is killed while a bulk operation runs timers now; each timer is run, and only once."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from duetime.domain.instants import format_instant
from tests.crash.killed_operations import OPERATIONS, end_of, kill_during
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.crash, pytest.mark.slow]

TIMERS_RUN = 2_000
A_DAY_MS = 86_400_000


@on_every_database
async def test_timers_are_run_once_whatever_is_killed(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    """The receiver reschedules every timer, so that the operation may meet it again as a new
    firing. An attempt that a crash repeats has the same `webhook-id` and the next number; a timer
    that is run again would begin at 1 again."""
    again = {"ok": False, "nextExecuteAt": format_instant(in_ms(2 * A_DAY_MS))}
    receiver.reaction = Answer(body=msgspec.json.encode(again))
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    async with server.client() as api:
        due_at = in_ms(A_DAY_MS)
        for start in range(0, TIMERS_RUN, 1_000):
            numbers = range(start, start + 1_000)
            batch = [v1_body(f"t{each}", f"{receiver.url}/t{each}", due_at) for each in numbers]
            answer = await api.post(f"{TIMERS}/batch", json={"timers": batch})
            assert {each["status"] for each in answer.json()["results"]} == {"created"}
        started = await api.post(OPERATIONS, json={"action": "run-now", "all": True})
    assert started.status_code == 202, started.text
    assert started.json()["matched"] == TIMERS_RUN
    id = started.json()["id"]
    await kill_during(server, id, every=600)
    async with server.client() as api:
        ended = await end_of(api, id)
        await receiver.wait_for_targets({f"/t{number}" for number in range(TIMERS_RUN)})

        async def executing() -> int:
            counts = (await api.get("/api/v1/namespaces/default")).json()["counts"]
            return int(counts["executing"])

        await poll(executing, lambda count: count == 0)
    await server.stop()
    assert ended["status"] == "completed"
    attempts = Counter(
        (request.target, request.headers["timer-attempt"]) for request in receiver.requests
    )
    assert len({target for target, _ in attempts}) == TIMERS_RUN
    assert set(attempts.values()) == {1}
