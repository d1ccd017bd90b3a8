"""Timers of the v1 API, named in the path or in the body."""

from collections.abc import Awaitable, Callable

import pytest

from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer
from duetime.stores.memory import MemoryStore
from tests.unit.api.asgi_client import IN_TEN_SECONDS
from tests.unit.api.v1.v1_bench import BASE, URL, V1Bench, create_body, error_of, path_of

ODD_IDS = [
    "a/b",
    "a b",
    "100%",
    "%2F",
    "%",
    "\N{SNOWMAN}/\N{GRINNING FACE}",
    "?query#fragment",
    "a+b&c=d",
    "..%2f..",
    '"quoted"\\',
    "create",
    "x" * 255,
]


async def test_a_create_returns_the_whole_timer(bench: V1Bench) -> None:
    reply = await bench.create_v1(payload={"userId": "user123"}, callbackTimeout="1m30s")
    assert reply.status == 200
    timer = reply.json
    assert timer["id"] == "one"
    assert timer["namespace"] == "default"
    assert timer["executeAt"] == IN_TEN_SECONDS
    assert timer["callbackUrl"] == URL
    assert timer["payload"] == {"userId": "user123"}
    assert timer["retryPolicy"] == {
        "maxRetries": 3,
        "maxAttempts": 4,
        "maxRetryAttemptsDuration": "24h",
        "maxAttemptsDuration": "24h",
        "initialInterval": "30s",
        "backoffMultiplier": 2.0,
        "maxInterval": "10m",
    }
    assert timer["callbackTimeout"] == "1m30s"
    assert timer["callbackTimeoutSeconds"] == 90
    assert timer["status"] == "pending"
    assert timer["attempts"] == []
    assert (timer["executedAt"], timer["lastError"]) == (None, None)
    assert await bench.timer() == timer


@pytest.mark.parametrize(
    ("given", "answered"), [("30s", b"30"), ("1m", b"60"), ("1500ms", b"1.5"), ("1ms", b"0.001")]
)
async def test_whole_seconds_are_answered_as_an_integer(
    bench: V1Bench, given: str, answered: bytes
) -> None:
    reply = await bench.create_v1(callbackTimeout=given)
    assert b'"callbackTimeoutSeconds":%b,' % answered in reply.content


async def test_absent_members_have_their_defaults(bench: V1Bench) -> None:
    timer = (await bench.create_v1()).json
    assert timer["payload"] is None
    assert (timer["callbackTimeout"], timer["callbackTimeoutSeconds"]) == ("30s", 30)
    assert timer["callbackProtocol"] == "answer"


@pytest.mark.parametrize("id", ODD_IDS)
async def test_any_id_works_in_the_path_and_in_the_body(bench: V1Bench, id: str) -> None:
    assert (await bench.create_v1(id)).json["id"] == id
    assert (await bench.timer(id))["id"] == id
    selected = await bench.post("/get", {"timerId": id})
    assert selected.json["id"] == id
    changed = await bench.request("PUT", path_of("default", id), {"payload": 1})
    assert changed.json["payload"] == 1
    changed = await bench.post("/update", {"timerId": id, "payload": 2})
    assert changed.json["payload"] == 2
    assert (await bench.request("DELETE", path_of("default", id))).status == 204
    assert (await bench.post("/create", create_body(id))).status == 200
    assert (await bench.post("/delete", {"timerId": id})).status == 204
    assert error_of(await bench.post("/get", {"timerId": id}))[:2] == (404, "TIMER_NOT_FOUND")


async def test_an_unencoded_slash_belongs_to_the_id(bench: V1Bench) -> None:
    await bench.create_v1("a/b/c")
    reply = await bench.request("GET", f"{BASE}/default/a/b/c")
    assert reply.json["id"] == "a/b/c"


async def test_an_id_that_is_not_utf_8_is_refused(bench: V1Bench) -> None:
    reply = await bench.request("GET", f"{BASE}/default/%ff")
    assert error_of(reply) == (400, "INVALID_INPUT", "timerId must be UTF-8, percent-encoded")


async def test_the_namespace_has_an_older_name(bench: V1Bench) -> None:
    reply = await bench.create_v1(groupId="notifications")
    assert reply.json["namespace"] == "notifications"
    selected = await bench.post("/get", {"timerId": "one", "groupId": "notifications"})
    assert selected.status == 200
    both = await bench.create_v1("two", groupId="notifications", namespace="default")
    assert error_of(both)[1] == "INVALID_INPUT"


async def test_an_unknown_namespace_is_refused(bench: V1Bench) -> None:
    expected = (400, "NAMESPACE_NOT_FOUND", "namespace 'nowhere' does not exist")
    refused = await bench.create_v1(namespace="nowhere")
    assert error_of(refused) == expected
    assert refused.json["details"] == {"field": "namespace"}
    assert error_of(await bench.request("GET", path_of("nowhere", "x"))) == expected
    assert error_of(await bench.request("DELETE", path_of("nowhere", "x"))) == expected
    assert error_of(await bench.request("GET", f"{BASE}?namespace=nowhere")) == expected


async def test_a_name_too_long_for_a_namespace_is_not_repeated(bench: V1Bench) -> None:
    refused = await bench.create_v1(namespace="n" * 100_000)
    message = f"namespace '{'n' * 40}...' does not exist"
    assert error_of(refused) == (400, "NAMESPACE_NOT_FOUND", message)


