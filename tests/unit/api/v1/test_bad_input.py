"""Bad input gets a 4xx that names the field as this API spells it, and nothing is written."""

import pytest

from duetime.domain.timer import TimerStatus
from tests.unit.api.v1.v1_bench import V1Bench, create_body, error_of, path_of

DURATION = "must be a duration such as"


def without(member: str) -> dict[str, object]:
    return {name: value for name, value in create_body().items() if name != member}


BODIES: list[tuple[object, str]] = [
    (b"", "body is empty"),
    (b"hello", "body is not valid JSON"),
    ([], "body must be an object"),
    (b'{"id":"\xff"}', "body is not valid UTF-8"),
    (without("id"), "id is required"),
    (without("executeAt"), "executeAt or executeIn is required"),
    (without("callbackUrl"), "callbackUrl is required"),
    (create_body(""), "id must have 1 to 255 characters"),
    (create_body("x" * 256), "id must have 1 to 255 characters"),
    (create_body("\0"), "id must not contain the character NUL"),
    (create_body(namespace=""), "namespace '' does not exist"),
    (create_body(namespace=7), "namespace must be a string"),
    (
        {**without("executeAt"), "execute_in": "30s"},
        "execute_in is not a known field; did you mean 'executeIn'?",
    ),
    (create_body(execute_at="x"), "execute_at is not a known field; did you mean 'executeAt'?"),
    (create_body(url="x"), "url is not a known field; did you mean 'callbackUrl'?"),
    (create_body(maxRetries=1), "maxRetries is not a known field: this object takes id, executeAt"),
    (create_body(executeAt=7), 'executeAt must be a string such as "2030-01-31T12:00:00Z"'),
    (create_body(executeAt="soon"), "executeAt must be a date and time in ISO 8601"),
    (create_body(executeAt="2030-01-01T00:00:10"), "executeAt must have a UTC offset"),
    (create_body(executeAt="2020-01-01T00:00:00Z"), "executeAt must be in the future"),
    (create_body(executeAt="9999-01-01T00:00:00Z"), "executeAt is too far in the future"),
    (create_body(executeAt="1960-01-01T00:00:00Z"), "executeAt must be in the future"),
    (create_body(callbackUrl="ftp://example.com"), "callbackUrl "),
    (create_body(callbackUrl="/relative"), "callbackUrl "),
    (create_body(callbackUrl="http://example.com/" + "x" * 2048), "callbackUrl "),
    (create_body(callbackHeaders={"X-A": "b\r\nc"}), "callbackHeaders.X-A must not contain"),
    (create_body(callbackHeaders={"X-A": "b", "X-B": 5}), "callbackHeaders.X-B must be a string"),
    (
        # The JSON after the fault is broken, so the name of the member cannot be found.
        b'{"callbackHeaders":{"X-A":5},',
        "callbackHeaders values must be a string",
    ),
    (
        b'{"callbackHeaders":{"X-A":5},"callbackHeaders":{}}',
        "callbackHeaders values must be a string",
    ),
    (create_body(callbackHeaders={"x" * 99: 5}), f"callbackHeaders.{'x' * 60}... must be a string"),
    (create_body(callbackHeaders={"a b": "c"}), "callbackHeaders has an entry 'a b'"),
    (create_body(callbackProtocol="soap"), "callbackProtocol must be 'answer' or 'status'"),
    (create_body(callbackTimeout="soon"), f"callbackTimeout {DURATION}"),
    (create_body(callbackTimeout="2h"), "callbackTimeout must be from 1ms to 1h"),
    (create_body(callbackTimeout="0s"), "callbackTimeout must be from 1ms to 1h"),
    (create_body(callbackTimeoutSeconds=0), "callbackTimeoutSeconds must be from 0.001 to 3600"),
    (create_body(callbackTimeoutSeconds="30"), "callbackTimeoutSeconds must be a number"),
    (
        create_body(callbackTimeout="1s", callbackTimeoutSeconds=2),
        "callbackTimeoutSeconds and callbackTimeout differ",
    ),
    (create_body(retryPolicy=7), "retryPolicy must be an object or null"),
    (create_body(retryPolicy={"maxRetries": 101}), "retryPolicy.maxRetries must be from 0 to 100"),
    (create_body(retryPolicy={"maxRetries": "3"}), "retryPolicy.maxRetries must be a whole number"),
    (create_body(retryPolicy={"maxAttempts": 0}), "retryPolicy.maxAttempts must be from 1 to 101"),
    (
        create_body(retryPolicy={"maxAttempts": 2, "maxRetries": 2}),
        "retryPolicy.maxAttempts and maxRetries contradict each other",
    ),
    (
        create_body(retryPolicy={"maxAttemptsDuration": "2h", "maxRetryAttemptsDuration": "1h"}),
        "retryPolicy.maxAttemptsDuration and maxRetryAttemptsDuration contradict each other",
    ),
    (create_body(retryPolicy={"initialInterval": "x"}), f"retryPolicy.initialInterval {DURATION}"),
    (
        create_body(retryPolicy={"initialInterval": "2m", "maxInterval": "1m"}),
        "retryPolicy.initialInterval must not be longer than maxInterval",
    ),
    (
        create_body(retryPolicy={"max_retries": 1}),
        "retryPolicy.max_retries is not a known field; did you mean 'maxRetries'?",
    ),
    (
        create_body(retryPolicy={"initialInterval": 5}),
        'retryPolicy.initialInterval must be a string such as "30s"',
    ),
]


