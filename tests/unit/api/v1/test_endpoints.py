"""Endpoints: their list, and how they are paused and resumed."""

import pytest
from msgspec.structs import replace

from duetime.domain.limits import MAX_PAUSED_ENDPOINTS
from duetime.domain.security.access import EVERYTHING
from duetime.ports.endpoints import (
    EndpointFigures,
    EndpointPause,
    EndpointState,
    EndpointStatus,
)
from duetime.ports.security import AuditQuery
from tests.unit.api.asgi_client import Reply, call
from tests.unit.api.v1.v1_bench import V1Bench, error_of

STATUS = EndpointStatus(
    endpoint="https://example.com:443",
    state=EndpointState.HALF_OPEN,
    in_flight=4,
    waiting=7,
    consecutive_failures=20,
    last_error="timed out after 30 s",
    opened_at=None,
)


async def pause(bench: V1Bench, endpoint: str, **more: object) -> Reply:
    return await bench.request("POST", "/api/v1/endpoints/pause", {"endpoint": endpoint, **more})


async def resume(bench: V1Bench, endpoint: str) -> Reply:
    return await bench.request("POST", "/api/v1/endpoints/resume", {"endpoint": endpoint})


async def test_endpoints_are_shown_with_their_state(bench: V1Bench) -> None:
    bench.reporter.statuses.append(replace(STATUS, opened_at=bench.clock.now()))
    assert (await bench.request("GET", "/api/v1/endpoints")).json == {
        "node": "node-1",
        "endpoints": [
            {
                "endpoint": "https://example.com:443",
                "state": "halfOpen",
                "inFlight": 4,
                "waiting": 7,
                "consecutiveFailures": 20,
                "lastError": "timed out after 30 s",
                "openedAt": "2030-01-01T00:00:00Z",
                "paused": None,
                "last15Minutes": None,
            }
        ],
    }


async def test_troubled_endpoints_come_first_and_those_called_lately_are_listed(
    bench: V1Bench,
) -> None:
    pause = EndpointPause(
        endpoint="http://z:80", paused_at=bench.clock.now(), paused_by="ops", reason="why"
    )
    closed = replace(STATUS, state=EndpointState.CLOSED, consecutive_failures=0)
    bench.reporter.statuses += [
        replace(closed, endpoint="http://a:80"),
        replace(closed, endpoint="http://m:80", consecutive_failures=1),
        STATUS,
        replace(closed, endpoint="http://z:80", pause=pause),
    ]
    bench.reporter.figures["http://b:80"] = EndpointFigures(
        attempts=8, failures=2, p50_ms=1.5, p99_ms=30.25
    )
    shown = (await bench.request("GET", "/api/v1/endpoints")).json["endpoints"]
    assert [each["endpoint"] for each in shown] == [
        "http://z:80",
        "https://example.com:443",
        "http://m:80",
        "http://a:80",
        "http://b:80",
    ]
    assert shown[0]["paused"] == {
        "pausedAt": "2030-01-01T00:00:00Z",
        "pausedBy": "ops",
        "reason": "why",
    }
    assert shown[4]["last15Minutes"] == {
        "attempts": 8,
        "failures": 2,
        "p50Ms": 1.5,
        "p99Ms": 30.25,
    }


async def test_endpoints_need_the_key(bench: V1Bench) -> None:
    assert error_of(await call(bench.app, "GET", "/api/v1/endpoints"))[0] == 401


async def test_a_pause_is_kept_and_known_to_the_engine_until_it_is_resumed(
    bench: V1Bench,
) -> None:
    reply = await pause(bench, "https://Example.com", reason=" a deploy ")
    assert reply.status == 200
    assert reply.json == {
        "endpoint": "https://example.com:443",
        "pausedAt": "2030-01-01T00:00:00Z",
        "pausedBy": EVERYTHING.name,
        "reason": "a deploy",
    }
    assert list(bench.reporter.pauses) == ["https://example.com:443"]
    assert len(await bench.store.endpoint_pauses.pauses()) == 1
    assert (await resume(bench, "example.com")).status == 204
    assert not bench.reporter.pauses
    assert not await bench.store.endpoint_pauses.pauses()


