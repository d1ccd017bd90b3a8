"""The server is killed while a bulk operation moves timers; each timer moves exactly once."""

from collections import Counter
from pathlib import Path

import httpx
import pytest

from duetime.domain.instants import format_instant, plus_ms
from tests.crash.killed_operations import OPERATIONS, end_of, kill_during
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.crash, pytest.mark.slow]

TIMERS_MOVED = 3_000
A_DAY_MS = 86_400_000


async def every_instant(api: httpx.AsyncClient) -> Counter[str]:
    instants: Counter[str] = Counter()
    query: dict[str, str | int] = {"limit": 1_000}
    while True:
        page = (await api.get(TIMERS, params=query)).json()
        instants.update(timer["executeAt"] for timer in page["timers"])
        if page["nextCursor"] is None:
            return instants
        query["cursor"] = page["nextCursor"]


@on_every_database
async def test_a_bulk_operation_goes_on_after_a_crash(tmp_path: Path, database: Database) -> None:
    first_at = in_ms(A_DAY_MS)
    instants = [plus_ms(first_at, number) for number in range(TIMERS_MOVED)]
    server = ServerProcess(tmp_path, **database.settings)
    await server.start()
    async with server.client() as api:
        for start in range(0, TIMERS_MOVED, 1_000):
            batch = [
                v1_body(f"t{start + number}", "http://127.0.0.1:9/", instant)
                for number, instant in enumerate(instants[start : start + 1_000])
            ]
            answer = await api.post(f"{TIMERS}/batch", json={"timers": batch})
            assert {each["status"] for each in answer.json()["results"]} == {"created"}
        # Moved by two seconds, timers land among those that the scan has yet to meet.
        body = {"action": "reschedule", "all": True, "moveBy": "2s"}
        started = await api.post(OPERATIONS, json=body)
    assert started.status_code == 202, started.text
    id = started.json()["id"]
    await kill_during(server, id, every=1_000)
    async with server.client() as api:
        ended = await end_of(api, id)
        moved = await every_instant(api)
    assert ended["status"] == "completed"
    assert moved == Counter(format_instant(plus_ms(instant, 2_000)) for instant in instants)
    await server.stop()