@pytest.mark.parametrize(("body", "message"), BODIES)
@pytest.mark.parametrize("path", ["", "/create"])
async def test_a_bad_create(bench: V1Bench, path: str, body: object, message: str) -> None:
    reply = await bench.post(path, body)
    status, code, told = error_of(reply)
    assert (status, code) in ((400, "INVALID_INPUT"), (400, "NAMESPACE_NOT_FOUND"))
    assert told.startswith(message)
    if code == "INVALID_INPUT":
        assert told.startswith(reply.json["details"]["field"])
    assert (await bench.timers_stored())[TimerStatus.PENDING] == 0


async def test_a_payload_that_is_too_large(bench: V1Bench) -> None:
    reply = await bench.create_v1(payload="x" * 300_000)
    assert error_of(reply) == (
        413,
        "PAYLOAD_TOO_LARGE",
        "payload must be at most 262144 bytes of JSON",
    )
    reply = await bench.create_v1(namespace="small", payload="x" * 30)
    assert error_of(reply)[2] == "payload must be at most 20 bytes of JSON"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"executeAt": "2020-01-01T00:00:00Z"}, "executeAt must be in the future"),
        ({"callbackUrl": "nowhere"}, "callbackUrl "),
        ({"retryPolicy": {"maxRetries": -1}}, "retryPolicy.maxRetries must be from 0 to 100"),
        ({"id": "two"}, "id is not a known field: this object takes executeAt, executeIn, "),
        ({"callbackTimeout": "x"}, f"callbackTimeout {DURATION}"),
    ],
)
async def test_a_bad_update(bench: V1Bench, body: object, message: str) -> None:
    before = (await bench.create_v1()).json
    status, code, told = error_of(await bench.request("PUT", path_of("default", "one"), body))
    assert (status, code) == (400, "INVALID_INPUT")
    assert told.startswith(message)
    assert await bench.timer() == before


@pytest.mark.parametrize("path", ["/get", "/cancel", "/delete", "/update"])
async def test_a_member_that_is_part_of_a_name_gets_that_name(bench: V1Bench, path: str) -> None:
    reply = await bench.post(path, {"id": "one"})
    assert error_of(reply) == (
        400,
        "INVALID_INPUT",
        "id is not a known field; did you mean 'timerId'?",
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"shards": 3}, "shards is not a known field; did you mean 'numShards'?"),
        ({"retention": 7}, 'retention must be a string such as "7d", or null'),
    ],
)
async def test_a_bad_namespace(bench: V1Bench, body: object, message: str) -> None:
    reply = await bench.request("PUT", "/api/v1/namespaces/ok", body)
    assert error_of(reply) == (400, "INVALID_INPUT", message)
