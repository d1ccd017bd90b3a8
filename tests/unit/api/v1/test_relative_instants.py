"""`executeIn`: a duration that the server adds to its own clock, compared as it was given."""

from typing import Any

import pytest

from tests.unit.api.v1.v1_bench import BASE, URL, V1Bench, create_body, error_of, path_of

ONE = path_of("default", "one")


def body_in(duration: object, id: str = "one", **changes: object) -> dict[str, object]:
    return {"id": id, "executeIn": duration, "callbackUrl": URL, **changes}


def instant_after(seconds: int) -> str:
    """The clock starts at the beginning of 2030."""
    return f"2030-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"


async def test_the_server_adds_the_duration_to_its_own_clock(bench: V1Bench) -> None:
    bench.clock.advance(7)
    reply = await bench.post("", body_in("30s"))
    assert (reply.status, reply.json["executeAt"]) == (200, instant_after(37))
    assert reply.json["nextAttemptAt"] == instant_after(37)
    assert reply.headers["timer-existence"] == "created"


@pytest.mark.parametrize("again", ["30s", "30000ms", "0.5m"])
async def test_a_repeat_is_the_same_timer_whenever_it_comes(bench: V1Bench, again: str) -> None:
    first = await bench.post("", body_in("30s", payload={"a": 1}))
    for _ in range(3):
        bench.clock.advance(20)
        reply = await bench.post("", body_in(again, payload={"a": 1}))
        assert (reply.status, reply.json) == (200, first.json)
        assert reply.headers["timer-existence"] == "existing"


async def test_a_repeat_is_the_same_timer_after_it_fired_or_was_canceled(bench: V1Bench) -> None:
    await bench.post("", body_in("30s", "fired"))
    await bench.fail("fired")
    await bench.post("", body_in("30s", "canceled"))
    await bench.post("/cancel", {"timerId": "canceled"})
    for id in ("fired", "canceled"):
        before = await bench.timer(id)
        for path in ("", "/create"):
            # The retry policy was changed to none so that the timer fails.
            policy = {"retryPolicy": {"maxRetries": 0}} if id == "fired" else {}
            reply = await bench.post(path, body_in("30s", id, **policy))
            assert (reply.status, reply.json) == (200, before)
            assert reply.headers["timer-existence"] == "existing"


async def test_another_duration_is_another_timer(bench: V1Bench) -> None:
    first = await bench.post("", body_in("30s"))
    reply = await bench.post("", body_in("31s", payload=1))
    message = "a timer with this id exists and differs in executeIn, payload"
    assert error_of(reply) == (409, "TIMER_CONFLICT", message)
    assert reply.json["details"] == {"fields": ["executeIn", "payload"]}
    assert await bench.timer() == first.json


async def test_an_instant_and_then_a_duration_is_another_timer(bench: V1Bench) -> None:
    await bench.create_v1()
    # The clock has not moved, so the instant would even be the same.
    reply = await bench.post("", body_in("10s"))
    assert error_of(reply)[:2] == (409, "TIMER_CONFLICT")
    assert reply.json["details"] == {"fields": ["executeIn"]}


async def test_the_instant_of_the_answer_names_the_same_timer(bench: V1Bench) -> None:
    """As in an export that is imported again."""
    first = await bench.post("", body_in("30s"))
    bench.clock.advance(5)
    reply = await bench.post("", create_body(executeAt=first.json["executeAt"]))
    assert (reply.status, reply.json) == (200, first.json)
    reply = await bench.post("", create_body(executeAt=instant_after(35)))
    assert reply.json["details"] == {"fields": ["executeAt"]}


async def test_an_upsert_of_a_pending_timer_counts_from_now_again(bench: V1Bench) -> None:
    await bench.post("/create", body_in("30s"))
    bench.clock.advance(20)
    reply = await bench.post("/create", body_in("30s"))
    assert reply.headers["timer-existence"] == "replaced"
    assert reply.json["executeAt"] == instant_after(50)
    # The create that replaced it can be repeated.
    bench.clock.advance(20)
    again = await bench.post("", body_in("30s"))
    assert (again.json, again.headers["timer-existence"]) == (reply.json, "existing")


