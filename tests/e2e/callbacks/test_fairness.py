"""Endpoints that take requests and never answer do not delay the timers of others."""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest

from duetime.descriptors import raise_descriptor_limit
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, plus_ms
from tests.real_server.callback_receiver import Answer, CallbackReceiver, Hang
from tests.real_server.databases import on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LONGEST_LATENESS_MS = 250.0
LONGEST_STAMPEDE_MS = 2_000.0


@pytest.fixture(autouse=True)
def many_connections() -> None:
    """The receivers keep thousands of unanswered connections in this process."""
    raise_descriptor_limit()


@pytest.fixture
async def hanging() -> AsyncIterator[list[CallbackReceiver]]:
    """Twenty endpoints that never answer."""
    async with AsyncExitStack() as stack:
        receivers = []
        for _ in range(20):
            receiver = await stack.enter_async_context(CallbackReceiver())
            receiver.reaction = Hang()
            receivers.append(receiver)
        yield receivers


@pytest.mark.exclusive
@pytest.mark.parametrize(
    ("database", "longest_ms"),
    # PostgreSQL takes several times longer to claim the 1,500 timers of that instant.
    [("sqlite", LONGEST_LATENESS_MS), ("postgresql", 4 * LONGEST_LATENESS_MS)],
    indirect=["database"],
    ids=["sqlite", "postgresql"],
)
async def test_one_endpoint_that_hangs_delays_no_other(
    server: ServerProcess,
    receiver: CallbackReceiver,
    hanging: list[CallbackReceiver],
    longest_ms: float,
) -> None:
    due_at = in_ms(2_000)
    await import_timers(server, [hanging[0].url] * 1_500, due_at)
    lateness_ms = await lateness_of_others(server, receiver, due_at, spread_ms=20)
    report("one", lateness_ms)
    assert p99_of(lateness_ms) < longest_ms
    assert p99_of(lateness_ms[75:]) < LONGEST_LATENESS_MS
    assert len(hanging[0].requests) >= 500, "the endpoint that hangs was not even tried"


@pytest.mark.exclusive
async def test_many_endpoints_that_hang_delay_no_other(
    server: ServerProcess, receiver: CallbackReceiver, hanging: list[CallbackReceiver]
) -> None:
    """At the instant itself all timers wait while the machine opens 4,000 connections, which takes
    as long if the endpoints answer. Once they hang, no timer is late."""
    due_at = in_ms(3_000)
    await import_timers(server, [dead.url for dead in hanging] * 200, due_at)
    lateness_ms = await lateness_of_others(server, receiver, due_at, spread_ms=60)
    at_the_instant, while_they_hang = lateness_ms[:50], lateness_ms[75:]
    report("many, at the instant", at_the_instant)
    report("many, while they hang", while_they_hang)
    assert p99_of(at_the_instant) < LONGEST_STAMPEDE_MS
    assert p99_of(while_they_hang) < LONGEST_LATENESS_MS
    assert all(dead.requests for dead in hanging), "some endpoints were not even tried"


@pytest.mark.exclusive
@on_every_database
async def test_an_endpoint_slow_to_answer_gets_all_its_timers(
    server: ServerProcess, receiver: CallbackReceiver
) -> None:
    """More timers than may wait."""
    receiver.reaction = Answer(body=b'{"ok": true}', delay_seconds=0.1)
    due_at = in_ms(2_500)
    await import_timers(server, [f"{receiver.url}/{number}" for number in range(3_000)], due_at)
    await receiver.wait_for_total(3_000)
    lateness_ms = [
        (request.arrived_at - due_at) / MICROSECONDS_PER_MS for request in receiver.requests
    ]
    report("slow", lateness_ms)
    assert len({request.target for request in receiver.requests}) == 3_000
    assert min(lateness_ms) >= 0
    assert max(lateness_ms) < 3_000


async def lateness_of_others(
    server: ServerProcess, receiver: CallbackReceiver, due_at: Instant, *, spread_ms: int
) -> list[float]:
    """The lateness of fifty timers due at the instant, and of fifty after it, in their order."""
    due_by_target = {
        f"/{number}": plus_ms(due_at, spread_ms * max(0, number - 49)) for number in range(100)
    }
    async with server.client() as api:
        for target, at in due_by_target.items():
            await create_timer(api, receiver.url + target, at)
    assert in_ms(0) < due_at, "creating took so long that the timers came due meanwhile"
    requests = await receiver.wait_for(len(due_by_target))
    arrived_at = {request.target: request.arrived_at for request in requests}
    assert len(requests) == len(due_by_target) == len(arrived_at)
    lateness_ms = [
        (arrived_at[target] - at) / MICROSECONDS_PER_MS for target, at in due_by_target.items()
    ]
    assert min(lateness_ms) >= 0
    return lateness_ms


def p99_of(lateness_ms: list[float]) -> float:
    return sorted(lateness_ms)[int(0.99 * (len(lateness_ms) - 1))]


def report(name: str, lateness_ms: list[float]) -> None:
    p50 = sorted(lateness_ms)[len(lateness_ms) // 2]
    sys.stdout.write(f"{name}: lateness p50 {p50:.1f} ms, p99 {p99_of(lateness_ms):.1f} ms\n")


async def import_timers(server: ServerProcess, urls: Sequence[str], due_at: Instant) -> None:
    """Create one timer for each URL, all due at that instant, in one request."""
    bodies = (v1_body(str(number), url, due_at) for number, url in enumerate(urls))
    lines = "".join(f"{json.dumps(body)}\n" for body in bodies)
    async with server.client() as api:
        answer = await api.post(f"{TIMERS}/import", content=lines)
    assert answer.json()["created"] == len(urls), answer.text
