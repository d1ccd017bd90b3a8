"""Lists by cursor."""

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of
from tests.unit.service.service_bench import DamagedStore


async def page(bench: V1Bench, **query: object) -> Any:
    reply = await bench.request("GET", f"{BASE}?{urlencode(query)}")
    assert reply.status == 200, reply.content
    return reply.json


async def fill(bench: V1Bench, count: int) -> None:
    timers = [
        create_body(f"timer {number}", executeAt=f"2030-01-01T00:{number // 2:02}:30Z")
        for number in range(count)
    ]
    assert (await bench.post("/batch", {"timers": timers})).status == 200


async def all_ids(bench: V1Bench, **query: object) -> list[str]:
    ids: list[str] = []
    answer = await page(bench, **query)
    while True:
        ids += [timer["id"] for timer in answer["timers"]]
        if answer["nextCursor"] is None:
            return ids
        answer = await page(bench, cursor=answer["nextCursor"], **query)


async def test_the_pages_together_have_all_timers_in_order(bench: V1Bench) -> None:
    await fill(bench, 25)
    ids = await all_ids(bench, limit=7)
    assert len(ids) == len(set(ids)) == 25
    listed = (await page(bench))["timers"]
    assert [timer["executeAt"] for timer in listed] == sorted(
        timer["executeAt"] for timer in listed
    )
    assert await all_ids(bench, limit=7, order="desc") == ids[::-1]


async def test_a_full_last_page_has_no_cursor(bench: V1Bench) -> None:
    await fill(bench, 4)
    assert (await page(bench, limit=4))["nextCursor"] is None
    assert (await page(bench, limit=3))["nextCursor"] is not None


@pytest.mark.parametrize("path", ["", "/export"])
@pytest.mark.parametrize("limit", range(1, 8))
async def test_unreadable_timers_are_counted_once(limit: int, path: str) -> None:
    store = DamagedStore()
    bench = await V1Bench(store).open()
    await fill(bench, 7)
    store.damaged |= {"timer 0", "timer 3", "timer 4", "timer 6"}
    ids: list[str] = []
    unreadable = 0
    query: dict[str, object] = {"limit": limit}
    while query.get("cursor", "") is not None:
        reply = await bench.request("GET", f"{BASE}{path}?{urlencode(query)}")
        ids += [timer["id"] for timer in reply.json["timers"]]
        unreadable += reply.json.get("unreadable", 0)
        query["cursor"] = reply.json["nextCursor"]
    assert sorted(ids) == ["timer 1", "timer 2", "timer 5"]
    assert unreadable == 4


async def test_a_page_without_unreadable_timers_does_not_mention_them(bench: V1Bench) -> None:
    await fill(bench, 2)
    assert set(await page(bench)) == {"timers", "nextCursor"}


async def test_writes_between_pages_do_not_disturb_the_list(bench: V1Bench) -> None:
    await fill(bench, 10)
    first = await page(bench, limit=5)
    for timer in first["timers"]:
        await bench.request("DELETE", f"{BASE}/default/{timer['id']}".replace(" ", "%20"))
    await bench.create_v1("before", executeAt="2030-01-01T00:00:01Z")
    rest = await page(bench, limit=10, cursor=first["nextCursor"])
    assert len(rest["timers"]) == 5
    assert not {timer["id"] for timer in rest["timers"]} & {
        timer["id"] for timer in first["timers"]
    }


# Every parameter of a list except its cursor and its limit.
LIST = {
    "namespace": "default",
    "status": "pending",
    "dueAfter": "2030-01-01T00:00:00Z",
    "dueBefore": "2030-01-02T00:00:00Z",
    "order": "asc",
}


async def cursor_of(bench: V1Bench, **query: object) -> str:
    await fill(bench, 4)
    cursor = (await page(bench, limit=2, **query))["nextCursor"]
    assert isinstance(cursor, str)
    return cursor


