"""Timers with every member set, and full lines of them."""

from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback, HttpCallback, NatsCallback
from duetime.domain.instants import Instant
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus, Wait
from duetime.testing.timers import make_timer
from duetime.testing.virtual_clock import START_AT
from tests.unit.api.asgi_client import API_KEY, call
from tests.unit.api.v1.v1_bench import BASE, V1Bench

SECOND = 1_000_000


def at(seconds: float) -> Instant:
    return Instant(START_AT + round(seconds * SECOND))


TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def rich(id: str = "rich", status: TimerStatus = TimerStatus.FAILED, **changes: object) -> Timer:
    """A timer with no member left at its default."""
    timer = make_timer(
        id,
        execute_at=at(-50.000_001),
        created_at=at(-90.25),
        callback=HttpCallback(
            url="https://example.com/ä?b=c",
            headers={"Authorization": "Bearer s3cret", "X-A": ""},
            payload=Raw(
                b'{"big": 1180591620717411303424,\r\n "float": 1.10, "text": "a\\nb\\u00e4"}'
            ),
            timeout_ms=1_500,
            traceparent=TRACEPARENT,
        ),
        retry_policy=RetryPolicy(max_retries=7, initial_interval_ms=1, backoff_multiplier=1.3),
        metadata=Raw(b' "x" '.strip()),
        correlation_id="correlation",
        command_order=2**62,
        fingerprint=bytes(range(16)),
    )
    failed = Attempt(
        number=1,
        due_at=at(-50),
        claimed_at=at(-50.1),
        sent_at=at(-49),
        answered_at=at(-48.999),
        recorded_outcome="failed",
        error='HTTP 500: "\x1b[31m"',
        answer="line 1\nline 2\0",
        waits=(Wait("claim", 20_000), Wait("word of a later release", 1)),
    )
    old = Attempt(number=2, due_at=at(-40), claimed_at=at(-40), error="gone")
    state = replace(
        timer,
        status=status,
        due_at=at(-30),
        updated_at=at(-20),
        executed_at=at(-20) if status.is_finished else None,
        attempt=2,
        failures=1,
        claim_number=9,
        attempts=(failed, old),
        last_error="gone",
    )
    return replace(state, **changes)


OTHER_CALLBACKS: list[Callback] = [
    HttpCallback(url="http://example.com/"),
    HttpCallback(url="http://example.com/", headers={}, payload=Raw(b"null")),
    NatsCallback(topic="a.b"),
    NatsCallback(
        topic="a.b",
        key="c",
        headers={"X": "ä"},
        payload=Raw(b"[1,\n2]"),
        timeout_ms=1,
        ack=True,
        traceparent=TRACEPARENT,
    ),
    BusCallback(),
    BusCallback(payload=Raw(b'{"n":  1}'), timeout_ms=30_000, traceparent=TRACEPARENT),
]


async def restore(bench: V1Bench, *lines: object, query: str = "", key: str = API_KEY) -> Any:
    content = b"".join(json.encode(line) + b"\n" for line in lines)
    headers = [(b"x-api-key", key.encode())]
    reply = await call(bench.app, "POST", f"{BASE}/import{query}", [content], headers)
    assert reply.status == 200, reply.content
    return reply.json


async def exported(bench: V1Bench, namespace: str = "default") -> list[Raw]:
    """The timers with their secrets, as the answer spells them."""
    query = f"namespace={namespace}&limit=1000&secrets=true"
    reply = await bench.request("GET", f"{BASE}/export?{query}")
    assert reply.status == 200, reply.content
    assert b"\n" not in reply.content
    return json.decode(json.decode(reply.content, type=dict[str, Raw])["timers"], type=list[Raw])


def line(timer: object) -> dict[str, object]:
    return {"full": 1, "timer": timer}


def namespace_line(**members: object) -> dict[str, object]:
    return {"full": 1, "namespace": members}


async def one(bench: V1Bench, **changes: object) -> dict[str, Any]:
    """A full timer as exported, with other members."""
    await bench.store.restore([rich(retry_policy=None)])
    (full,) = await exported(bench)
    return {**json.decode(full), "id": "another", **changes}
