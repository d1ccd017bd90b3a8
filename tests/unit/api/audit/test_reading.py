"""The audit log as the API shows it."""

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.security.access import Access, Role
from tests.unit.api.asgi_client import Reply
from tests.unit.api.audit.audit_bench import AuditBench, act_as
from tests.unit.api.v1.v1_bench import error_of

PATH = "/api/v1/audit-log"


async def cancel(bench: AuditBench, *keys: str) -> None:
    for key in keys:
        await bench.request("POST", f"/api/v1/timers/{key}/cancel")
        bench.clock.advance(1)


def targets(reply: Reply) -> list[str]:
    assert reply.status == 200, reply.content
    return [entry["target"] for entry in reply.json["entries"]]


async def test_an_entry_has_all_members(bench: AuditBench) -> None:
    await bench.request("POST", "/api/v1/timers/small/one/cancel")
    (entry,) = await bench.entries()
    reply = await bench.request("GET", PATH)
    assert reply.json == {
        "entries": [
            {
                "id": entry.id,
                "at": "2030-01-01T00:00:00Z",
                "actor": "API_KEY",
                "keyId": None,
                "address": None,
                "action": "timer.cancel",
                "namespace": "small",
                "target": "one",
                "result": "TIMER_NOT_FOUND",
                "details": None,
            }
        ],
        "nextCursor": None,
    }


async def test_reading_leaves_no_entry(bench: AuditBench) -> None:
    for path in (PATH, "/timers", "/api/v1/timers", "/api/v1/namespaces"):
        await bench.request("GET", path)
    assert await bench.entries() == []


async def test_filters(bench: AuditBench) -> None:
    await cancel(bench, "default/a", "small/b", "small/c")
    await bench.request("DELETE", "/api/v1/timers/small/b")
    for query, expected in {
        "": ["b", "c", "b", "a"],
        "?namespace=small": ["b", "c", "b"],
        "?namespace=never-existed": [],
        "?action=timer.delete": ["b"],
        "?target=b": ["b", "b"],
        "?target=b&action=timer.cancel": ["b"],
        "?actor=API_KEY&limit=2": ["b", "c"],
        "?actor=nobody": [],
        "?from=2030-01-01T00:00:01Z&until=2030-01-01T00:00:03Z": ["c", "b"],
        "?from=2030-01-01T01:00:02+01:00": ["b", "c"],
    }.items():
        assert targets(await bench.request("GET", PATH + query)) == expected, query


async def test_pages_have_each_entry_once_while_others_arrive(bench: AuditBench) -> None:
    # Several at the same instant, which only their ids tell apart.
    for number in range(7):
        await bench.request("POST", f"/api/v1/timers/small/t{number}/cancel")
    seen: list[str] = []
    query = "?limit=3&namespace=small"
    while True:
        reply = await bench.request("GET", PATH + query)
        seen += targets(reply)
        await cancel(bench, "small/late")
        if (cursor := reply.json["nextCursor"]) is None:
            break
        query = f"?limit=2&namespace=small&cursor={cursor}"
    assert seen == [f"t{number}" for number in reversed(range(7))]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "limit must be a whole number from 1 to 1000"),
        (
            "from=yesterday",
            "from must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z",
        ),
        ("until=2030-01-01T00:00:00", "until must have a UTC offset, such as 2026-01-01T12:00:00Z"),
        ("cursor=abc", "cursor must be the nextCursor of an earlier page"),
        (
            "since=1h",
            "since is not a known parameter: this operation takes action, actor, cursor, from, "
            "limit, namespace, target, until",
        ),
    ],
)
async def test_bad_parameters_are_named(bench: AuditBench, query: str, message: str) -> None:
    reply = await bench.request("GET", f"{PATH}?{query}")
    assert error_of(reply) == (400, "INVALID_INPUT", message)


async def test_a_cursor_belongs_to_its_list(bench: AuditBench) -> None:
    await cancel(bench, "small/a", "small/b")
    cursor = (await bench.request("GET", f"{PATH}?limit=1")).json["nextCursor"]
    status, _, message = error_of(await bench.request("GET", f"{PATH}?target=a&cursor={cursor}"))
    assert status == 400
    assert message.startswith("cursor is of another list: actor, action, namespace, target, from")


async def test_admins_of_some_namespaces_see_the_entries_of_these(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cancel(bench, "default/a", "small/b", "notifications/c")
    await bench.request("DELETE", "/api/v1/operations/none")
    act_as(monkeypatch, Access(name="team", namespaces=frozenset({"small", "notifications"})))
    assert targets(await bench.request("GET", PATH)) == ["c", "b"]
    assert targets(await bench.request("GET", f"{PATH}?namespace=small")) == ["b"]
    assert targets(await bench.request("GET", f"{PATH}?namespace=default")) == []
    assert targets(await bench.request("GET", f"{PATH}?target=a")) == []


async def test_others_may_not_read_it(bench: AuditBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in (Role.READ, Role.WRITE):
        act_as(monkeypatch, Access(name="x", roles=frozenset({role})))
        assert (await bench.request("GET", PATH)).status == 403


async def test_an_absent_store_is_said(bench: AuditBench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(query: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(bench.store.security, "audit_entries", away)
    assert (await bench.request("GET", PATH)).status == 503