@pytest.mark.parametrize(
    "changed",
    [
        {"namespace": "notifications"},
        {"status": "failed"},
        {"status": None},
        {"dueAfter": "2030-01-01T00:00:00.000001Z"},
        {"dueAfter": None},
        {"dueBefore": "2030-01-03T00:00:00Z"},
        {"dueBefore": None},
        {"dueAfter": None, "dueBefore": LIST["dueAfter"]},
        {"order": "desc"},
    ],
)
async def test_a_cursor_of_another_list_is_refused(
    bench: V1Bench, changed: dict[str, str | None]
) -> None:
    """The cursor would lead to a position unrelated to the end of the page."""
    cursor = await cursor_of(bench, **LIST)
    given = {name: value for name, value in {**LIST, **changed}.items() if value is not None}
    reply = await bench.request("GET", f"{BASE}?{urlencode({**given, 'cursor': cursor})}")
    assert error_of(reply) == (
        400,
        "INVALID_INPUT",
        "cursor is of another list: namespace, status, dueAfter, dueBefore and order must be "
        "the same on every page",
    )
    assert reply.json["details"] == {"field": "cursor"}


@pytest.mark.parametrize(
    "changed",
    [
        {"limit": 1},
        {"limit": 1_000},
        {"dueAfter": "2030-01-01T01:00:00+01:00"},
        {"dueBefore": "2030-01-01T23:30:00.000-00:30"},
    ],
)
async def test_the_page_size_and_the_spelling_of_parameters_may_change(
    bench: V1Bench, changed: dict[str, object]
) -> None:
    cursor = await cursor_of(bench, **LIST)
    beyond = await page(bench, **{**LIST, **changed}, cursor=cursor)
    assert beyond["timers"][0]["executeAt"] == "2030-01-01T00:01:30Z"


async def test_defaults_written_out_are_the_same_list(bench: V1Bench) -> None:
    cursor = await cursor_of(bench)
    spelt_out = await page(bench, namespace="default", order="asc", cursor=cursor)
    assert len(spelt_out["timers"]) == 2


async def test_filters(bench: V1Bench) -> None:
    await fill(bench, 10)
    await bench.create_v1("elsewhere", namespace="notifications")
    await bench.create_v1("bad")
    await bench.fail("bad")
    assert await all_ids(bench, namespace="notifications") == ["elsewhere"]
    assert await all_ids(bench, status="failed") == ["bad"]
    assert len(await all_ids(bench, status="pending")) == 10
    within = await all_ids(bench, dueAfter="2030-01-01T00:01:30Z", dueBefore="2030-01-01T00:03:30Z")
    assert sorted(within) == ["timer 2", "timer 3", "timer 4", "timer 5"]


async def test_the_plus_of_an_offset_need_not_be_encoded(bench: V1Bench) -> None:
    await fill(bench, 2)
    reply = await bench.request("GET", f"{BASE}?dueAfter=2030-01-01T01:00:00+01:00")
    assert len(reply.json["timers"]) == 2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "limit must be a whole number from 1 to 1000"),
        ("limit=1001", "limit must be a whole number from 1 to 1000"),
        ("status=late", "status must be one of pending, executing, completed, failed, canceled"),
        ("order=up", "order must be one of asc, desc"),
        ("dueAfter=tomorrow", "dueAfter must be a date and time in ISO 8601"),
        ("dueBefore=2030-01-01T00:00:00", "dueBefore must have a UTC offset"),
        ("cursor=abc", "cursor must be the nextCursor of an earlier page"),
        ("cursor=%F0%9F%98%80", "cursor must be the nextCursor of an earlier page"),
        ("cursor=", "cursor must be the nextCursor of an earlier page"),
        (f"cursor={'A' * 32}", "cursor must be the nextCursor of an earlier page"),
        (f"cursor={'A' * 40}!", "cursor must be the nextCursor of an earlier page"),
        (f"cursor={'A' * 40}", "cursor is of another list"),
        ("due_after=x", "due_after is not a known parameter"),
        ("limit=1&limit=2", "limit is given more than once"),
    ],
)
async def test_bad_parameters(bench: V1Bench, query: str, message: str) -> None:
    status, code, told = error_of(await bench.request("GET", f"{BASE}?{query}"))
    assert (status, code) == (400, "INVALID_INPUT")
    assert told.startswith(message)
