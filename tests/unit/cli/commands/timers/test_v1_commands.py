"""Commands for timers of the v1 API, against a scripted server."""

import msgspec
import pytest

from duetime.cli.client.field_names import in_platform_names, in_v1_names
from duetime.domain.limits import MAX_PLATFORM_PAGE_TIMERS, MAX_V1_PAGE_TIMERS
from tests.unit.cli.scripted_server import URL, ScriptedServer, invoke, refusal

UUID = "01980000-0000-7000-8000-000000000000"
POLICY = {
    "maxRetries": 3,
    "maxRetryAttemptsDuration": "24h",
    "initialInterval": "30s",
    "backoffMultiplier": 2.0,
    "maxInterval": "10m",
}
ORDER = "/api/v1/timers/orders/order-17"


def timer(**changes: object) -> dict[str, object]:
    attempt = {
        "number": 1,
        "dueAt": "2030-01-01T12:00:00Z",
        "claimedAt": "2030-01-01T12:00:00Z",
        "sentAt": "2030-01-01T12:00:00.001Z",
        "answeredAt": "2030-01-01T12:00:00.131Z",
        "outcome": "failed",
        "error": "HTTP 503",
    }
    return {
        "id": "order-17",
        "namespace": "orders",
        "executeAt": "2030-01-01T12:00:00Z",
        "callbackUrl": "http://127.0.0.1/hook",
        "callbackProtocol": "answer",
        "callbackHeaders": {"X-A": "1"},
        "payload": {"camelCase": 1},
        "retryPolicy": POLICY,
        "callbackTimeout": "30s",
        "callbackTimeoutSeconds": 30.0,
        "status": "failed",
        "attempts": [attempt],
        "lastError": "HTTP 503",
        **changes,
    }


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ([UUID], f"/timers/{UUID}"),
        ([UUID, "--namespace", "default"], f"/api/v1/timers/default/{UUID}"),
        (["order-17"], "/api/v1/timers/default/order-17"),
        (["a/b c?", "--namespace", "ü"], "/api/v1/timers/%C3%BC/a%2Fb%20c%3F"),
        ([".."], "/api/v1/timers/default/%2E%2E"),
        (["100%"], "/api/v1/timers/default/100%25"),
    ],
)
def test_every_id_is_encoded_in_its_path(
    server: ScriptedServer, arguments: list[str], path: str
) -> None:
    invoke("get", *arguments)
    (request,) = server.requests
    assert request.url.raw_path.decode() == path


def test_a_v1_timer_is_shown_like_a_platform_timer(server: ScriptedServer) -> None:
    server.answer("GET", ORDER, timer())
    lines = invoke("get", "order-17", "--namespace", "orders").stdout.splitlines()
    for line in (
        "id: order-17",
        "namespace: orders",
        "callback.url: http://127.0.0.1/hook",
        "callback.headers: X-A: 1",
        'callback.payload: {"camelCase": 1}',
        "callback_protocol: answer",
        "callback_timeout: 30s",
        "last_error: HTTP 503",
        "1\t2030-01-01T12:00:00Z\t1.0 ms late\t130 ms\tfailed: HTTP 503",
    ):
        assert line in lines
    assert any(line.startswith("retry_policy: at most 3 retries, the first") for line in lines)
    output = invoke("get", "order-17", "--namespace", "orders", "--json").stdout
    assert msgspec.json.decode(output) == timer()


def test_a_duration_is_left_to_the_server(server: ScriptedServer) -> None:
    existing = {"timer-existence": "existing"}
    server.answer("POST", "/api/v1/timers", timer(status="pending"), headers=existing)
    server.answer("GET", ORDER, timer(status="pending"))
    server.answer("PUT", ORDER, timer(status="pending"))
    order = ("--namespace", "orders", "--in", "1h30m")
    result = invoke("create", "--id", "order-17", "--url", "http://127.0.0.1/hook", *order)
    assert result.stdout.startswith("Timer existed already.\n")
    assert server.bodies("POST", "/api/v1/timers") == [
        {
            "namespace": "orders",
            "id": "order-17",
            "executeIn": "1h30m",
            "callbackUrl": "http://127.0.0.1/hook",
        }
    ]
    assert invoke("update", "order-17", *order).exit_code == 0
    assert server.bodies("PUT", ORDER) == [{"executeIn": "1h30m"}]


