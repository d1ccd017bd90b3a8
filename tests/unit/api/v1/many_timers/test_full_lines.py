"""Full lines: what an export gives out, an import restores to the letter."""

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from duetime.api.v1.full.types import (
    FullAttempt,
    FullBusCallback,
    FullHttpCallback,
    FullNatsCallback,
    FullTimer,
)
from duetime.domain import transitions
from duetime.domain.callback import BusCallback, HttpCallback, NatsCallback
from duetime.domain.keys import Epoch, TimerKey
from duetime.domain.limits import MAX_JSON_DEPTH
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus
from duetime.testing.timers import make_timer
from tests.unit.api.asgi_client import make_api_rules
from tests.unit.api.v1.many_timers.full_lines import (
    OTHER_CALLBACKS,
    at,
    exported,
    line,
    namespace_line,
    one,
    restore,
    rich,
)
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body


def test_a_full_line_has_every_member_that_a_timer_has() -> None:
    """A member that is missing here would be lost in copies: add it to the full lines."""
    derived = {"shard", "timer_uuid", "key", "epoch"}
    given = {"namespace", "id", "metadata_text"}
    assert set(FullTimer.__struct_fields__) - given == set(Timer.__struct_fields__) - derived
    for full, held in (
        (FullHttpCallback, HttpCallback),
        (FullNatsCallback, NatsCallback),
        (FullBusCallback, BusCallback),
    ):
        names = {name.removesuffix("_ms") for name in held.__struct_fields__}
        assert set(full.__struct_fields__) - {"payload_text"} == names - {"sealed"}
    names = {name.removeprefix("recorded_") for name in Attempt.__struct_fields__}
    assert set(FullAttempt.__struct_fields__) == names


async def test_an_export_restores_every_member_elsewhere(bench: V1Bench) -> None:
    finished = [status for status in TimerStatus if status.is_finished]
    timers = [
        *(rich(status.label, status) for status in finished),
        rich("pending", TimerStatus.PENDING),
        make_timer("plain", execute_at=at(500)),
        make_timer("retried", execute_at=at(500), retry_policy=RetryPolicy()),
        *(
            rich(f"other-{n}", TimerStatus.COMPLETED, callback=each)
            for n, each in enumerate(OTHER_CALLBACKS)
        ),
    ]
    await bench.store.restore(timers)
    fulls = await exported(bench)
    assert len(fulls) == len(timers)
    elsewhere = await V1Bench().open()
    answer = await restore(elsewhere, *map(line, fulls))
    assert [error["message"] for error in answer["errors"]] == []
    assert (answer["created"], answer["invalid"]) == (len(timers), 0)
    assert [await elsewhere.store.get(timer.key) for timer in timers] == timers
    assert await exported(elsewhere) == fulls
    counts = {"pending": 3, "executing": 0, "completed": 7, "failed": 1, "canceled": 1}
    assert answer["restored"] == {"namespaces": 0, "existingNamespaces": 0, "timers": counts}


async def test_the_pages_of_an_export_follow_each_other(bench: V1Bench) -> None:
    await bench.store.restore([rich(f"timer {n}", execute_at=at(n - 99)) for n in range(5)])
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        query = f"?limit=2&cursor={cursor}" if cursor else "?limit=2"
        reply = await bench.request("GET", f"{BASE}/export{query}")
        ids += [timer["id"] for timer in reply.json["timers"]]
        cursor = reply.json["nextCursor"]
    assert ids == [f"timer {n}" for n in range(5)]


async def test_a_timer_with_export_for_its_name_can_still_be_read(bench: V1Bench) -> None:
    await bench.create_v1("export")
    assert (await bench.timer("export"))["id"] == "export"


async def test_an_executing_timer_is_restored_as_lost(bench: V1Bench) -> None:
    executing = rich("e", TimerStatus.EXECUTING, epoch=Epoch(3), claimed_at=at(-1))
    full = {**await one(bench), "id": "e", "status": "executing"}
    full["claimedAt"] = full.pop("executedAt")
    answer = await restore(bench, line(full))
    assert answer["restored"]["timers"]["pending"] == 1
    timer = await bench.store.get(executing.key)
    assert timer is not None
    assert (timer.status, timer.attempts[-1].outcome) == (TimerStatus.PENDING, "interrupted")