class TestUpdating:
    async def test_only_given_members_change(self, bench: V1Bench) -> None:
        before = (await bench.create_v1(payload=1, callbackTimeout="5s")).json
        reply = await bench.request(
            "PUT", path_of("default", "one"), {"executeAt": "2030-01-01T02:00:00+01:00"}
        )
        assert reply.status == 200
        after = reply.json
        assert after["executeAt"] == "2030-01-01T01:00:00Z"
        for member in ("payload", "callbackUrl", "callbackTimeout", "retryPolicy"):
            assert after[member] == before[member]

    async def test_parts_of_the_callback_change_one_by_one(self, bench: V1Bench) -> None:
        await bench.create_v1(payload=1)
        changes: list[dict[str, object]] = [
            {"callbackUrl": "http://other.example/"},
            {"callbackTimeoutSeconds": 2.5},
            {"callbackHeaders": {"X-A": "b"}},
            {"retryPolicy": {"maxAttempts": 2}},
        ]
        for change in changes:
            assert (await bench.post("/update", {"timerId": "one", **change})).status == 200
        timer = await bench.timer()
        assert timer["payload"] == 1
        assert timer["callbackUrl"] == "http://other.example/"
        assert (timer["callbackTimeout"], timer["callbackTimeoutSeconds"]) == ("2s500ms", 2.5)
        assert timer["callbackHeaders"] == {"X-A": "b"}
        assert timer["retryPolicy"]["maxRetries"] == 1

    async def test_concurrent_changes_are_not_undone(self) -> None:
        class OvertakenStore(MemoryStore):
            """Another request changes the timer just after it was first read."""

            overtake: Callable[[], Awaitable[object]] | None = None

            async def get(self, key: TimerKey) -> Timer | None:
                timer = await super().get(key)
                overtake, self.overtake = self.overtake, None
                if overtake is not None:
                    await overtake()
                return timer

        store = OvertakenStore()
        bench = await V1Bench(store).open()
        await bench.create_v1(payload=1)
        path, other = path_of("default", "one"), "https://other.example/"
        store.overtake = lambda: bench.request("PUT", path, {"callbackUrl": other})
        assert (await bench.request("PUT", path, {"payload": 2})).status == 200
        timer = await bench.timer()
        assert (timer["payload"], timer["callbackUrl"]) == (2, other)

    async def test_a_timer_that_is_not_pending_stays(self, bench: V1Bench) -> None:
        await bench.create_v1()
        await bench.fail("one")
        reply = await bench.request("PUT", path_of("default", "one"), {"payload": 1})
        assert error_of(reply)[:2] == (409, "TIMER_NOT_PENDING")
        assert reply.json["details"] == {"status": "failed"}
        reply = await bench.request("DELETE", path_of("default", "one"))
        assert error_of(reply)[:2] == (409, "TIMER_NOT_PENDING")

    async def test_nothing_to_update_is_refused(self, bench: V1Bench) -> None:
        await bench.create_v1()
        status, code, message = error_of(await bench.post("/update", {"timerId": "one"}))
        assert (status, code) == (400, "INVALID_INPUT")
        assert message.startswith("body has nothing to update: give executeAt, executeIn, call")


class TestRetryPolicy:
    async def test_both_spellings(self, bench: V1Bench) -> None:
        policy = {"maxAttempts": 6, "maxAttemptsDuration": "1h30m", "initialInterval": "500ms"}
        timer = (await bench.create_v1(retryPolicy=policy)).json
        assert timer["retryPolicy"] == {
            "maxRetries": 5,
            "maxAttempts": 6,
            "maxRetryAttemptsDuration": "1h30m",
            "maxAttemptsDuration": "1h30m",
            "initialInterval": "500ms",
            "backoffMultiplier": 2.0,
            "maxInterval": "10m",
        }

    async def test_what_is_read_can_be_written_back(self, bench: V1Bench) -> None:
        policy = {"maxRetries": 6, "maxAttemptsDuration": "90m", "initialInterval": "500ms"}
        before = (await bench.create_v1(retryPolicy=policy, callbackTimeoutSeconds=2.5)).json
        members = ("retryPolicy", "callbackTimeout", "callbackTimeoutSeconds", "callbackUrl")
        body = {member: before[member] for member in members}
        reply = await bench.request("PUT", path_of("default", "one"), body)
        assert reply.status == 200
        assert {member: reply.json[member] for member in members} == body
        again = await bench.create_v1(**body)
        assert (again.status, again.headers["timer-existence"]) == (200, "existing")

    async def test_without_a_policy_the_namespaces_applies(self, bench: V1Bench) -> None:
        timer = (await bench.create_v1(namespace="small")).json
        assert timer["retryPolicy"]["maxRetries"] == 7
        assert timer["retryPolicy"]["initialInterval"] == "100ms"

    async def test_absent_members_are_the_namespaces(self, bench: V1Bench) -> None:
        policy = {"maxRetries": 1}
        timer = (await bench.create_v1(namespace="small", retryPolicy=policy)).json
        assert timer["retryPolicy"]["maxRetries"] == 1
        assert timer["retryPolicy"]["initialInterval"] == "100ms"


async def test_metadata_is_kept_and_returned(bench: V1Bench) -> None:
    timer = (await bench.create_v1(metadata={"team": "checkout"})).json
    assert timer["metadata"] == {"team": "checkout"}
    assert (await bench.create_v1(metadata={"team": "other"})).status == 409
    assert "metadata" not in (await bench.create_v1("plain")).json


async def test_the_platform_api_sees_the_same_timer(bench: V1Bench) -> None:
    created = await bench.create(callback={"type": "http", "url": URL, "headers": {"X-A": "b"}})
    timer = await bench.timer(created.data["id"])
    assert timer["callbackProtocol"] == "status"
    assert timer["callbackHeaders"] == {"X-A": "b"}
    assert timer["retryPolicy"] is None
