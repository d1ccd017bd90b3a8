"""Many timers in one request."""

import pytest
from msgspec import Raw, json

from duetime.domain.timer import TimerStatus
from tests.unit.api.asgi_client import make_api_rules
from tests.unit.api.v1.v1_bench import V1Bench, create_body, error_of


async def test_results_are_in_order(bench: V1Bench) -> None:
    await bench.create_v1("there")
    await bench.create_v1("other")
    timers = [
        create_body("new"),
        create_body("there"),
        create_body("other", payload=1),
        create_body("late", executeAt="2020-01-01T00:00:00Z"),
        create_body("lost", namespace="nowhere"),
        {"id": "half"},
        create_body("new"),
        "no object",
        create_body("last", namespace="notifications"),
    ]
    reply = await bench.post("/batch", {"timers": timers})
    assert reply.status == 200
    results = reply.json["results"]
    assert [result["status"] for result in results] == [
        "created",
        "existing",
        "conflict",
        "invalid",
        "invalid",
        "invalid",
        "existing",
        "invalid",
        "created",
    ]
    assert results[0] == {"status": "created", "namespace": "default", "id": "new"}
    assert results[2]["error"] == {
        "error": "TIMER_CONFLICT",
        "message": "a timer with this id exists and differs in payload",
        "details": {"fields": ["payload"]},
    }
    assert results[3]["error"] == {
        "error": "INVALID_INPUT",
        "message": "executeAt must be in the future",
        "details": {"field": "executeAt"},
    }
    assert results[4]["error"]["error"] == "NAMESPACE_NOT_FOUND"
    assert results[5]["error"]["details"]["field"] in ("executeAt", "callbackUrl")
    assert results[7] == {
        "status": "invalid",
        "error": {
            "error": "INVALID_INPUT",
            "message": "timer must be an object",
            "details": {"field": "timer"},
        },
    }
    assert results[8]["namespace"] == "notifications"
    assert (await bench.timers_stored())[TimerStatus.PENDING] == 4


DEFAULT = {"namespace": "default", "id": "a"}


@pytest.mark.parametrize(
    ("timer", "told"),
    [
        (create_body("a", extra=1), DEFAULT),
        (create_body("a", executeAt=7), DEFAULT),
        (create_body("a", namespace="lost", extra=1), {"namespace": "lost", "id": "a"}),
        (create_body("a", groupId="lost", extra=1), {"namespace": "lost", "id": "a"}),
        (create_body("a", namespace="b", groupId="c", x=1), {"namespace": "b", "id": "a"}),
        (create_body("a", namespace="b", groupId="c"), {"namespace": "b", "id": "a"}),
        ({"id": "\N{SNOWMAN}\n"}, {"namespace": "default", "id": "\N{SNOWMAN}\n"}),
        (create_body("a", namespace=7), {"id": "a"}),
        (create_body("a", namespace=None, groupId="c"), {"id": "a"}),
        (create_body("a", payload=Raw(b"[" * 900 + b"]" * 900)), DEFAULT),
        ({"id": 7}, {}),
        ({"id": 7, "namespace": "b"}, {"namespace": "b"}),
        (create_body("x" * 256), {"namespace": "default"}),
        (create_body("a", namespace="x" * 256, extra=1), {"id": "a"}),
        ({}, {}),
        (["id", "a"], {}),
        (None, {}),
    ],
)
async def test_the_result_for_an_invalid_timer_has_the_readable_parts_of_its_key(
    bench: V1Bench, timer: object, told: dict[str, str]
) -> None:
    timers = [create_body("fine"), timer]
    fine, result = (await bench.post("/batch", {"timers": timers})).json["results"]
    assert fine["status"] == "created"
    assert result.pop("error")["details"]["field"]
    assert result == {"status": "invalid", **told}


async def test_a_batch_sent_again_changes_nothing(bench: V1Bench) -> None:
    timers = [create_body(f"timer {number}") for number in range(1_000)]
    first = await bench.post("/batch", {"timers": timers})
    assert {result["status"] for result in first.json["results"]} == {"created"}
    bench.clock.advance(60)
    again = await bench.post("/batch", {"timers": timers})
    assert {result["status"] for result in again.json["results"]} == {"existing"}