async def test_an_instant_that_replaces_a_duration_ends_the_comparison(bench: V1Bench) -> None:
    await bench.post("/create", body_in("30s"))
    await bench.post("/create", create_body(executeAt=instant_after(50)))
    reply = await bench.post("", body_in("30s"))
    assert reply.json["details"] == {"fields": ["executeIn"]}


async def test_a_change_counts_from_now(bench: V1Bench) -> None:
    created = await bench.post("", body_in("30s"))
    bench.clock.advance(20)
    reply = await bench.request("PUT", ONE, {"executeIn": "1m"})
    assert (reply.status, reply.json["executeAt"]) == (200, instant_after(80))
    assert reply.json["deliveryId"] != created.json["deliveryId"]
    reply = await bench.post("/update", {"timerId": "one", "executeIn": "2m"})
    assert reply.json["executeAt"] == instant_after(140)
    # The create is recognised by the duration that it had.
    again = await bench.post("", body_in("30s"))
    assert (again.status, again.json) == (200, reply.json)


async def test_batches_and_imports(bench: V1Bench) -> None:
    bench.clock.advance(5)
    timers = [body_in("30s"), body_in("30s", "two"), create_body("three"), body_in("nope", "four")]
    for expected in ("created", "existing"):
        batch = await bench.post("/batch", {"timers": timers})
        statuses = [each["status"] for each in batch.json["results"]]
        assert statuses == [expected] * 3 + ["invalid"]
        bench.clock.advance(2)
    assert (await bench.timer("two"))["executeAt"] == instant_after(35)
    line = b'{"id": "%s", "executeIn": "%s", "callbackUrl": "https://example.com/due"}\n'
    lines = line % (b"two", b"30s") + line % (b"five", b"0s") + line % (b"two", b"31s")
    imported = (await bench.request("POST", f"{BASE}/import", lines)).json
    assert (imported["created"], imported["existing"], imported["conflicts"]) == (1, 1, 1)
    assert (await bench.timer("five"))["executeAt"] == instant_after(9)


TOO_LONG = "executeIn is too long: at most 100 years"
NO_DURATION = 'executeIn must be a duration such as "500ms", "30s", "1h30m" or "7d"'
BOTH = "executeIn and executeAt cannot both be given: give one of them"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"executeIn": "0s"}, "executeIn must be at least 1ms"),
        ({"executeIn": "0.4ms"}, "executeIn must be at least 1ms"),
        ({"executeIn": "36526d"}, TOO_LONG),
        ({"executeIn": "9" * 31 + "d"}, TOO_LONG),
        ({"executeIn": ""}, NO_DURATION),
        ({"executeIn": "30"}, NO_DURATION),
        ({"executeIn": "-30s"}, NO_DURATION),
        ({"executeIn": " 30s"}, NO_DURATION),
        ({"executeIn": "٣s"}, NO_DURATION),
        ({"executeIn": "PT30S"}, NO_DURATION),
        ({"executeIn": 30}, 'executeIn must be a string such as "30s"'),
        ({"executeIn": None}, 'executeIn must be a string such as "30s"'),
        ({"executeIn": "30s", "executeAt": "2030-01-01T00:00:30Z"}, BOTH),
        ({"executeIn": "nope", "executeAt": "nope"}, BOTH),
    ],
)
async def test_what_is_no_duration_is_refused(
    bench: V1Bench, members: dict[str, Any], message: str
) -> None:
    body = {"id": "one", "callbackUrl": URL, **members}
    for path in ("", "/create"):
        reply = await bench.post(path, body)
        assert error_of(reply) == (400, "INVALID_INPUT", message)
        assert reply.json["details"] == {"field": "executeIn"}
    batch = await bench.post("/batch", {"timers": [body]})
    assert batch.json["results"][0]["error"]["message"] == message
    await bench.create_v1()
    assert error_of(await bench.request("PUT", ONE, members))[2] == message


async def test_the_longest_duration(bench: V1Bench) -> None:
    reply = await bench.post("", body_in("36525d"))
    assert (reply.status, reply.json["executeAt"]) == (200, "2130-01-02T00:00:00Z")


async def test_one_of_the_two_is_required(bench: V1Bench) -> None:
    reply = await bench.post("", {"id": "one", "callbackUrl": URL})
    message = "executeAt or executeIn is required: an instant, or a duration from now on"
    assert error_of(reply) == (400, "INVALID_INPUT", message)
