"""Callbacks of an idle server are never early and hardly late."""

import asyncio
import sys

import pytest

from duetime.domain.instants import MICROSECONDS_PER_MS, plus_ms
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.databases import on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import connections_to, in_ms, timer_body

pytestmark = [pytest.mark.e2e, pytest.mark.exclusive, on_every_database]

TIMERS = 400
LATENESS_P99_MS = 100.0
"""Longest lateness of 99 % of the callbacks. Duetime promises 20 ms on an idle machine."""


async def test_callbacks_are_never_early_and_hardly_late(
    server: ServerProcess, receiver: CallbackReceiver
) -> None:
    start_at = in_ms(1_500)
    due_at = {f"/{number}": plus_ms(start_at, 3 * number) for number in range(TIMERS)}
    targets = list(due_at)
    async with connections_to(server, 4) as connections, asyncio.TaskGroup() as group:

        async def create(first: int) -> None:
            for target in targets[first::4]:
                body = timer_body(receiver.url + target, due_at[target])
                answer = await connections[first].request("POST", "/timers", body)
                assert answer.status == 201

        for first in range(4):
            group.create_task(create(first))
    requests = await receiver.wait_for(TIMERS)
    lateness_ms = sorted(
        (request.arrived_at - due_at[request.target]) / MICROSECONDS_PER_MS for request in requests
    )
    assert len({request.target for request in requests}) == len(requests) == TIMERS
    p50, p99 = lateness_ms[TIMERS // 2], lateness_ms[TIMERS * 99 // 100]
    sys.stdout.write(f"lateness p50 {p50:.2f} ms, p99 {p99:.2f} ms\n")
    assert lateness_ms[0] >= 0
    assert p99 < LATENESS_P99_MS