async def test_a_restored_pending_timer_wakes_the_engine(bench: V1Bench) -> None:
    full = {**await one(bench), "status": "pending"}
    del full["executedAt"]
    bench.wakeups.announced.clear()
    await restore(bench, line(full))
    timer = await bench.store.get(TimerKey("default", "another"))
    assert timer is not None
    assert bench.wakeups.announced == [(timer.shard, timer.due_at)]


async def test_repeats_are_recognised_whatever_became_of_the_timer(bench: V1Bench) -> None:
    timers = [rich("a", TimerStatus.PENDING), rich("b"), rich("c", TimerStatus.CANCELED)]
    await bench.store.restore(timers)
    lines = list(map(line, await exported(bench)))
    await bench.store.cancel_if_pending(timers[0].key, at(1))
    answer = await restore(bench, *lines, *lines)
    assert (answer["created"], answer["existing"], answer["conflicts"]) == (0, 6, 0)


async def test_the_first_of_two_lines_for_a_timer_counts(bench: V1Bench) -> None:
    first = await one(bench)
    other = {**first, "callback": {**first["callback"], "url": "https://example.com/other"}}
    answer = await restore(bench, line(first), line(other), line(first))
    assert (answer["created"], answer["existing"], answer["conflicts"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"createdAt": "2024-01-01T00:00:00Z"}, ["createdAt"]),
        ({"executeAt": "2024-01-01T00:00:00Z"}, ["executeAt"]),
        ({"retryPolicy": {"maxRetries": 9}}, ["retryPolicy"]),
        ({"metadata": {"other": 1}}, ["metadata"]),
        ({"callback": {"type": "bus"}}, ["callbackUrl"]),
    ],
)
async def test_a_different_timer_is_left_alone(
    bench: V1Bench, changes: dict[str, object], fields: list[str]
) -> None:
    full = {**await one(bench), "id": "rich", "status": "completed"}
    before = await bench.store.get(TimerKey("default", "rich"))
    answer = await restore(bench, line({**full, **changes}))
    assert (answer["created"], answer["conflicts"]) == (0, 1)
    (error,) = answer["errors"]
    assert (error["error"], error["details"]) == ("TIMER_CONFLICT", {"fields": fields})
    assert (error["namespace"], error["id"]) == ("default", "rich")
    assert await bench.store.get(TimerKey("default", "rich")) == before


async def test_a_restored_idempotency_key_is_recognised(bench: V1Bench) -> None:
    body = {
        "execute_in": "10s",
        "callback": {"type": "http", "url": "https://example.com/"},
        "idempotency_key": "once",
    }
    relative = {"id": "relative", "executeIn": "90m", "callbackUrl": "https://example.com/"}
    first = await bench.request("POST", "/timers", body)
    assert (await bench.post("", relative)).status == 200
    elsewhere = await V1Bench().open()
    elsewhere.clock.jump_wall(60)
    await restore(elsewhere, *map(line, await exported(bench)))
    again = await elsewhere.request("POST", "/timers", body)
    assert (again.status, again.json["data"]["id"]) == (200, first.json["data"]["id"])
    repeated = await elsewhere.post("", relative)
    assert repeated.headers["timer-existence"] == "existing"


