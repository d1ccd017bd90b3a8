"""`execute_in`: a duration that the server adds to its own clock, compared as it was given."""

import asyncio
from typing import Any

import msgspec
import pytest

from duetime.api.http.answers import Answer
from duetime.api.http.caller import Caller
from duetime.domain.security.access import EVERYTHING
from tests.unit.api.asgi_client import ApiBench, create_body

CALLBACK = {"type": "http", "url": "https://example.com/due"}


def body_in(duration: object, **changes: object) -> dict[str, object]:
    return {"execute_in": duration, "callback": CALLBACK, **changes}


async def test_the_server_adds_the_duration_to_its_own_clock(api: ApiBench) -> None:
    api.clock.advance(7)
    reply = await api.request("POST", "/timers", body_in("30s"))
    assert (reply.status, reply.data["execute_at"]) == (201, "2030-01-01T00:00:37Z")


async def test_the_short_way_takes_it_too(api: ApiBench) -> None:
    api.clock.advance(7)
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    content = msgspec.json.encode(body_in("1h"))
    api.app.fast_create.handle(Caller(EVERYTHING), content, answered.set_result)
    answer = await answered
    assert answer.status == 201
    assert msgspec.json.decode(answer.content)["data"]["execute_at"] == "2030-01-01T01:00:07Z"


async def test_a_repeat_with_the_key_is_the_same_timer(api: ApiBench) -> None:
    first = await api.request("POST", "/timers", body_in("30s", idempotency_key="order-17"))
    assert first.status == 201
    for duration in ("30s", "30000ms", "0.5m"):
        api.clock.advance(20)
        again = await api.request("POST", "/timers", body_in(duration, idempotency_key="order-17"))
        assert (again.status, again.data) == (200, first.data)
    other = await api.request("POST", "/timers", body_in("31s", idempotency_key="order-17"))
    assert other.error == (409, 2, "idempotency_key was used for a different timer")


async def test_an_instant_and_then_a_duration_is_another_timer(api: ApiBench) -> None:
    await api.create(idempotency_key="order-17")
    # The clock has not moved, so the instant would even be the same.
    reply = await api.request("POST", "/timers", body_in("10s", idempotency_key="order-17"))
    assert reply.error[0] == 409
    first = await api.request("POST", "/timers", body_in("10s", idempotency_key="order-18"))
    body = create_body(execute_at=first.data["execute_at"], idempotency_key="order-18")
    assert (await api.request("POST", "/timers", body)).error[0] == 409


async def test_without_a_key_every_create_is_a_timer(api: ApiBench) -> None:
    ids = {(await api.request("POST", "/timers", body_in("30s"))).data["id"] for _ in range(2)}
    assert len(ids) == 2


async def test_a_change_counts_from_now(api: ApiBench) -> None:
    created = await api.request("POST", "/timers", body_in("30s"))
    api.clock.advance(20)
    path = f"/timers/{created.data['id']}"
    reply = await api.request("PUT", path, {"execute_in": "1m"})
    assert (reply.status, reply.data["execute_at"]) == (200, "2030-01-01T00:01:20Z")
    assert (await api.request("GET", path)).data["execute_at"] == "2030-01-01T00:01:20Z"


NO_DURATION = 'execute_in must be a duration such as "500ms", "30s", "1h30m" or "7d"'
BOTH = "execute_in and execute_at cannot both be given: give one of them"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"execute_in": "4999ms"}, "execute_in must be at least 5s (MIN_DELAY_SECONDS)"),
        ({"execute_in": "0s"}, "execute_in must be at least 5s (MIN_DELAY_SECONDS)"),
        ({"execute_in": "36526d"}, "execute_in is too long: at most 100 years"),
        ({"execute_in": "soon"}, NO_DURATION),
        ({"execute_in": 30}, 'execute_in must be a string such as "30s"'),
        ({"execute_in": "30s", "execute_at": "2030-01-01T00:00:30Z"}, BOTH),
    ],
)
async def test_what_is_no_duration_is_refused(
    api: ApiBench, members: dict[str, Any], message: str
) -> None:
    body = {"callback": CALLBACK, **members}
    assert (await api.request("POST", "/timers", body)).error == (400, 2, message)
    created = await api.create()
    reply = await api.request("PUT", f"/timers/{created.data['id']}", members)
    assert reply.error == (400, 2, message)


async def test_the_shortest_duration(api: ApiBench) -> None:
    assert (await api.request("POST", "/timers", body_in("5s"))).status == 201
