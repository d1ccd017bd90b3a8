"""A team with a key for its own namespaces cannot tell whether another team exists.

Two worlds differ only in the other team. Every operation gives the same answer in both, byte by
byte, after the same calls of the store, and leaves the other team as it was.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from duetime.api.metrics.routes import METRICS
from duetime.api.platform.routes import PLATFORM
from duetime.api.v1.routes.table import V1
from duetime.ports.bulk import BulkStore
from duetime.ports.endpoints import EndpointState, EndpointStatus
from duetime.ports.store import TimerStore
from duetime.stores.memory import MemoryStore
from tests.foreign_requests import AT, FOREIGN_REQUESTS, OWN, PAUSED_ENDPOINT, URL, Request, Subject
from tests.unit.api.asgi_client import Reply, create_body
from tests.unit.api.v1.v1_bench import V1Bench

THEIRS = Subject(
    namespace="team-b",
    timer_id="0199a3c2-0000-7000-8000-00000000000b",
    failed_id="0199a3c2-0000-7000-8000-00000000000f",
    operation_id="not started",
    key_id="not made",
    secret_id="not made",
    cursor="no list",
    idempotency_key="order 1042",
)
SEVERAL = ("team-a", "team-a2")
KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "reads": (("read",), (OWN,)),
    "writes": (("write",), (OWN,)),
    "reads and writes": (("read", "write"), (OWN,)),
    "admin of one": (("admin",), (OWN,)),
    "admin of several": (("admin",), SEVERAL),
}
OPERATIONS = [
    operation.id
    for group in (*PLATFORM, *METRICS, *V1)
    for operation in group.operations
    if operation.needs_key
]
_CALLS = frozenset(
    name
    for port in (TimerStore, BulkStore)
    for name in dir(port)
    if not name.startswith("_") and name != "capabilities"
)
_CODE = re.compile(rb"code=[A-Za-z0-9_-]{43}")
_USED = re.compile(rb'"lastUsedAt":[^,]*')
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class WatchedStore(MemoryStore):
    """Notes which of its methods are called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in _CALLS:
            self.calls.append(name)
        return super().__getattribute__(name)


class World:
    """A service with the timers of team A."""

    def __init__(self) -> None:
        self.store = WatchedStore()
        self.api = V1Bench(self.store)
        self.keys: dict[str, str] = {}

    async def open(self) -> "World":
        await self.api.open()
        for namespace in SEVERAL:
            await self.must("PUT", f"/api/v1/namespaces/{namespace}", {})
            await self.create(namespace, "mine")
            # The audit log orders entries of the same instant by ids that the service makes.
            self.api.clock.advance(1)
        for name, (roles, namespaces) in KEYS.items():
            self.keys[name] = await self.api.issue_key(*roles, namespaces=namespaces)
        return self

    async def add_team_b(self) -> Subject:
        """Timers in their own namespace and in `default`, an operation, a key, an endpoint."""
        await self.must("PUT", "/api/v1/namespaces/team-b", {"maxPayloadBytes": 10})
        for namespace in ("team-b", "default"):
            for id in (THEIRS.timer_id, THEIRS.failed_id, "more"):
                await self.create(namespace, id)
            await self.api.fail(THEIRS.failed_id, namespace=namespace)
        body = create_body(idempotency_key=THEIRS.idempotency_key)
        await self.must("POST", "/timers", body)
        started = await self.must(
            "POST",
            "/api/v1/operations",
            {"namespace": "team-b", "action": "cancel", "filter": {"idPrefix": "none"}},
        )
        secret = await self.must("POST", "/api/v1/namespaces/team-b/secrets", {})
        await self.must("POST", "/api/v1/timers/team-b/more/cancel")
        page = await self.must("GET", "/api/v1/timers?namespace=team-b&limit=1")
        key = await self.api.issue_key("admin", namespaces=["team-b"])
        await self.must("POST", "/api/v1/endpoints/pause", {"endpoint": PAUSED_ENDPOINT})
        self.api.reporter.statuses.append(
            EndpointStatus(
                endpoint="https://b.example",
                state=EndpointState.OPEN,
                in_flight=1,
                waiting=1,
                consecutive_failures=1,
                last_error="HTTP 500",
                opened_at=None,
            )
        )
        return msgspec.structs.replace(
            THEIRS,
            operation_id=started.json["id"],
            key_id=key.split("_")[1],
            secret_id=secret.json["id"],
            cursor=page.json["nextCursor"],
        )

    async def create(self, namespace: str, id: str) -> None:
        body = {"namespace": namespace, "id": id, "executeAt": AT, "callbackUrl": URL}
        await self.must("POST", "/api/v1/timers", body)

    async def must(self, method: str, path: str, body: object = b"") -> Reply:
        reply = await self.api.request(method, path, body)
        assert reply.status < 300, reply.content
        return reply

    async def send(self, request: Request, key: str) -> tuple[Reply, list[str]]:
        """The answer, and the calls of the store that it took."""
        self.store.calls.clear()
        reply = await self.api.request(*request, key=self.keys[key])
        return reply, list(self.store.calls)

    async def audited(self, key: str) -> list[tuple[object, ...]]:
        """The audit log as far as the key sees it, but for ids that the service makes. None for
        keys that may not read it."""
        reply, _ = await self.send(Request("GET", "/api/v1/audit-log?limit=100"), key)
        members = ("at", "actor", "action", "namespace", "target", "result", "details")
        return sorted(
            tuple(_UUID.sub(b"some-id", str(each[name]).encode()) for name in members)
            for each in reply.json.get("entries", ())
        )

    async def everything_of_b(self, theirs: Subject) -> list[bytes]:
        """All that team B has, as the key of the settings sees it."""
        paths = [
            *(f"/api/v1/timers/export?namespace={name}" for name in ("team-b", "default")),
            f"/api/v1/operations/{theirs.operation_id}",
            "/api/v1/namespaces/team-b",
            "/api/v1/namespaces/default",
            "/api/v1/namespaces/team-b/secrets",
            "/api/v1/namespaces/default/secrets",
            "/api/v1/keys",
        ]
        contents = [(await self.must("GET", path)).content for path in paths]
        contents.append(repr(await self.store.endpoint_pauses.pauses()).encode())
        return [_USED.sub(b"", content) for content in contents]