async def test_namespaces_are_created_before_their_timers(bench: V1Bench) -> None:
    listed = (await bench.request("GET", "/api/v1/namespaces")).json["namespaces"]
    await bench.create_v1("n", namespace="notifications")
    await bench.create_v1("s", namespace="small")
    elsewhere = await ApiWithoutNamespaces.fresh()
    timers = [*await exported(bench, "notifications"), *await exported(bench, "small")]
    lines = [{"full": 1, "namespace": each} for each in listed]
    answer = await restore(elsewhere, *lines, *map(line, timers))
    assert (answer["created"], answer["restored"]["namespaces"]) == (2, 3)
    assert await elsewhere.store.namespaces() == await bench.store.namespaces()
    assert (await elsewhere.request("GET", "/api/v1/namespaces")).json["namespaces"] == listed
    again = await restore(elsewhere, *lines)
    assert (again["conflicts"], again["restored"]["namespaces"]) == (0, 3)
    # Only `default` was there the first time.
    imports = (answer, again)
    assert [each["restored"]["existingNamespaces"] for each in imports] == [1, 3]


class ApiWithoutNamespaces(V1Bench):
    """Only the namespace `default` exists."""

    @classmethod
    async def fresh(cls) -> "ApiWithoutNamespaces":
        bench = cls()
        await super(V1Bench, bench).open()
        return bench


async def test_a_namespace_without_options_gets_those_of_the_copy(bench: V1Bench) -> None:
    given = {"name": "default", "numShards": 16, "retention": "7d", "concurrency": 3}
    given["maxPending"] = 500
    answer = await restore(bench, namespace_line(**given))
    restored = answer["restored"]
    assert (restored["namespaces"], restored["existingNamespaces"]) == (1, 0)
    options = NamespaceOptions(retention_seconds=7 * 86_400, concurrency=3, max_pending=500)
    assert Namespace("default", 16, options) in await bench.store.namespaces()
    other = {**given, "concurrency": 4, "numShards": 8}
    answer = await restore(bench, namespace_line(**other))
    assert (answer["conflicts"], answer["restored"]["namespaces"]) == (1, 0)
    (error,) = answer["errors"]
    assert error["error"] == "NAMESPACE_CONFLICT"
    assert error["details"] == {"fields": ["numShards", "concurrency"]}
    assert (error["namespace"], "id" in error) == ("default", False)
    assert Namespace("default", 16, options) in await bench.store.namespaces()


async def test_a_tenant_of_the_bus_is_restored_under_its_name(bench: V1Bench) -> None:
    await restore(bench, namespace_line(name="tenant $7 (ä)", numShards=16))
    assert Namespace("tenant $7 (ä)") in await bench.store.namespaces()


async def test_a_payload_may_be_called_full(bench: V1Bench) -> None:
    answer = await restore(bench, {"bad": 1}, create_body("a", payload={"full": 1}))
    assert (answer["created"], answer["invalid"]) == (1, 1)
    assert "restored" not in answer


async def test_a_payload_as_deep_as_the_bus_allows_is_restored(bench: V1Bench) -> None:
    callback = BusCallback(payload=_nested(MAX_JSON_DEPTH))
    deep = rich("deep", TimerStatus.COMPLETED, callback=callback)
    await bench.store.restore([deep])
    elsewhere = await V1Bench().open()
    fulls = await exported(bench)
    answer = await restore(elsewhere, *map(line, fulls))
    assert (answer["created"], answer["errors"]) == (1, [])
    full = json.decode(fulls[0])
    deeper = {**full["callback"], "payload": _nested(MAX_JSON_DEPTH + 1)}
    answer = await restore(elsewhere, line({**full, "id": "deeper", "callback": deeper}))
    assert answer["errors"][0]["message"].startswith("timer.callback.payload is nested deeper")


def _nested(levels: int) -> Raw:
    return Raw(b"[" * levels + b"]" * levels)


async def test_a_full_line_may_be_longer_than_others() -> None:
    bench = await V1Bench(api_rules=make_api_rules(max_body_bytes=2_000)).open()
    answers = [replace(rich().attempts[0], number=n, answer="x" * 200) for n in range(1, 21)]
    long = rich(attempts=tuple(answers))
    await bench.store.restore([long])
    elsewhere = await V1Bench(api_rules=make_api_rules(max_body_bytes=2_000)).open()
    answer = await restore(elsewhere, *map(line, await exported(bench)))
    assert answer["created"] == 1
    assert await elsewhere.store.get(long.key) == transitions.restored(long)
