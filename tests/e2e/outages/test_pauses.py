"""A process that is paused for a while, as by a debugger or a busy host."""

from pathlib import Path

import pytest

from duetime.domain.instants import Instant, plus_ms
from tests.polling import poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_soon, now, wait_for_status

pytestmark = pytest.mark.e2e

TIMEOUT_MS = 1_000


async def test_an_answer_that_came_during_a_pause_counts(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(200, delay_seconds=0.1)
    settings = {"CALLBACK_TIMEOUT_SECONDS": str(TIMEOUT_MS / 1_000)}
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        timer_id = await create_soon(api, receiver.url)
        [request] = await receiver.wait_for(1)
        server.pause()
        await time_passes(until=plus_ms(request.arrived_at, TIMEOUT_MS + 200))
        server.resume()
        timer = await wait_for_status(api, timer_id, "completed", "failed")
    assert (timer["status"], timer["last_error"]) == ("completed", None)
    assert len(receiver.requests) == 1


async def time_passes(*, until: Instant) -> None:
    async def look() -> Instant:
        return now()

    await poll(look, until=lambda instant: instant >= until)