@pytest.mark.parametrize("options", [(), ("--payload", "1"), ("--idempotency-key", "k")])
def test_the_server_adds_the_duration_of_a_platform_timer_too(
    server: ScriptedServer, options: tuple[str, ...]
) -> None:
    answered = {
        "id": "0198",
        "status": "pending",
        "execute_at": "2041-02-03T04:05:06Z",
        "created_at": "2041-02-03T03:05:06Z",
    }
    envelope = {"code": 0, "message": "ok", "data": answered}
    server.answer("POST", "/timers", envelope, status=201)
    result = invoke("create", "--url", "http://127.0.0.1/hook", "--in", "1h", *options)
    assert "2041-02-03T04:05:06Z" in result.stdout
    (body,) = server.bodies("POST", "/timers")
    assert isinstance(body, dict)
    assert (body["execute_in"], "execute_at" in body) == ("1h", False)
    # Only the server knows the instant, so the command has none to put into a payload.
    assert ("payload" in body["callback"]) is ("--payload" in options)


def test_list_continues_with_a_cursor(server: ScriptedServer) -> None:
    server.answer("GET", "/api/v1/timers", {"timers": [timer()], "nextCursor": "abc="})
    result = invoke("list", "--namespace", "orders", "--status", "failed", "--cursor", "xyz=")
    heading, row, note = result.stdout.splitlines()
    columns = ["id", "status", "due", "execute_at", "callback", "last_error", "late"]
    assert heading.split("\t") == columns
    assert row.split("\t")[::5] == ["order-17", "HTTP 503"]
    assert note == "1 failed timer of namespace 'orders'; more with --cursor abc="
    assert dict(server.requests[0].url.params) == {
        "namespace": "orders",
        "status": "failed",
        "limit": "50",
        "order": "asc",
        "cursor": "xyz=",
    }


def test_list_by_instant_needs_no_namespace(server: ScriptedServer) -> None:
    result = invoke("list", "--due-before", "2030-01-01T00:00:00Z", "--order", "desc")
    assert result.stdout == (
        "0 timers of namespace 'default'; --all-namespaces lists the others too\n"
    )
    assert dict(server.requests[0].url.params) == {
        "namespace": "default",
        "limit": "50",
        "order": "desc",
        "dueBefore": "2030-01-01T00:00:00Z",
    }


def test_list_takes_the_limit_of_the_api_that_it_uses(server: ScriptedServer) -> None:
    assert (
        invoke("list", "--namespace", "orders", "--limit", str(MAX_V1_PAGE_TIMERS)).exit_code == 0
    )
    too_many = str(MAX_PLATFORM_PAGE_TIMERS + 1)
    result = invoke("list", "--limit", too_many)
    assert result.exit_code == 2
    assert result.stderr == ("--limit: at most 200, or 1000 with --namespace or --all-namespaces\n")
    assert [request.url.params["limit"] for request in server.requests] == ["1000"]