def seen(reply: Reply) -> tuple[int, object, bytes]:
    """All of an answer. Ids that the service makes differ with every create."""
    content = _CODE.sub(b"some-code", _UUID.sub(b"some-id", reply.content))
    headers = {name: _UUID.sub(b"some-id", value.encode()) for name, value in reply.headers.items()}
    del headers["x-request-id"]
    return reply.status, headers, content


def test_every_operation_has_requests() -> None:
    """An operation that is new here: add requests about another team's things."""
    assert set(FOREIGN_REQUESTS) == set(OPERATIONS)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_another_teams_things_are_like_things_that_do_not_exist(
    operation: str, key: str
) -> None:
    shared, alone = await World().open(), await World().open()
    theirs = await shared.add_team_b()
    before = await shared.everything_of_b(theirs)
    requests = list(FOREIGN_REQUESTS[operation](theirs))
    requests += [each._replace(method="HEAD") for each in requests if each.method == "GET"]
    for request in requests:
        answer, calls = await shared.send(request, key)
        expected, expected_calls = await alone.send(request, key)
        assert seen(answer) == seen(expected), request
        assert calls == expected_calls, (request, "the time of the answer would tell")
        assert b"b.example" not in answer.content
    assert await shared.audited(key) == await alone.audited(key), "the own log would tell"
    assert await shared.everything_of_b(theirs) == before


async def test_the_same_requests_do_change_something_for_those_who_may() -> None:
    """Otherwise the test above would prove nothing."""
    changed = set()
    for operation in OPERATIONS:
        world = await World().open()
        theirs = await world.add_team_b()
        before = await world.everything_of_b(theirs)
        statuses = [
            (await world.api.request(*request)).status
            for request in FOREIGN_REQUESTS[operation](theirs)
        ]
        assert min(statuses) < 300, (operation, statuses)
        if await world.everything_of_b(theirs) != before:
            changed.add(operation)
    assert changed == {
        operation.id
        for group in (*PLATFORM, *METRICS, *V1)
        for operation in group.operations
        if operation.method != "GET"
    } - {"getSelectedTimerV1", "startOperationV1", "createUiLinkV1"}


async def test_a_key_sees_its_own_things_beside_those_of_others() -> None:
    world = await World().open()
    await world.add_team_b()
    body = {"namespace": OWN, "action": "cancel", "filter": {"idPrefix": "none"}}
    mine = await world.api.request(
        "POST", "/api/v1/operations", body, key=world.keys["admin of one"]
    )
    assert mine.status == 202
    for key, names in (("admin of one", [OWN]), ("admin of several", list(SEVERAL))):
        namespaces, _ = await world.send(Request("GET", "/api/v1/namespaces"), key)
        assert [each["name"] for each in namespaces.json["namespaces"]] == names
        operations, _ = await world.send(Request("GET", "/api/v1/operations"), key)
        assert [each["id"] for each in operations.json["operations"]] == [mine.json["id"]]
        timers, _ = await world.send(Request("GET", f"/api/v1/timers?namespace={OWN}"), key)
        assert [each["id"] for each in timers.json["timers"]] == ["mine"]