async def test_a_second_pause_leaves_the_first_as_it_is(bench: V1Bench) -> None:
    first = await pause(bench, "https://example.com", reason="first")
    second = await pause(bench, "https://example.com:443/", reason="second")
    assert (second.status, second.json) == (200, first.json)


async def test_an_endpoint_that_is_not_paused_cannot_be_resumed(bench: V1Bench) -> None:
    assert error_of(await resume(bench, "https://example.com"))[:2] == (404, "ENDPOINT_NOT_PAUSED")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("http://example.com", "http://example.com:80"),
        ("https://EXAMPLE.com:8443/", "https://example.com:8443"),
        ("example.com", "https://example.com:443"),
        ("example.com:8080", "https://example.com:8080"),
        ("http://[::1]:9000", "http://[::1]:9000"),
        ("https://bücher.example", "https://xn--bcher-kva.example:443"),
        ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
        ("nats://127.0.0.1:4222 orders.due", "nats://127.0.0.1:4222 orders.due"),
        ("bus timer.events", "bus timer.events"),
    ],
)
async def test_endpoints_are_named_as_the_engine_names_them(
    bench: V1Bench, given: str, name: str
) -> None:
    assert (await pause(bench, given)).json["endpoint"] == name


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"endpoint": ""}, "endpoint"),
        ({"endpoint": "https://example.com/path"}, "endpoint"),
        ({"endpoint": "https://user:secret@example.com"}, "endpoint"),
        ({"endpoint": "https://example.com?x=1"}, "endpoint"),
        ({"endpoint": "https://example.com:99999"}, "endpoint"),
        ({"endpoint": "https://"}, "endpoint"),
        ({"endpoint": "a" * 2_000}, "endpoint"),
        ({"endpoint": "a\nb"}, "endpoint"),
        ({"endpoint": 5}, "endpoint"),
        ({}, "endpoint"),
        ({"endpoint": "a", "reason": "x" * 501}, "reason"),
        ({"endpoint": "a", "reason": "line\nbreak"}, "reason"),
        ({"endpoint": "a", "reasons": "x"}, "reasons"),
    ],
)
async def test_what_is_wrong_is_named(bench: V1Bench, body: object, field: str) -> None:
    reply = await bench.request("POST", "/api/v1/endpoints/pause", body)
    assert error_of(reply)[:2] == (400, "INVALID_INPUT")
    assert reply.json["details"]["field"] == field
    assert "secret" not in reply.content.decode()
    assert not await bench.store.endpoint_pauses.pauses()


@pytest.mark.parametrize(
    ("roles", "namespaces"), [(("read",), ("*",)), (("write",), ("*",)), (("admin",), ("mine",))]
)
@pytest.mark.parametrize("path", ["pause", "resume"])
async def test_only_an_admin_key_for_all_namespaces_may_do_it(
    bench: V1Bench, roles: tuple[str, ...], namespaces: tuple[str, ...], path: str
) -> None:
    key = await bench.issue_key(*roles, namespaces=namespaces)
    body = {"endpoint": "https://example.com"}
    reply = await bench.request("POST", f"/api/v1/endpoints/{path}", body, key)
    assert error_of(reply)[:2] == (403, "FORBIDDEN")


async def test_the_number_of_pauses_is_bounded(bench: V1Bench) -> None:
    for number in range(MAX_PAUSED_ENDPOINTS):
        await bench.store.endpoint_pauses.add_pause(
            EndpointPause(
                endpoint=f"http://{number}:80", paused_at=bench.clock.now(), paused_by="x"
            )
        )
    assert error_of(await pause(bench, "https://example.com"))[:2] == (409, "TOO_MANY_PAUSES")
    assert (await pause(bench, "http://7")).status == 200, "it is paused already"


async def test_pauses_are_in_the_audit_log(bench: V1Bench) -> None:
    await pause(bench, "https://example.com", reason="a deploy")
    await resume(bench, "https://example.com")
    await resume(bench, "https://example.com")
    entries = await bench.store.security.audit_entries(AuditQuery())
    assert [(each.action, each.target, each.result) for each in reversed(entries)] == [
        ("endpoint.pause", "https://example.com:443", "ok"),
        ("endpoint.resume", "https://example.com:443", "ok"),
        ("endpoint.resume", "https://example.com", "ENDPOINT_NOT_PAUSED"),
    ]