def test_create_with_an_id_uses_the_v1_api(server: ScriptedServer) -> None:
    server.answer("POST", "/api/v1/timers", timer(), headers={"timer-existence": "created"})
    result = invoke(
        *("create", "--namespace", "orders", "--id", "order-17", "--url", "http://127.0.0.1/hook"),
        *("--at", "2030-01-01T12:00:00Z", "--payload", '{"snake_case": 1}', "--header", "X-A=1"),
        *("--max-retries", "5", "--max-duration", "1h", "--callback-timeout", "5s"),
        *("--metadata", '{"team": "shop"}'),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Timer created.\nid: order-17\n")
    assert server.bodies("POST", "/api/v1/timers") == [
        {
            "namespace": "orders",
            "id": "order-17",
            "executeAt": "2030-01-01T12:00:00Z",
            "callbackUrl": "http://127.0.0.1/hook",
            "callbackHeaders": {"X-A": "1"},
            "payload": {"snake_case": 1},
            "retryPolicy": {"maxRetries": 5, "maxRetryAttemptsDuration": "1h"},
            "callbackTimeout": "5s",
            "metadata": {"team": "shop"},
        }
    ]


CREATE = ("create", "--url", "http://127.0.0.1/", "--at", "2030-01-01T12:00:00Z")


EXACT = '{"a": 0.10000000000000000555, "a" : 1e400, "b":\t"\\u00fc",\n"c": 1.10}'


@pytest.mark.parametrize(
    ("arguments", "path", "members"),
    [
        ([], "/timers", ("callback", "metadata")),
        (["--id", "order-17"], "/api/v1/timers", ("payload", "metadata")),
    ],
)
def test_create_sends_json_as_written(
    server: ScriptedServer, arguments: list[str], path: str, members: tuple[str, ...]
) -> None:
    server.answer("POST", path, {"code": 0, "message": "", "data": {"id": UUID}})
    result = invoke(*CREATE, *arguments, "--payload", f" {EXACT} ", "--metadata", EXACT)
    assert result.exit_code == 0, result.stderr
    (request,) = server.of("POST", path)
    body = msgspec.json.decode(request.content, type=dict[str, msgspec.Raw])
    for member in members:
        assert EXACT.encode() in bytes(body[member])


@pytest.mark.parametrize(
    ("headers", "headline"),
    [
        ({"Timer-Existence": "created"}, "Timer created."),
        ({"Timer-Existence": "existing"}, "Timer existed already."),
        # A proxy may drop headers that it does not know.
        ({}, "Timer accepted."),
    ],
)
def test_create_says_whether_the_timer_is_new(
    server: ScriptedServer, headers: dict[str, str], headline: str
) -> None:
    pending = timer(status="pending")
    server.answer("POST", "/api/v1/timers", pending, headers=headers)
    result = invoke(*CREATE, "--id", "order-17")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{headline}\nid: order-17\n")
    output = invoke(*CREATE, "--id", "order-17", "--json").stdout
    assert msgspec.json.decode(output) == pending


@pytest.mark.parametrize(
    ("status", "headline"), [(201, "Timer created."), (200, "Timer existed already.")]
)
def test_create_says_whether_a_platform_timer_is_new(
    server: ScriptedServer, status: int, headline: str
) -> None:
    answer = {"code": 0, "message": "", "data": {"id": UUID}}
    server.answer("POST", "/timers", answer, status=status)
    result = invoke(*CREATE, "--idempotency-key", "once")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{headline}\nid: {UUID}\n")


@pytest.mark.parametrize(
    ("status", "what_holds"),
    [
        ("pending", "."),
        ("executing", "."),
        ("completed", "; it is completed and will not fire again."),
        ("failed", "; it has failed and will not fire again."),
        ("canceled", "; it is canceled and will not fire."),
    ],
)
def test_a_repeated_create_says_that_the_timer_will_not_fire(
    server: ScriptedServer, status: str, what_holds: str
) -> None:
    existing = {"Timer-Existence": "existing"}
    server.answer("POST", "/api/v1/timers", timer(status=status), headers=existing)
    result = invoke(*CREATE, "--id", "order-17")
    assert result.stdout.startswith(f"Timer existed already{what_holds}\n")


def test_an_unknown_namespace_comes_with_a_way_out(server: ScriptedServer) -> None:
    problem = "namespace 'orders' does not exist"
    server.answer("POST", "/api/v1/timers", refusal("NAMESPACE_NOT_FOUND", problem), status=400)
    result = invoke(*CREATE, "--id", "order-17", "--namespace", "orders")
    advice = "`duetime namespaces` lists those that do, `duetime namespaces set orders` creates it"
    assert (result.exit_code, result.stderr) == (1, f"{problem}: {advice}\n")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ([], "namespace 'default' does not exist for this key: {}; --namespace names one\n"),
        (["--namespace", "orders"], "namespace 'orders' does not exist for this key: {}\n"),
    ],
)
def test_a_key_of_a_team_is_told_to_name_its_namespace(
    server: ScriptedServer, arguments: list[str], advice: str
) -> None:
    name = "orders" if arguments else "default"
    document = refusal("NAMESPACE_NOT_FOUND", f"namespace '{name}' does not exist")
    server.answer("GET", f"/api/v1/timers/{name}/b1", document, status=400)
    result = invoke("get", "b1", *arguments, "--api-key", "dt_9c1f4b7e20d85a63_secret")
    lists = "`duetime namespaces` lists those that do"
    assert (result.exit_code, result.stderr) == (1, advice.format(lists))


