"""Bulk operations: what they match and change, and what a repeated batch leaves alone."""

from typing import Any

import pytest
from msgspec.structs import replace

from duetime.domain.bulk import BulkOperation, BulkStatus
from duetime.domain.errors import StoreUnavailable
from duetime.domain.limits import MAX_RUNNING_OPERATIONS
from duetime.service.bulk_operations import BATCH_SIZE
from duetime.stores.memory import MemoryStore
from tests.unit.api.asgi_client import Reply
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of

OPERATIONS = "/api/v1/operations"
NAMESPACES = "/api/v1/namespaces"


async def start(bench: V1Bench, **body: object) -> Reply:
    return await bench.request("POST", OPERATIONS, body)


async def operation(bench: V1Bench, started: Reply) -> Any:
    return (await bench.request("GET", f"{OPERATIONS}/{started.json['id']}")).json


async def finish(bench: V1Bench, started: Reply) -> Any:
    """Run the operation to its end, and answer it."""
    assert started.status == 202, started.content
    assert started.headers["location"] == f"{OPERATIONS}/{started.json['id']}"
    while (ended := await operation(bench, started))["status"] == "running":
        await bench.bulk_runner.step()
    assert ended["finishedAt"] is not None
    return ended


async def run(bench: V1Bench, **body: object) -> Any:
    return await finish(bench, await start(bench, **body))


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
    assert (await bench.timer("t7"))["deliveryId"] != before


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
    bench.bulk_runner.wake()
    await bench.bulk_runner.step()
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


async def test_operations_are_listed_newest_first(bench: V1Bench) -> None:
    first = await start(bench, action="cancel", all=True)
    bench.clock.advance(1)
    second = await start(bench, action="cancel", all=True)
    listed = (await bench.request("GET", f"{OPERATIONS}?limit=1")).json["operations"]
    assert [each["id"] for each in listed] == [second.json["id"]]
    listed = (await bench.request("GET", OPERATIONS)).json["operations"]
    assert [each["id"] for each in listed] == [second.json["id"], first.json["id"]]


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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "action is required"),
        ({"action": "x", "all": True}, "action must be 'cancel', 'redrive' or 'reschedule'"),
        ({"action": "cancel"}, "filter must have a condition; for all timers say all: true"),
        (
            {"action": "cancel", "filter": {}},
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
            {"action": "cancel", "filter": {"dueAfter": "now"}},
            "filter.dueAfter must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z",
        ),
        ({"action": "cancel", "filter": {"id": "x"}}, "filter.id is not a known field"),
        ({"action": "cancel", "all": True, "moveBy": "1h"}, "moveBy is for the action reschedule"),
        ({"action": "reschedule", "all": True}, "executeAt or moveBy is needed to reschedule"),
        (
            {"action": "reschedule", "all": True, "moveBy": "1x"},
            'moveBy must be a duration such as "500ms", "30s", "10m" or "1h30m", or one after a',
        ),
        ({"action": "reschedule", "all": True, "moveBy": "0s"}, "moveBy must not be zero"),
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


async def test_an_unknown_namespace_is_refused(bench: V1Bench) -> None:
    reply = await start(bench, action="cancel", all=True, namespace="unknown")
    assert error_of(reply)[1] == "NAMESPACE_NOT_FOUND"


async def test_a_namespace_is_deleted_with_its_finished_timers(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    refused = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    assert error_of(refused)[:2] == (409, "NAMESPACE_NOT_EMPTY")
    await start(bench, action="cancel", all=True, namespace="notifications")
    await bench.bulk_runner.step()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    again = await bench.request("DELETE", f"{NAMESPACES}/notifications")
    assert again.json["id"] == started.json["id"]
    ended = await finish(bench, started)
    assert (ended["action"], ended["changed"]) == ("delete-namespace", 1)
    assert "notifications" not in [each.name for each in await bench.store.namespaces()]
    gone = await bench.create_v1("two", namespace="notifications")
    assert error_of(gone)[1] == "NAMESPACE_NOT_FOUND"


async def test_pending_timers_of_a_namespace_are_deleted_by_force(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    late = await bench.create_v1("two", namespace="notifications")
    assert error_of(late) == (
        400,
        "NAMESPACE_NOT_FOUND",
        "namespace 'notifications' is being deleted",
    )
    assert (await finish(bench, started))["changed"] == 1


async def test_a_namespace_is_deleted_once_its_timers_have_been_delivered(bench: V1Bench) -> None:
    await bench.create_v1("one", namespace="notifications")
    bench.clock.advance(10)
    await bench.claim_all()
    started = await bench.request("DELETE", f"{NAMESPACES}/notifications?force=true")
    bench.bulk_runner.wake()
    await bench.bulk_runner.step()
    assert (await operation(bench, started))["status"] == "running"
    aborted = await bench.request("DELETE", f"{OPERATIONS}/{started.json['id']}")
    assert aborted.json["status"] == "aborted"
    later = create_body("two", namespace="notifications", executeAt="2031-01-01T00:00:00Z")
    assert (await bench.post("", later)).status == 200


async def test_the_default_namespace_stays(bench: V1Bench) -> None:
    reply = await bench.request("DELETE", f"{NAMESPACES}/default?force=true")
    assert error_of(reply)[1:] == ("INVALID_INPUT", "namespace 'default' cannot be deleted")
    reply = await bench.request("DELETE", f"{NAMESPACES}/unknown")
    assert error_of(reply)[:2] == (404, "NAMESPACE_NOT_FOUND")
    reply = await bench.request("DELETE", f"{NAMESPACES}/small?force=yes")
    assert error_of(reply)[2] == "force must be one of true, false"
