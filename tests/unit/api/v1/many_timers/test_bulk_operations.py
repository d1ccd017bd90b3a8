"""Bulk operations: what they match and change, and what a repeated batch leaves alone."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from msgspec.structs import replace

from duetime.domain.bulk import BulkOperation, BulkStatus, TimerFilter
from duetime.domain.errors import StorageFull, StoreUnavailable
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.limits import MAX_RUNNING_OPERATIONS
from duetime.domain.timer import Timer
from duetime.domain.transitions import Redrive
from duetime.service.bulk.matching import BATCH_SIZE
from duetime.stores.memory import MemoryStore
from tests.unit.api.v1.many_timers.operations import OPERATIONS, finish, operation, run, start, step
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of


async def statuses(bench: V1Bench) -> dict[str, str]:
    listed = (await bench.request("GET", f"{BASE}?limit=1000")).json["timers"]
    return {timer["id"]: timer["status"] for timer in listed}


async def test_timers_are_canceled_by_their_ids(bench: V1Bench) -> None:
    for name in ("a-1", "a-2", "b-1"):
        await bench.create_v1(name)
    counted = await start(bench, action="cancel", filter={"idPrefix": "a-"}, dryRun=True)
    assert (counted.status, counted.json) == (200, {"matched": 2, "matchedIsMinimum": False})
    started = await start(bench, action="cancel", filter={"idPrefix": "a-"})
    assert (started.json["status"], started.json["matched"]) == ("running", 2)
    assert started.json["filter"] == {"idPrefix": "a-"}
    ended = await finish(bench, started)
    assert (ended["scanned"], ended["changed"], ended["skipped"]) == (3, 2, 0)
    assert await statuses(bench) == {"a-1": "canceled", "a-2": "canceled", "b-1": "pending"}


@pytest.mark.parametrize(
    ("matching", "changed"),
    [
        ({"dueBefore": "2030-01-01T00:00:10Z"}, set()),
        ({"dueAfter": "2030-01-01T00:00:11Z"}, {"later"}),
        ({"dueBefore": "2030-01-01T00:00:11Z", "status": "pending"}, {"one", "other"}),
        ({"endpoint": "https://example.com"}, {"one", "later"}),
        ({"endpoint": "example.com:443"}, {"one", "later"}),
        ({"endpoint": "EXAMPLE.com", "idPrefix": "l"}, {"later"}),
        ({"endpoint": "https://example.com/"}, {"one", "later"}),
        ({"endpoint": "http://example.com"}, set()),
        ({"endpoint": "other.example.com:8080"}, {"other"}),
        ({"errorContains": "HTTP"}, set()),
    ],
)
async def test_a_filter_matches_what_meets_every_condition(
    bench: V1Bench, matching: dict[str, str], changed: set[str]
) -> None:
    await bench.create_v1("one")
    await bench.create_v1("later", executeAt="2030-01-01T00:00:11Z")
    await bench.create_v1("other", callbackUrl="http://other.example.com:8080/x")
    ended = await run(bench, action="cancel", filter=matching)
    assert (ended["matched"], ended["changed"]) == (len(changed), len(changed))
    canceled = {name for name, status in (await statuses(bench)).items() if status == "canceled"}
    assert canceled == changed


async def test_failed_timers_are_redriven_by_their_errors(bench: V1Bench) -> None:
    for name in ("one", "two", "three"):
        await bench.create_v1(name)
    await bench.fail("one", "two", error="HTTP 503")
    await bench.fail("three", error="timed out")
    ended = await run(bench, action="redrive", filter={"errorContains": "503"})
    assert ended["changed"] == 2
    assert await statuses(bench) == {"one": "pending", "two": "pending", "three": "failed"}
    assert bench.wakeups.announced


async def test_timers_are_moved_by_a_duration_each_once(bench: V1Bench) -> None:
    """Moved timers come later in the order, where the scan meets them again."""
    many = BATCH_SIZE + 50
    for start_at in range(0, many, 50):
        names = [f"t{number}" for number in range(start_at, start_at + 50)]
        await bench.post("/batch", {"timers": [create_body(name) for name in names]})
    before = (await bench.timer("t7"))["deliveryId"]
    ended = await run(bench, action="reschedule", all=True, moveBy="1h")
    assert (ended["moveBy"], ended["changed"], ended["skipped"]) == ("1h", many, 0)
    listed = (await bench.request("GET", f"{BASE}?limit=1000")).json["timers"]
    assert {timer["executeAt"] for timer in listed} == {"2030-01-01T01:00:10Z"}
    after = (await bench.timer("t7"))["deliveryId"]
    assert after != before
    assert UUID(after).version == UUID(before).version == 7


async def test_a_timer_moved_into_the_past_is_due_at_once(bench: V1Bench) -> None:
    await bench.create_v1()
    ended = await run(bench, action="reschedule", all=True, moveBy="-2h30m")
    assert (ended["moveBy"], ended["changed"]) == ("-2h30m", 1)
    assert (await bench.timer())["executeAt"] == "2030-01-01T00:00:00Z"


async def test_timers_are_moved_to_an_instant(bench: V1Bench) -> None:
    await bench.create_v1()
    at = "2031-01-01T00:00:00Z"
    ended = await run(bench, action="reschedule", filter={"idPrefix": "o"}, executeAt=at)
    assert (ended["executeAt"], ended["changed"]) == (at, 1)
    assert (await bench.timer())["executeAt"] == at


async def test_timers_that_were_created_later_are_left_alone(bench: V1Bench) -> None:
    await bench.create_v1("before")
    started = await start(bench, action="cancel", all=True)
    bench.clock.advance(1)
    await bench.create_v1("after")
    assert (await finish(bench, started))["changed"] == 1
    assert await statuses(bench) == {"before": "canceled", "after": "pending"}


class ProgressLosingStore(MemoryStore):
    """A store that goes away after the changes and before the progress is written."""

    loses_progress = True

    async def replace_operation(self, operation: BulkOperation) -> bool:
        if self.loses_progress:
            raise StoreUnavailable("away")
        return await super().replace_operation(operation)


async def test_a_batch_that_is_repeated_changes_no_timer_twice() -> None:
    store = ProgressLosingStore()
    bench = await V1Bench(store).open()
    await bench.create_v1("one")
    await bench.create_v1("two", executeAt="2030-01-01T00:00:20Z")
    started = await start(bench, action="reschedule", all=True, moveBy="5s")
    with pytest.raises(StoreUnavailable):
        await bench.bulk_runner.step()
    assert (await bench.timer("one"))["executeAt"] == "2030-01-01T00:00:15Z"
    store.loses_progress = False
    ended = await finish(bench, started)
    assert (ended["scanned"], ended["changed"], ended["skipped"]) == (2, 0, 0)
    assert (await bench.timer("one"))["executeAt"] == "2030-01-01T00:00:15Z"
    assert (await bench.timer("two"))["executeAt"] == "2030-01-01T00:00:25Z"


async def test_an_operation_is_aborted_once(bench: V1Bench) -> None:
    await bench.create_v1()
    started = await start(bench, action="cancel", all=True)
    path = f"{OPERATIONS}/{started.json['id']}"
    for _ in range(2):
        aborted = await bench.request("DELETE", path)
        assert (aborted.status, aborted.json["status"]) == (200, "aborted")
    await step(bench)
    assert await statuses(bench) == {"one": "pending"}


async def test_an_ended_operation_is_not_aborted(bench: V1Bench) -> None:
    started = await start(bench, action="cancel", all=True)
    await finish(bench, started)
    reply = await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")
    assert error_of(reply) == (
        409,
        "OPERATION_NOT_RUNNING",
        "cannot abort operation with status 'completed'",
    )


async def test_progress_of_an_aborted_operation_is_not_written(bench: V1Bench) -> None:
    started = await start(bench, action="cancel", all=True)
    (running,) = await bench.store.operations(running=True, limit=9)
    await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")
    progress = replace(running, version=1, status=BulkStatus.COMPLETED)
    assert not await bench.store.replace_operation(progress)
    assert (await operation(bench, started))["status"] == "aborted"


async def test_a_team_sees_its_operations_however_many_others_there_are(bench: V1Bench) -> None:
    body = {"namespace": "small", "action": "cancel", "all": True}
    own = (await bench.request("POST", OPERATIONS, body)).json["id"]
    operation = await bench.store.operation(own)
    assert operation is not None
    for number in range(1_000):
        theirs = replace(
            operation,
            id=str(number),
            namespace="default",
            created_at=plus_ms(operation.created_at, 1 + number),
        )
        await bench.store.add_operation(theirs)
    key = await bench.issue_key("read", namespaces=["small", "to come"])
    listed = (await bench.request("GET", OPERATIONS, key=key)).json["operations"]
    assert [each["id"] for each in listed] == [own]


async def test_operations_are_listed_newest_first(bench: V1Bench) -> None:
    first = await start(bench, action="cancel", all=True)
    bench.clock.advance(1)
    second = await start(bench, action="cancel", all=True)
    listed = (await bench.request("GET", f"{OPERATIONS}?limit=1")).json["operations"]
    assert [each["id"] for each in listed] == [second.json["id"]]
    listed = (await bench.request("GET", OPERATIONS)).json["operations"]
    assert [each["id"] for each in listed] == [second.json["id"], first.json["id"]]


async def test_an_operation_is_forgotten_a_week_after_its_end(bench: V1Bench) -> None:
    ended = await run(bench, action="cancel", all=True)
    bench.clock.advance(7 * 86_400)
    for seconds, status in ((0, 200), (60, 404)):
        bench.clock.advance(seconds)
        await bench.store.mark_clock_believed(bench.clock.now())
        await step(bench)
        assert (await bench.request("GET", f"{OPERATIONS}/{ended['id']}")).status == status


async def test_a_clock_that_is_ahead_forgets_no_operation(bench: V1Bench) -> None:
    ended = await run(bench, action="cancel", all=True)
    await bench.store.mark_clock_believed(bench.clock.now())
    bench.clock.jump_wall(31 * 86_400)
    for _ in range(3):
        bench.clock.advance(60)
        await step(bench)
    assert (await bench.request("GET", f"{OPERATIONS}/{ended['id']}")).status == 200


async def test_an_unknown_operation_is_not_found(bench: V1Bench) -> None:
    for name in ("unknown", "%00", "x" * 300):
        for method in ("GET", "DELETE"):
            reply = await bench.request(method, f"{OPERATIONS}/{name}")
            assert error_of(reply) == (404, "OPERATION_NOT_FOUND", "operation not found")


async def test_only_so_many_operations_run_at_once(bench: V1Bench) -> None:
    for _ in range(MAX_RUNNING_OPERATIONS):
        assert (await start(bench, action="cancel", all=True)).status == 202
    reply = await start(bench, action="cancel", all=True)
    assert error_of(reply)[:2] == (429, "TOO_MANY_OPERATIONS")
    assert int(reply.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "action is required"),
        ({"action": "x", "all": True}, "action must be 'cancel', 'redrive', 'resch"),
        ({"action": "cancel"}, "filter must have a condition; for all timers say all: true"),
        (
            {"action": "cancel", "filter": {}},
            "filter must have a condition; for all timers say all: true",
        ),
        (
            {"action": "cancel", "filter": {"status": "pending"}},
            "filter must have a condition; for all timers say all: true",
        ),
        (
            {"action": "cancel", "filter": {"status": "failed"}},
            "filter.status must be 'pending' for the action 'cancel'",
        ),
        (
            {"action": "cancel", "filter": {"idPrefix": ""}},
            "filter.idPrefix must have 1 to 1024 characters, or be left out",
        ),
        (
            {"action": "cancel", "filter": {"metadata": {"key": "", "value": "1"}}},
            "filter.metadata.key must have 1 to 1024 characters, or be left out",
        ),
        (
            {"action": "cancel", "filter": {"metadata": {"key": "a"}}},
            "filter.metadata.value is required",
        ),
        (
            {"action": "run-now", "filter": {"status": "failed"}},
            "filter.status must be 'pending' for the action 'run-now'",
        ),
        ({"action": "run-now"}, "filter must have a condition; for all timers say all: true"),
        ({"action": "run-now", "all": True, "moveBy": "1h"}, "moveBy is for the action reschedule"),
        (
            {"action": "cancel", "filter": {"dueAfter": "now"}},
            "filter.dueAfter must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z",
        ),
        ({"action": "cancel", "filter": {"id": "x"}}, "filter.id is not a known field"),
        ({"action": "cancel", "all": True, "moveBy": "1h"}, "moveBy is for the action reschedule"),
        ({"action": "reschedule", "all": True}, "executeAt or moveBy is needed to reschedule"),
        (
            {"action": "reschedule", "all": True, "moveBy": "1x"},
            'moveBy must be a duration such as "500ms", "30s", "1h30m" or "7d", or one after a',
        ),
        ({"action": "reschedule", "all": True, "moveBy": "0s"}, "moveBy must not be zero"),
        ({"action": "reschedule", "all": True, "moveBy": "40000d"}, "moveBy is too long: at most"),
        ({"action": "reschedule", "all": True, "moveBy": "-40000d"}, "moveBy is too long: at most"),
        (
            {"action": "reschedule", "all": True, "executeAt": "2029-01-01T00:00:00Z"},
            "executeAt must be in the future",
        ),
    ],
)
async def test_a_wrong_request_is_refused_and_changes_nothing(
    bench: V1Bench, body: dict[str, object], message: str
) -> None:
    status, code, said = error_of(await bench.request("POST", OPERATIONS, body))
    assert (status, code) == (400, "INVALID_INPUT")
    assert said.startswith(message)
    assert not await bench.store.operations(running=False, limit=1)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://[",
        "example.com:99999",
        "example.com:x",
        "http://\u2100.example",
        "ftp://example.com",
        "//",
        "https://example.com/due",
        "https://example.com?x",
        "me@example.com",
        "::1",
    ],
)
async def test_an_endpoint_that_no_timer_can_have_is_refused(bench: V1Bench, endpoint: str) -> None:
    await bench.create_v1("one")
    reply = await start(bench, action="cancel", filter={"endpoint": endpoint})
    assert error_of(reply) == (
        400,
        "INVALID_INPUT",
        "filter.endpoint must be a host or an origin without a path, such as "
        "https://app.example.com",
    )


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://us[er:\u2100@example.com/", "example.com"),
        ("http://[0:0::1]:80/", "http://[::1]"),
        ("http://b\u00fccher.example/", "xn--bcher-kva.example:80"),
        ("http://xn--bcher-kva.example/", "B\u00dcCHER.example"),
        ("HTTP://example.com?to=https://other.example", "http://example.com"),
    ],
)
async def test_an_endpoint_matches_however_it_is_spelt(
    bench: V1Bench, url: str, endpoint: str
) -> None:
    await bench.create_v1("one", callbackUrl=url)
    await bench.create_v1("two")
    ended = await run(bench, action="cancel", filter={"endpoint": endpoint, "idPrefix": "one"})
    assert (ended["changed"], ended["skipped"]) == (1, 0)


async def test_an_operation_that_cannot_go_on_fails_and_the_others_end(
    bench: V1Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.create_v1("one")
    other = await start(bench, action="cancel", filter={"idPrefix": "o"})
    broken = await start(bench, action="cancel", filter={"idPrefix": "x"})
    matches = TimerFilter.matches

    def fails_for_x(self: TimerFilter, timer: Timer) -> bool:
        assert self.id_prefix != "x"
        return matches(self, timer)

    monkeypatch.setattr(TimerFilter, "matches", fails_for_x)
    ended = await finish(bench, broken)
    assert (ended["status"], ended["error"]) == (
        "failed",
        "internal error; the log of the service has more",
    )
    assert (await finish(bench, other))["changed"] == 1


class FullStore(MemoryStore):
    """A store that has no room for redriven timers."""

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        raise StorageFull("the disk is nearly full")


async def test_an_operation_that_has_to_wait_does_not_hold_up_another() -> None:
    bench = await V1Bench(FullStore()).open()
    await bench.create_v1("good")
    await bench.create_v1("bad")
    await bench.fail("bad")
    cancel = await start(bench, action="cancel", all=True)
    bench.clock.advance(1)
    redrive = await start(bench, action="redrive", all=True)
    await bench.bulk_runner.step()
    assert (await operation(bench, cancel))["status"] == "completed"
    with pytest.raises(StorageFull):
        await bench.bulk_runner.step()
    assert (await operation(bench, redrive))["status"] == "running"


async def test_an_unknown_namespace_is_refused(bench: V1Bench) -> None:
    reply = await start(bench, action="cancel", all=True, namespace="unknown")
    assert error_of(reply)[1] == "NAMESPACE_NOT_FOUND"