def test_a_key_of_a_team_finds_no_timer_in_a_namespace_without_name(
    server: ScriptedServer,
) -> None:
    missing = {"code": 3, "message": "timer not found", "data": None}
    server.answer("GET", f"/timers/{UUID}", missing, status=404)
    key = ("--api-key", "dt_9c1f4b7e20d85a63_secret")
    assert invoke("get", UUID, *key).stderr == (f"timer not found: '{UUID}' at {URL}\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--namespace", "orders"], "--id: is needed with --namespace"),
        (
            ["--id", "a", "--idempotency-key", "k"],
            "--idempotency-key: is not needed with the v1 API",
        ),
        (["--callback-timeout", "5s"], "--callback-timeout: is for timers of the v1 API"),
        (["--id", "a", "--callback-timeout", "5"], "--callback-timeout: must be a duration"),
    ],
)
def test_create_refuses_options_of_the_other_api(
    server: ScriptedServer, arguments: list[str], problem: str
) -> None:
    result = invoke("create", "--url", "http://127.0.0.1/", "--in", "1h", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(problem)
    assert not server.requests


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["--at", "2031-01-01T00:00:00Z"], {"executeAt": "2031-01-01T00:00:00Z"}),
        (["--url", "http://127.0.0.1/new"], {"callbackUrl": "http://127.0.0.1/new"}),
        (["--header", "x-b=2"], {"callbackHeaders": {"X-A": "1", "x-b": "2"}}),
        (["--payload", "null"], {"payload": None}),
        (["--no-payload"], {"payload": None}),
        (["--url", "http://127.0.0.1/hook"], {"callbackUrl": "http://127.0.0.1/hook"}),
        (["--max-retries", "7"], {"retryPolicy": {**POLICY, "maxRetries": 7}}),
        (["--callback-timeout", "5s"], {"callbackTimeout": "5s"}),
    ],
)
def test_update_sends_the_changes(
    server: ScriptedServer, arguments: list[str], body: object
) -> None:
    server.answer("GET", ORDER, timer())
    server.answer("PUT", ORDER, timer())
    result = invoke("update", "order-17", "--namespace", "orders", *arguments)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Timer updated.\n")
    assert server.bodies("PUT", ORDER) == [body]


@pytest.mark.parametrize(
    "arguments", [["get", "order-17"], ["get", "order-17", "--json"], ["list", "--json"]]
)
@pytest.mark.parametrize("digits", ["9" * 5_000, "-1.5e400"])
def test_a_number_too_large_for_python_is_shown(
    server: ScriptedServer, arguments: list[str], digits: str
) -> None:
    poisoned = timer() | {"payload": msgspec.Raw(digits.encode())}
    server.answer("GET", ORDER, poisoned)
    server.answer("GET", "/api/v1/timers", {"timers": [poisoned], "nextCursor": None})
    result = invoke(*arguments, "--namespace", "orders")
    assert result.exit_code == 0, result.stderr
    assert digits in result.stdout.replace("\n", "").replace(" ", "")


def test_field_names_translate_there_and_back() -> None:
    there = in_platform_names(timer())
    assert in_platform_names(there) == there
    assert in_v1_names({"retry_policy": there["retry_policy"]}) == {"retryPolicy": POLICY}


def test_create_with_a_nats_callback(server: ScriptedServer) -> None:
    server.answer("POST", "/timers", {"code": 0, "message": "", "data": {"id": UUID}}, status=201)
    at = ("--at", "2030-01-01T12:00:00Z", "--no-payload")
    invoke("create", "--nats-topic", "events.timer", "--nats-key", "user-7", "--ack", *at)
    invoke("create", "--nats-topic", "events.timer", "--header", "a=b", *at)
    bodies = [msgspec.convert(body, dict) for body in server.bodies("POST", "/timers")]
    assert [body["callback"] for body in bodies] == [
        {"type": "nats", "topic": "events.timer", "key": "user-7", "ack": True},
        {"type": "nats", "topic": "events.timer", "headers": {"a": "b"}},
    ]


def test_a_timer_of_the_bus_is_shown_with_its_type(server: ScriptedServer) -> None:
    server.answer("GET", ORDER, timer(callbackUrl=None, callbackType="bus", payload=None))
    shown = invoke("get", "order-17", "--namespace", "orders").stdout
    assert "callback_type: bus" in shown.splitlines()
    assert "callback.url" not in shown
    assert "callback.payload" not in shown
