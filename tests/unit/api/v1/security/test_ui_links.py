"""A program with a key gets a link that signs a person in to the Web UI."""

import pytest

from duetime.domain.security.access import EVERYTHING
from tests.unit.api.asgi_client import ApiBench, Reply

PATH = "/api/v1/ui-links"


def code_in(reply: Reply) -> str:
    assert reply.status == 201, reply.content
    path: str = reply.json["path"]
    assert path.startswith("/ui/sign-in?code=")
    return path.partition("=")[2]


async def test_a_link_stands_for_the_key_for_a_minute(api: ApiBench) -> None:
    reply = await api.request("POST", PATH)
    assert reply.headers["cache-control"] == "no-store"
    assert reply.json["expiresAt"] == "2030-01-01T00:01:00Z"
    assert await api.sessions.redeem(code_in(reply)) == EVERYTHING


@pytest.mark.parametrize("role", ["read", "write", "admin"])
async def test_a_key_with_any_role_gets_a_link(api: ApiBench, role: str) -> None:
    key = await api.issue_key(role, namespaces=["orders"])
    access = await api.sessions.redeem(code_in(await api.request("POST", PATH, key=key)))
    assert access is not None
    assert (access.key_id, access.namespaces) == (key.split("_")[1], frozenset({"orders"}))


async def test_a_wrong_key_gets_none(api: ApiBench) -> None:
    assert (await api.request("POST", PATH, key="wrong")).status == 401


async def test_a_query_is_refused(api: ApiBench) -> None:
    assert (await api.request("POST", f"{PATH}?next=/ui/timers")).status == 400


async def test_the_plain_path_does_where_no_key_is_asked_for() -> None:
    api = ApiBench(api_key=None)
    await api.open()
    reply = await api.request("POST", PATH)
    assert (reply.status, reply.json) == (201, {"path": "/ui", "expiresAt": None})
