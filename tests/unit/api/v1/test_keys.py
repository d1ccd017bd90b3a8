"""The operations on keys."""

from typing import Any

import pytest

from tests.unit.api.asgi_client import API_KEY, ApiBench

NEW = {"name": "billing", "roles": ["read"], "namespaces": ["billing"]}
MEMBERS = ["id", "key", "name", "roles", "namespaces", "expiresAt", "createdAt"]


async def create(api: ApiBench, **changes: Any) -> Any:
    reply = await api.request("POST", "/api/v1/keys", NEW | changes)
    assert reply.status == 201, reply.content
    assert reply.headers["cache-control"] == "no-store"
    return reply.json


async def listed(api: ApiBench) -> list[Any]:
    reply = await api.request("GET", "/api/v1/keys")
    assert reply.status == 200
    keys: list[Any] = reply.json["keys"]
    return keys


async def key_of(api: ApiBench, id: str) -> Any:
    return next(key for key in await listed(api) if key["id"] == id)


async def test_a_key_is_created_and_listed_without_its_text(api: ApiBench) -> None:
    issued = await create(
        api,
        roles=["write", "read"],
        expiresAt="2030-02-01T00:00:00+01:00",
        rateLimit={"perSecond": 2.5},
        maxConcurrent=4,
    )
    assert list(issued) == [*MEMBERS, "rateLimit", "maxConcurrent"]
    assert issued["key"].startswith(f"dt_{issued['id']}_")
    assert (issued["rateLimit"], issued["maxConcurrent"]) == ({"perSecond": 2.5, "burst": 3}, 4)
    assert issued["roles"] == ["read", "write"]
    assert issued["expiresAt"] == "2030-01-31T23:00:00Z"
    (key,) = await listed(api)
    assert issued["key"] not in str(key)
    assert key == {
        "id": issued["id"],
        "name": "billing",
        "roles": ["read", "write"],
        "namespaces": ["billing"],
        "expiresAt": "2030-01-31T23:00:00Z",
        "createdAt": "2030-01-01T00:00:00Z",
        "lastUsedAt": None,
        "rateLimit": {"perSecond": 2.5, "burst": 3},
        "maxConcurrent": 4,
        "replacedBy": None,
    }


async def test_optional_members_may_be_null(api: ApiBench) -> None:
    nothing = dict.fromkeys(("expiresAt", "rateLimit", "maxConcurrent"))
    assert list(await create(api, namespaces=["*"], **nothing)) == MEMBERS
    (key,) = await listed(api)
    assert (key["namespaces"], key["expiresAt"], key["rateLimit"]) == (["*"], None, None)


async def test_a_key_is_rotated(api: ApiBench) -> None:
    old = await create(api)
    path = f"/api/v1/keys/{old['id']}/rotate"
    api.clock.advance(1)
    reply = await api.request("POST", path, {"overlap": "1h"})
    assert (reply.status, list(reply.json)) == (201, MEMBERS)
    first, second = await listed(api)
    assert (first["replacedBy"], first["expiresAt"]) == (second["id"], "2030-01-01T01:00:01Z")
    again = await api.request("POST", path)
    assert (again.status, again.json["error"]) == (409, "KEY_NOT_ACTIVE")
    default = await api.request("POST", f"/api/v1/keys/{second['id']}/rotate")
    assert default.status == 201
    assert (await key_of(api, second["id"]))["expiresAt"] == "2030-01-02T00:00:01Z"