async def test_the_engine_is_woken_for_every_shard(bench: V1Bench) -> None:
    timers = [create_body(f"timer {number}") for number in range(100)]
    await bench.post("/batch", {"timers": timers})
    assert len({shard for shard, _ in bench.wakeups.announced}) == 16


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body is empty: send a JSON object"),
        (b"[]", "body must be an object"),
        (b"{}", "timers is required"),
        (b'{"timers":{}}', "timers must be an array"),
        (b'{"timers":[]}', "timers must have 1 to 1000 entries"),
        (b'{"timers":[],"more":1}', "more is not a known field: this object takes timers"),
        (b'{"timers":[' + b"1," * 1_000 + b"1]}", "timers must have 1 to 1000 entries"),
        (b'{"timers":["\xff"]}', "body is not valid UTF-8 (byte 12)"),
    ],
)
async def test_a_body_that_is_not_a_batch_is_refused(
    bench: V1Bench, body: bytes, message: str
) -> None:
    assert error_of(await bench.post("/batch", body)) == (400, "INVALID_INPUT", message)


async def test_one_payload_that_is_too_deep_or_too_large(bench: V1Bench) -> None:
    deep: object = 1
    for _ in range(64):
        deep = [deep]
    timers = [
        create_body("a", payload=deep),
        create_body("b", payload="x" * 300_000),
        create_body("c"),
    ]
    results = (await bench.post("/batch", {"timers": timers})).json["results"]
    assert [result["status"] for result in results] == ["invalid", "invalid", "created"]
    assert results[0]["error"]["message"] == "timer is nested deeper than 64 levels"
    assert results[1]["error"]["error"] == "PAYLOAD_TOO_LARGE"


ARRAYS = b"[", b"", b"]"
OBJECTS = b'{"":', b"{}", b"}"


@pytest.mark.parametrize("member", ["payload", "metadata"])
@pytest.mark.parametrize("levels", [62, 63, 64, 900])
@pytest.mark.parametrize("shape", [ARRAYS, OBJECTS], ids=["arrays", "objects"])
async def test_only_timers_nested_too_deep_are_refused(
    bench: V1Bench, member: str, levels: int, shape: tuple[bytes, bytes, bytes]
) -> None:
    begin, innermost, end = shape
    around = levels - (1 if innermost else 0)
    nested = json.encode(create_body("deep", **{member: "NESTED"}))
    deep = nested.replace(b'"NESTED"', begin * around + innermost + end * around)
    body = b'{"timers":[%b,%b]}' % (json.encode(create_body("flat")), deep)
    results = (await bench.post("/batch", body)).json["results"]
    expected = "created" if levels <= 63 else "invalid"
    assert [result["status"] for result in results] == ["created", expected]
    if levels > 63:
        assert results[1]["error"]["message"] == "timer is nested deeper than 64 levels"


async def test_a_policy_is_completed_from_a_namespace_that_is_new_to_this_node(
    bench: V1Bench,
) -> None:
    timer = create_body("a", namespace="small", retryPolicy={"backoffMultiplier": 3})
    results = (await bench.post("/batch", {"timers": [create_body("b"), timer]})).json["results"]
    assert [result["status"] for result in results] == ["created", "created"]
    policy = (await bench.timer("a", "small"))["retryPolicy"]
    assert (policy["maxRetries"], policy["initialInterval"]) == (7, "100ms")
    assert policy["backoffMultiplier"] == 3


async def test_a_batch_may_be_larger_than_one_body() -> None:
    bench = await V1Bench(api_rules=make_api_rules(max_body_bytes=1_024)).open()
    timers = [create_body(f"timer {number}") for number in range(60)]
    assert (await bench.post("/batch", {"timers": timers})).status == 200
    timers = [create_body(f"timer {number}") for number in range(200)]
    reply = await bench.post("/batch", {"timers": timers})
    assert error_of(reply)[:2] == (413, "PAYLOAD_TOO_LARGE")
