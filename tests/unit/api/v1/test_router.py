"""The work of the v1 router before a handler sees the request."""

import pytest

from tests.unit.api.asgi_client import API_KEY, call
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of, path_of


async def test_the_key_is_checked_first(bench: V1Bench) -> None:
    for method, path in [
        ("POST", BASE),
        ("GET", BASE),
        ("GET", f"{BASE}/default/x"),
        ("PUT", f"{BASE}/default/x"),
        ("DELETE", f"{BASE}/default/x"),
        ("POST", f"{BASE}/batch"),
        ("POST", f"{BASE}/import"),
        ("POST", f"{BASE}/redrive"),
        ("POST", f"{BASE}/cancel"),
        ("POST", f"{BASE}/default/x/cancel"),
    ]:
        reply = await call(bench.app, method, path, [b"not json"])
        assert error_of(reply) == (
            401,
            "UNAUTHORIZED",
            "missing or invalid key: send X-API-Key, or Authorization: Bearer",
        )


async def test_an_unread_rest_of_a_body_closes_the_connection(bench: V1Bench) -> None:
    for path in (BASE, f"{BASE}/import", f"{BASE}/batch", "/timers"):
        headers = [(b"transfer-encoding", b"chunked")]
        refused = await call(bench.app, "POST", path, [b"{", b"}"], headers)
        assert (refused.status, refused.headers["connection"]) == (401, "close")
    assert "connection" not in (await bench.create_v1()).headers


async def test_unknown_paths_and_methods(bench: V1Bench) -> None:
    for path in (
        "/api/v1/nothing",
        f"{BASE}/",
        f"{BASE}/default",
        f"{BASE}/default/",
        "/api/v1/",
        "/api/v1",
        "/api/v1/namespaces/",
        "/api/v1/namespaces/default/",
    ):
        assert error_of(await bench.request("GET", path))[:2] == (404, "NOT_FOUND")
    reply = await bench.request("PATCH", f"{BASE}/default/x")
    assert error_of(reply)[:2] == (405, "METHOD_NOT_ALLOWED")
    assert reply.headers["allow"] == "DELETE, GET, HEAD, PUT"
    reply = await bench.request("GET", f"{BASE}/create")
    assert (reply.status, reply.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("method", "path", "advice"),
    [
        ("GET", f"{BASE}/x", f"; did you mean {BASE}/{{namespace}}/{{timerId}}?"),
        ("DELETE", f"{BASE}/x/", f"; did you mean {BASE}/{{namespace}}/{{timerId}}?"),
        ("GET", "/api/v1/namespaces/", "; did you mean /api/v1/namespaces/{name}?"),
        ("POST", f"{BASE}/x", ""),
        ("GET", "/api/v1/nothing", ""),
    ],
)
async def test_a_path_that_lacks_a_part_gets_the_whole_path(
    bench: V1Bench, method: str, path: str, advice: str
) -> None:
    reply = await bench.request(method, path)
    assert error_of(reply) == (404, "NOT_FOUND", f"no such path{advice}")


async def test_a_slash_at_the_end_creates_no_other_namespace(bench: V1Bench) -> None:
    assert (await bench.request("PUT", "/api/v1/namespaces/orders/", {})).status == 404
    assert (await bench.request("PUT", "/api/v1/namespaces/orders%2F", {})).status == 200
    names = (await bench.request("GET", "/api/v1/namespaces")).json["namespaces"]
    assert [each["name"] for each in names] == ["default", "notifications", "orders/", "small"]


@pytest.mark.parametrize("around", [b" %s", b"%s \t", b"\t%s  "])
async def test_white_space_around_the_key_is_not_part_of_it(bench: V1Bench, around: bytes) -> None:
    headers = [(b"x-api-key", around % API_KEY.encode())]
    assert (await call(bench.app, "GET", BASE, [], headers)).status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", BASE),
        ("POST", f"{BASE}/create"),
        ("POST", f"{BASE}/update"),
        ("POST", f"{BASE}/delete"),
        ("POST", f"{BASE}/cancel"),
        ("POST", f"{path_of('default', 'one')}/cancel"),
        ("POST", f"{BASE}/batch"),
        ("POST", f"{BASE}/redrive"),
        ("PUT", path_of("default", "one")),
        ("DELETE", path_of("default", "one")),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/namespaces/default"),
        ("PUT", "/api/v1/namespaces/default"),
        ("GET", "/api/v1/endpoints"),
    ],
)
async def test_a_query_that_the_operation_does_not_read_is_refused(
    bench: V1Bench, method: str, path: str
) -> None:
    await bench.create_v1()
    before = await bench.timer()
    reply = await bench.request(method, f"{path}?dryRun=true", create_body(payload=1))
    message = "dryRun is not a known parameter: this operation takes none"
    assert error_of(reply) == (400, "INVALID_INPUT", message)
    assert reply.json["details"] == {"field": "dryRun"}
    assert await bench.timer() == before


async def test_queries_accept_the_older_name_of_the_namespace(bench: V1Bench) -> None:
    line = b'{"id": "x", "executeAt": "2030-01-01T00:00:10Z", "callbackUrl": "https://example.com"}'
    imported = await bench.request("POST", f"{BASE}/import?groupId=notifications", line)
    assert imported.json["created"] == 1
    listed = await bench.request("GET", f"{BASE}?groupId=notifications")
    assert [timer["id"] for timer in listed.json["timers"]] == ["x"]
    for path in (BASE, f"{BASE}/import"):
        method = "GET" if path == BASE else "POST"
        reply = await bench.request(method, f"{path}?groupId=small&namespace=default")
        message = "groupId and namespace mean the same: give one of them"
        assert error_of(reply) == (400, "INVALID_INPUT", message)


@pytest.mark.parametrize("name", ["nope", "Default", "n%C3%B6", "x" * 255])
async def test_an_unknown_namespace_is_not_found(bench: V1Bench, name: str) -> None:
    reply = await bench.request("GET", f"/api/v1/namespaces/{name}")
    assert error_of(reply)[:2] == (404, "NAMESPACE_NOT_FOUND")
    assert reply.json["details"] == {"field": "namespace"}


async def test_a_timer_of_an_unknown_namespace_is_a_mistake_in_the_request(bench: V1Bench) -> None:
    reply = await bench.request("GET", path_of("nope", "one"))
    assert error_of(reply) == (400, "NAMESPACE_NOT_FOUND", "namespace 'nope' does not exist")
