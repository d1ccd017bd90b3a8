"""A team with an admin key for its own namespaces cannot lift the limits that bind it."""

import pytest

from duetime.domain.namespace import Namespace, NamespaceOptions
from tests.unit.api.v1.many_timers.full_lines import namespace_line, restore
from tests.unit.api.v1.many_timers.operations import finish
from tests.unit.api.v1.v1_bench import V1Bench, error_of

ORDERS = "/api/v1/namespaces/orders"
LIMITS = {
    "concurrency": 5,
    "maxPayloadBytes": 1_000,
    "maxPending": 100,
    "callbackNetworks": "*.example.com",
}
STORED = NamespaceOptions(
    concurrency=5, max_payload_bytes=1_000, max_pending=100, callback_networks="*.example.com"
)


async def team_key(bench: V1Bench) -> str:
    return await bench.issue_key("admin", namespaces=["orders", "new"])


async def options_of(bench: V1Bench, name: str = "orders") -> NamespaceOptions:
    return {each.name: each.options for each in await bench.store.namespaces()}[name]


@pytest.fixture
async def bench() -> V1Bench:
    return await V1Bench().open()


@pytest.mark.parametrize("member", LIMITS)
@pytest.mark.parametrize("lifted", [True, False])
async def test_limits_stay_with_the_operator(bench: V1Bench, member: str, lifted: bool) -> None:
    await bench.request("PUT", ORDERS, LIMITS)
    key = await team_key(bench)
    given = None if lifted else ("*.org" if member == "callbackNetworks" else 7)
    reply = await bench.request("PUT", ORDERS, {member: given, "retention": "1d"}, key=key)
    assert error_of(reply)[:2] == (403, "FORBIDDEN")
    assert reply.json["message"] == (
        f"{member} is a limit, which only an admin key for all namespaces changes"
    )
    assert reply.json["details"] == {"field": member}
    assert await options_of(bench) == STORED
    everywhere = await bench.issue_key("admin")
    assert (await bench.request("PUT", ORDERS, {member: given}, key=everywhere)).status == 200


async def test_the_rest_is_the_team_s(bench: V1Bench) -> None:
    await bench.request("PUT", ORDERS, LIMITS)
    body = {**LIMITS, "numShards": 16, "retention": "7d", "retryPolicy": {"maxRetries": 9}}
    reply = await bench.request("PUT", ORDERS, body, key=await team_key(bench))
    assert reply.status == 200, reply.content
    options = await options_of(bench)
    assert (options.retention_seconds, options.retry_policy.max_retries) == (7 * 86_400, 9)
    assert options.max_pending == 100


async def test_a_namespace_that_was_deleted_stays_so_for_the_team(bench: V1Bench) -> None:
    await bench.request("PUT", ORDERS, LIMITS)
    key = await team_key(bench)
    deleted = await bench.request("DELETE", ORDERS, key=key)
    assert deleted.status == 202
    await finish(bench, deleted)
    for name in ("orders", "new"):
        reply = await bench.request("PUT", f"/api/v1/namespaces/{name}", {}, key=key)
        assert error_of(reply)[:2] == (403, "FORBIDDEN")
        answer = await restore(bench, namespace_line(name=name), key=key)
        assert [each["error"] for each in answer["errors"]] == ["FORBIDDEN"]
    assert {"orders", "new"}.isdisjoint(each.name for each in await bench.store.namespaces())


async def test_an_import_changes_no_limits_for_a_team(bench: V1Bench) -> None:
    await bench.store.add_namespace(Namespace("orders"))
    key = await team_key(bench)
    answer = await restore(bench, namespace_line(name="orders", **LIMITS), key=key)
    (error,) = answer["errors"]
    assert (error["error"], error["details"]) == ("FORBIDDEN", {"field": "concurrency"})
    assert await options_of(bench) == NamespaceOptions()
    answer = await restore(bench, namespace_line(name="orders", retention="1d"), key=key)
    assert answer["restored"]["namespaces"] == 1
    assert (await options_of(bench)).retention_seconds == 86_400
    again = await restore(bench, namespace_line(name="orders", retention="1d"), key=key)
    assert again["restored"]["existingNamespaces"] == 1