async def test_a_key_is_revoked(api: ApiBench) -> None:
    issued = await create(api, namespaces=["*"])
    path = f"/api/v1/keys/{issued['id']}"
    assert (await api.request("GET", "/timers", key=issued["key"])).status == 200
    assert (await api.request("DELETE", path)).status == 204
    assert (await api.request("GET", "/timers", key=issued["key"])).status == 401
    gone = await api.request("DELETE", path)
    assert (gone.status, gone.json["error"], gone.json["message"]) == (
        404,
        "KEY_NOT_FOUND",
        "key not found",
    )
    assert (await api.request("POST", f"{path}/rotate")).status == 404


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"name": ""}, "name", "name must have 1 to 100 characters"),
        ({"name": 5}, "name", "name must be a string"),
        ({"roles": ["owner"]}, "roles[0]", "roles[0] must be 'read', 'write' or 'admin'"),
        ({"roles": "read"}, "roles", "roles must be an array"),
        ({"roles": ["read", "read"]}, "roles", "roles must have each role once"),
        ({"roles": []}, "roles", "roles must have at least one of 'read', 'write', 'admin'"),
        ({"namespaces": ["*", "a"]}, "namespaces", "namespaces must be ['*'] or a list of names"),
        ({"namespaces": [1]}, "namespaces[0]", "namespaces[0] must be a string"),
        ({"expiresAt": "2029-01-01T00:00:00Z"}, "expiresAt", "expiresAt must be in the future"),
        ({"expiresAt": "2031-01-01"}, "expiresAt", "expiresAt must be a date and time"),
        ({"expiresAt": 5}, "expiresAt", "expiresAt must be a string such as"),
        ({"rateLimit": {}}, "rateLimit.perSecond", "rateLimit.perSecond is required"),
        (
            {"rateLimit": {"perSecond": 0}},
            "rateLimit.perSecond",
            "rateLimit.perSecond must be from 0.001 to 1000000",
        ),
        (
            {"rateLimit": {"perSecond": 1e300}},
            "rateLimit.perSecond",
            "rateLimit.perSecond must be from 0.001 to 1000000",
        ),
        (
            {"rateLimit": {"perSecond": 1, "burst": 0}},
            "rateLimit.burst",
            "rateLimit.burst must be from 1 to 1000000",
        ),
        ({"maxConcurrent": 0}, "maxConcurrent", "maxConcurrent must be from 1 to 1000000"),
        ({"role": "read"}, "role", "role is not a known field; did you mean 'roles'?"),
    ],
)
async def test_bad_keys_are_refused(
    api: ApiBench, changes: dict[str, Any], field: str, message: str
) -> None:
    reply = await api.request("POST", "/api/v1/keys", NEW | changes)
    assert (reply.status, reply.json["error"]) == (400, "INVALID_INPUT")
    assert reply.json["details"] == {"field": field}
    assert reply.json["message"].startswith(message)
    assert await listed(api) == []


@pytest.mark.parametrize("missing", ["name", "roles", "namespaces"])
async def test_nothing_is_granted_by_default(api: ApiBench, missing: str) -> None:
    body = {name: value for name, value in NEW.items() if name != missing}
    reply = await api.request("POST", "/api/v1/keys", body)
    assert (reply.status, reply.json["message"]) == (400, f"{missing} is required")


@pytest.mark.parametrize("overlap", ["1", "366d", 5, ""])
async def test_bad_overlaps_are_refused(api: ApiBench, overlap: object) -> None:
    issued = await create(api)
    path = f"/api/v1/keys/{issued['id']}/rotate"
    reply = await api.request("POST", path, {"overlap": overlap})
    assert (reply.status, reply.json["details"]) == (400, {"field": "overlap"})
    assert len(await listed(api)) == 1


class TestWhoMayManageKeys:
    PATHS = (
        ("POST", "/api/v1/keys"),
        ("GET", "/api/v1/keys"),
        ("DELETE", "/api/v1/keys/x"),
        ("POST", "/api/v1/keys/x/rotate"),
    )

    @pytest.mark.parametrize(("method", "path"), PATHS)
    async def test_an_admin_for_all_namespaces_may(
        self, api: ApiBench, method: str, path: str
    ) -> None:
        key = await api.issue_key("admin")
        assert (await api.request(method, path, NEW, key=key)).status not in (401, 403)

    @pytest.mark.parametrize(("method", "path"), PATHS)
    @pytest.mark.parametrize(
        ("roles", "namespaces"),
        [(["read", "write"], ["*"]), (["admin"], ["default"]), (["admin"], ["default", "b"])],
    )
    async def test_others_may_not(
        self, api: ApiBench, method: str, path: str, roles: list[str], namespaces: list[str]
    ) -> None:
        key = await api.issue_key(*roles, namespaces=namespaces)
        reply = await api.request(method, path, NEW, key=key)
        assert (reply.status, reply.json["error"]) == (403, "FORBIDDEN")
        assert len(await listed(api)) == 1


async def test_keys_can_be_prepared_without_authentication() -> None:
    api = ApiBench(api_key=None)
    await api.open()
    issued = await create(api)
    assert [key["id"] for key in await listed(api)] == [issued["id"]]
    assert (await api.request("GET", "/timers", key="whatever")).status == 200
    assert API_KEY not in str(await listed(api))
