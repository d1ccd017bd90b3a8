"""Every request that changes something, or tries to, leaves exactly one entry."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from duetime.api.docs.routes import DOCUMENTS
from duetime.api.http.auditing import CREATE_TIMER
from duetime.api.http.operation import Operation
from duetime.api.platform.routes import HEALTH, PLATFORM
from duetime.api.v1.routes.table import V1
from duetime.domain.errors import StoreUnavailable
from duetime.domain.security.access import Access, Role
from duetime.domain.security.audit import MAX_TEXT_CHARACTERS, AuditEntry
from duetime.event_loop import next_turn
from duetime.service.security.audit_log import Sampling
from tests.unit.api.asgi_client import call
from tests.unit.api.asgi_client import create_body as platform_body
from tests.unit.api.audit.audit_bench import AuditBench, act_as
from tests.unit.api.v1.v1_bench import create_body, path_of

ALL: tuple[Operation[Any], ...] = tuple(
    operation for group in (*PLATFORM, *V1, *HEALTH, *DOCUMENTS) for operation in group.operations
)
READS_WITH_POST = {"getSelectedTimerV1"}
UUID = "0197a1f0-0000-7000-8000-000000000001"

# A request for each audited operation that is carried out, and the fields of its entry. The timers
# one, two, three and four exist, and five has failed.
REQUESTS: dict[str, tuple[str, object, dict[str, object]]] = {
    "updateTimerV1": (
        "/api/v1/timers/default/one",
        {"executeAt": "2030-01-02T00:00:00Z", "callbackUrl": "https://u:pw@example.com/"},
        {"target": "one", "details": "executeAt=2030-01-02T00:00:00Z, callbackUrl"},
    ),
    "updateSelectedTimerV1": (
        "/api/v1/timers/update",
        {"timerId": "one", "payload": {"card": "4111"}, "callbackHeaders": {"x-token": "secret"}},
        {"target": "one", "details": "payload, callbackHeaders"},
    ),
    "cancelTimerV1": ("/api/v1/timers/default/one/cancel", b"", {"target": "one"}),
    "cancelSelectedTimerV1": ("/api/v1/timers/cancel", {"timerId": "two"}, {"target": "two"}),
    "deleteTimerV1": ("/api/v1/timers/default/three", b"", {"target": "three"}),
    "deleteSelectedTimerV1": ("/api/v1/timers/delete", {"timerId": "four"}, {"target": "four"}),
    "createTimersV1": (
        "/api/v1/timers/batch",
        {"timers": [create_body("b1"), create_body("b2"), create_body("one"), {"id": "bad"}]},
        {"details": "timers=4, created=2, existing=1, invalid=1"},
    ),
    "importTimersV1": (
        "/api/v1/timers/import?namespace=small",
        b'{"id": "i1", "executeIn": "1h", "callbackUrl": "https://example.com"}\nnonsense',
        {
            "namespace": "small",
            "details": "lines=2, created=1, existing=0, conflicts=0, invalid=1",
        },
    ),
    "redriveTimersV1": (
        "/api/v1/timers/redrive",
        {"errorContains": "HTTP"},
        {"details": "errorContains=HTTP, redriven=1"},
    ),
    "startOperationV1": (
        "/api/v1/operations",
        {"action": "cancel", "filter": {"idPrefix": "o", "endpoint": "https://example.com"}},
        {"details": "action=cancel, idPrefix=o, endpoint=https://example.com, matched=1"},
    ),
    "putNamespaceV1": (
        "/api/v1/namespaces/small",
        {"concurrency": 5, "retention": "7d", "maxPayloadBytes": None, "retryPolicy": None},
        {
            "namespace": "small",
            "details": "retryPolicy=null, retention=7d, concurrency=5, maxPayloadBytes=null",
        },
    ),
    "pauseEndpointV1": (
        "/api/v1/endpoints/pause",
        {"endpoint": "https://example.com", "reason": "why"},
        {"namespace": None, "target": "https://example.com:443"},
    ),
    "deleteNamespaceV1": ("/api/v1/namespaces/small?force=true", b"", {"namespace": "small"}),
    "createUiLinkV1": ("/api/v1/ui-links", b"", {"namespace": None}),
}
OF_EXISTING_THINGS = {
    *("updateTimer", "cancelTimer", "abortOperationV1", "resumeEndpointV1"),
    *("createKeyV1", "rotateKeyV1", "revokeKeyV1", "createSecretV1", "revokeSecretV1"),
}
"""Operations on things that have to be made first. They have tests of their own."""


async def prepared(bench: AuditBench) -> AuditBench:
    for id in ("one", "two", "three", "four", "five"):
        assert (await bench.create_v1(id)).status == 200
    await bench.fail("five")
    assert await bench.entries() == [], "creates are off by default"
    return bench


def test_every_operation_has_a_word_or_only_reads() -> None:
    without = {each.id for each in ALL if each.audit is None}
    reads = {each.id for each in ALL if each.method == "GET"}
    assert without == reads | READS_WITH_POST, "give new operations an audit word"


def test_every_audited_operation_is_tested() -> None:
    audited = {each.id for each in ALL if each.audit not in (None, CREATE_TIMER)}
    assert audited == REQUESTS.keys() | OF_EXISTING_THINGS


@pytest.mark.parametrize("operation", [e for e in ALL if e.id in REQUESTS], ids=lambda e: e.id)
async def test_what_is_done_leaves_one_entry(bench: AuditBench, operation: Operation[Any]) -> None:
    await prepared(bench)
    path, body, fields = REQUESTS[operation.id]
    reply = await bench.request(operation.method, path, body)
    assert reply.status < 300, reply.content
    entry = await bench.only_entry()
    assert (entry.actor, entry.action, entry.result) == ("API_KEY", operation.audit, "ok")
    assert entry.at == bench.clock.now()
    shown = structs.asdict(entry)
    expected = {"namespace": "default", **fields}
    assert {name: shown[name] for name in expected} == expected


async def test_the_platform_api_leaves_entries_too(bench: AuditBench) -> None:
    id = (await bench.create()).data["id"]
    assert (await bench.request("PUT", f"/timers/{id}", {"execute_in": "1h"})).status == 200
    assert (await bench.request("DELETE", f"/timers/{id}")).status == 200
    cancel, update = await bench.entries()
    assert (update.action, update.target, update.details) == ("timer.update", id, "execute_in=1h")
    assert (cancel.action, cancel.target, cancel.namespace) == ("timer.cancel", id, "default")


async def test_keys_are_named_by_their_id_and_their_texts_are_not_recorded(
    bench: AuditBench,
) -> None:
    text = await bench.issue_key("read")
    id, secret = text.split("_")[1:]
    rotated = (await bench.request("POST", f"/api/v1/keys/{id}/rotate")).json
    assert (await bench.request("DELETE", f"/api/v1/keys/{id}")).status == 204
    entries = await bench.entries()
    assert sorted((entry.action, entry.target) for entry in entries) == [
        ("key.create", id),
        ("key.revoke", id),
        ("key.rotate", id),
    ]
    for hidden in (secret, rotated["key"].split("_")[2]):
        assert hidden not in str(entries)


async def test_a_new_key_is_recorded_with_its_roles_and_namespaces(bench: AuditBench) -> None:
    await bench.issue_key("read", "write", namespaces=["small", 'odd", roles'])
    assert (await bench.only_entry()).details == (
        'roles=["read","write"], namespaces=["small","odd\\", roles"]'
    )
    bad = {"name": "", "roles": ["admin"], "namespaces": ["*"]}
    assert (await bench.request("POST", "/api/v1/keys", bad)).status == 400
    refused = (await bench.entries())[0]
    assert refused.result == "INVALID_INPUT"
    assert refused.details == 'roles=["admin"], namespaces=["*"]'


async def test_operations_are_named_by_their_id(bench: AuditBench) -> None:
    await bench.create_v1("one")
    body = {"action": "reschedule", "moveBy": "1h", "all": True}
    id = (await bench.request("POST", "/api/v1/operations", body)).json["id"]
    assert (await bench.request("DELETE", f"/api/v1/operations/{id}")).status == 200
    abort, start = await bench.entries()
    assert (start.action, start.target) == ("operation.start", id)
    assert start.details == "action=reschedule, all, moveBy=1h, matched=1"
    chosen = {"metadata": {"key": "customer", "value": "17"}}
    body = {"action": "run-now", "filter": chosen}
    await bench.request("POST", "/api/v1/operations", body)
    run = (await bench.entries())[0]
    assert run.details == "action=run-now, metadata=customer=17, matched=0"
    assert (abort.action, abort.target, abort.namespace) == ("operation.abort", id, "default")


async def test_secrets_are_named_by_their_id_and_never_shown(bench: AuditBench) -> None:
    path = "/api/v1/namespaces/small/secrets"
    created = (await bench.request("POST", path, {"type": "hmac"})).json
    assert (await bench.request("DELETE", f"{path}/{created['id']}")).status == 204
    assert (await bench.request("DELETE", f"{path}/none")).status == 404
    assert created["secret"].removeprefix("whsec_") not in repr(await bench.entries())
    refused, revoke, create = await bench.entries()
    assert (create.action, create.target, create.details) == (
        *("secret.create", created["id"]),
        "type=hmac",
    )
    assert (revoke.action, revoke.target, revoke.result) == ("secret.revoke", created["id"], "ok")
    assert (refused.namespace, refused.target) == ("small", "none")
    assert refused.result != "ok"


@pytest.mark.parametrize(
    ("method", "path", "body", "fields"),
    [
        (
            "POST",
            "/api/v1/timers/default/none/cancel",
            b"",
            ("timer.cancel", "default", "none", "TIMER_NOT_FOUND"),
        ),
        (
            "POST",
            "/api/v1/timers/nowhere/one/cancel",
            b"",
            ("timer.cancel", "nowhere", "one", "NAMESPACE_NOT_FOUND"),
        ),
        (
            "DELETE",
            "/api/v1/timers/default/five",
            b"",
            ("timer.delete", "default", "five", "TIMER_NOT_PENDING"),
        ),
        (
            "PUT",
            "/api/v1/timers/default/o%2Fne",
            b"no JSON",
            ("timer.update", "default", "o/ne", "INVALID_INPUT"),
        ),
        (
            "PUT",
            "/api/v1/namespaces/small",
            {"numShards": 7},
            ("namespace.put", "small", None, "INVALID_INPUT"),
        ),
        ("PUT", f"/timers/{UUID}", b"{", ("timer.update", "default", UUID, "INVALID_INPUT")),
        ("DELETE", f"/timers/{UUID}", b"", ("timer.cancel", "default", UUID, "TIMER_NOT_FOUND")),
        ("DELETE", "/timers/none", b"", ("timer.cancel", None, "none", "INVALID_INPUT")),
        ("POST", "/api/v1/timers/batch", b"{}", ("timer.batch", None, None, "INVALID_INPUT")),
        (
            "DELETE",
            "/api/v1/operations/none",
            b"",
            ("operation.abort", None, "none", "OPERATION_NOT_FOUND"),
        ),
        (
            "POST",
            "/api/v1/timers/default/one/cancel?now=true",
            b"",
            ("timer.cancel", "default", "one", "INVALID_INPUT"),
        ),
    ],
)
async def test_refused_requests_leave_an_entry(
    bench: AuditBench, method: str, path: str, body: object, fields: tuple[str, ...]
) -> None:
    await prepared(bench)
    assert (await bench.request(method, path, body)).status >= 400
    entry = await bench.only_entry()
    assert (entry.action, entry.namespace, entry.target, entry.result) == fields


async def test_a_key_that_may_not_do_it_is_recorded(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Access(
        name="dashboard",
        key_id="k1",
        roles=frozenset({Role.READ}),
        namespaces=frozenset({"small"}),
    )
    act_as(monkeypatch, reader)
    assert (await bench.request("DELETE", "/api/v1/timers/small/one")).status == 403
    assert (await bench.request("POST", "/api/v1/timers/batch", b"")).status == 403
    batch, delete = await bench.entries()
    assert (delete.actor, delete.key_id, delete.result) == ("dashboard", "k1", "FORBIDDEN")
    assert (delete.namespace, delete.target) == ("small", "one")
    assert (batch.namespace, batch.action) == ("small", "timer.batch")


async def test_an_attempt_on_the_namespace_of_others_is_recorded_there(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as(monkeypatch, Access(name="team-a", namespaces=frozenset({"small"})))
    await bench.request("DELETE", "/api/v1/timers/notifications/one")
    entry = await bench.only_entry()
    assert (entry.actor, entry.namespace, entry.target) == ("team-a", "notifications", "one")
    assert entry.result == "NAMESPACE_NOT_FOUND"


async def test_a_refused_abort_does_not_tell_whether_the_operation_exists(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"namespace": "notifications", "action": "cancel", "all": True}
    theirs = (await bench.request("POST", "/api/v1/operations", body)).json["id"]
    act_as(monkeypatch, Access(name="team-a", namespaces=frozenset({"small"})))
    shown = {}
    for id in (theirs, UUID):
        reply = await bench.request("DELETE", f"/api/v1/operations/{id}")
        assert (reply.status, reply.json["error"]) == (404, "OPERATION_NOT_FOUND")
        (entry,) = await bench.entries(target=id, action="operation.abort")
        shown[id] = (entry.actor, entry.namespace, entry.result, entry.details)
    assert shown[theirs] == shown[UUID] == ("team-a", "small", "OPERATION_NOT_FOUND", None)


async def test_requests_without_a_valid_key_cannot_fill_the_log(bench: AuditBench) -> None:
    for headers in ([], [(b"x-api-key", b"wrong")]):
        reply = await call(bench.app, "DELETE", "/api/v1/timers/default/one", headers=headers)
        assert reply.status == 401
    assert await bench.entries() == []


async def test_no_secret_gets_into_an_entry() -> None:
    bench = AuditBench(audited_creates=Sampling(1))
    await bench.open()
    headers = {"Authorization": "Bearer SECRET", "x-api-key": "SECRET"}
    url = "https://user:SECRET@example.com/due?token=SECRET"
    v1 = {"callbackUrl": url, "callbackHeaders": headers, "payload": {"pin": "SECRET"}}
    callback = {"type": "http", "url": url, "headers": headers, "payload": "SECRET"}
    await bench.create_v1("one", **v1)
    await bench.request("PUT", "/api/v1/timers/default/one", v1)
    await bench.request("PUT", "/api/v1/timers/default/one", {**v1, "SECRET": 1})
    await bench.post("/batch", {"timers": [create_body("two", **v1)]})
    await bench.request("POST", "/timers", platform_body(callback=callback, metadata="SECRET"))
    body = {"action": "cancel", "filter": {"endpoint": "https://user:SECRET@example.com"}}
    await bench.request("POST", "/api/v1/operations", body)
    entries = await bench.entries()
    assert len(entries) == 6
    assert "SECRET" not in repr(entries)


async def test_long_texts_are_cut(bench: AuditBench) -> None:
    await bench.post("/cancel", {"timerId": "x" * 100_000, "namespace": "y" * 100_000})
    entry = await bench.only_entry()
    assert entry.target is not None
    assert entry.namespace is not None
    assert len(entry.target) == len(entry.namespace) == MAX_TEXT_CHARACTERS


async def test_an_import_that_breaks_off_is_recorded_with_what_it_did(bench: AuditBench) -> None:
    line = b'{"id": "i1", "executeIn": "1h", "callbackUrl": "https://example.com"}\n'

    async def is_created() -> None:
        while not any((await bench.timers_stored()).values()):
            await next_turn()

    await bench.break_off("/api/v1/timers/import", line, is_created)
    entry = await bench.only_entry()
    assert (entry.result, entry.address) == ("CLIENT_GONE", "192.0.2.7")
    assert entry.details is not None
    assert entry.details.startswith("lines=1, created=1")


async def test_a_request_that_failed_for_want_of_the_store_does_not_wait_for_it_again(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = asyncio.Event()
    append = bench.store.security.append_audit

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("away")

    async def hanging(entries: Sequence[AuditEntry]) -> None:
        await back.wait()
        await append(entries)

    monkeypatch.setattr(bench.store, "cancel_if_pending", away)
    monkeypatch.setattr(bench.store.security, "append_audit", hanging)
    path = path_of("default", "one") + "/cancel"
    monkeypatch.setattr("duetime.service.security.audit_log.WAIT_SECONDS", 3_600)
    reply = await asyncio.wait_for(bench.request("POST", path), 10)
    assert reply.status == 503
    back.set()
    await bench.audit_log.close()
    entry = await bench.only_entry()
    assert (entry.action, entry.result) == ("timer.cancel", "SERVICE_UNAVAILABLE")
