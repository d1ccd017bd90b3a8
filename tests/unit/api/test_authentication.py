"""Keys in requests: two headers, roles, wrong keys, limits."""

import asyncio

import msgspec
import pytest

from duetime.api.http.answers import Answer
from duetime.api.http.auth import REFUSAL
from duetime.domain.errors import StoreUnavailable
from duetime.domain.security.credentials import RateLimit
from duetime.ports.security import Credentials
from duetime.service.security.key_ring import KeyLimits
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.security_table import SecurityTable
from tests.unit.api.asgi_client import (
    API_KEY,
    ApiBench,
    RawHeaders,
    Reply,
    call,
    create_body,
)
from tests.unit.service.service_bench import GatedStore

BOTH_APIS = ("/timers", "/api/v1/timers")
CHALLENGE = 'Bearer realm="duetime"'


def key_header(key: str) -> tuple[bytes, bytes]:
    return b"x-api-key", key.encode()


def bearer(key: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {key}".encode()


async def get(api: ApiBench, *headers: tuple[bytes, bytes], path: str = "/timers") -> Reply:
    return await call(api.app, "GET", path, headers=list(headers))


class TestHeaders:
    @pytest.mark.parametrize("path", BOTH_APIS)
    async def test_both_headers_take_both_kinds_of_keys(self, api: ApiBench, path: str) -> None:
        for key in (API_KEY, await api.issue_key("read")):
            for header in (
                key_header(key),
                key_header(f"  {key}\t"),
                bearer(key),
                (b"authorization", f"bearer   {key} ".encode()),
                (b"authorization", f"BEARER {key}".encode()),
            ):
                assert (await get(api, header, path=path)).status == 200, header
            both = await get(api, key_header(key), bearer(key), path=path)
            assert both.status == 200, "the same key twice says one thing"

    @pytest.mark.parametrize("path", BOTH_APIS)
    async def test_two_different_keys_are_refused(self, api: ApiBench, path: str) -> None:
        other = await api.issue_key("read")
        reply = await get(api, key_header(API_KEY), bearer(other), path=path)
        assert (reply.status, reply.json["message"]) == (
            401,
            "X-API-Key and Authorization have different keys: send one of them",
        )
        twice = await get(api, bearer(other), bearer(other), path=path)
        assert (twice.status, twice.json["message"]) == (
            401,
            "Authorization is given more than once",
        )

    @pytest.mark.parametrize("path", BOTH_APIS)
    @pytest.mark.parametrize(
        "value", [b"Bearer", b"Bearer ", b"Basic YTpi", API_KEY.encode(), b"Bearer wrong", b"\xff"]
    )
    async def test_refusals_challenge_the_client(
        self, api: ApiBench, path: str, value: bytes
    ) -> None:
        reply = await get(api, (b"authorization", value), path=path)
        assert (reply.status, reply.json["message"]) == (401, REFUSAL)
        assert reply.headers["www-authenticate"] == CHALLENGE

    async def test_other_schemes_beside_the_key_are_not_our_business(self, api: ApiBench) -> None:
        basic = (b"authorization", b"Basic YTpi")
        assert (await get(api, key_header(API_KEY), basic)).status == 200

    async def test_without_authentication_keys_do_not_matter(self) -> None:
        api = ApiBench(api_key=None)
        await api.open()
        for headers in ([], [key_header("a"), key_header("b")], [key_header("a"), bearer("b")]):
            assert (await get(api, *headers)).status == 200


class TestRoles:
    @pytest.mark.parametrize(
        ("roles", "reads", "writes", "manages"),
        [
            (["read"], True, False, False),
            (["write"], False, True, False),
            (["read", "write"], True, True, False),
            (["admin"], True, True, True),
        ],
    )
    async def test_roles(
        self, api: ApiBench, roles: list[str], reads: bool, writes: bool, manages: bool
    ) -> None:
        key = await api.issue_key(*roles)
        for path in BOTH_APIS:
            assert (await api.request("GET", path, key=key)).status == (200 if reads else 403)
            assert (await api.request("HEAD", path, key=key)).status == (200 if reads else 403)
        created = await api.request("POST", "/timers", create_body(), key=key)
        assert created.status == (201 if writes else 403)
        namespace = await api.request("PUT", "/api/v1/namespaces/n", {}, key=key)
        assert namespace.status == (200 if manages else 403)

    async def test_a_refusal_names_the_role_in_both_apis(self, api: ApiBench) -> None:
        key = await api.issue_key("read")
        platform = await api.request("POST", "/timers", create_body(), key=key)
        assert platform.error == (403, 4, "this key lacks the role 'write'")
        v1 = await api.request("DELETE", "/api/v1/timers/default/x", key=key)
        assert (v1.status, v1.json["error"]) == (403, "FORBIDDEN")

    async def test_the_platform_api_acts_in_the_only_namespace_of_a_key(
        self, api: ApiBench
    ) -> None:
        await api.request("PUT", "/api/v1/namespaces/team", {})
        key = await api.issue_key("admin", namespaces=["team"])
        id = (await api.request("POST", "/timers", create_body(), key=key)).data["id"]
        assert (await api.request("GET", f"/api/v1/timers/team/{id}")).status == 200
        assert (await api.request("GET", f"/timers/{id}", key=key)).status == 200
        assert (await api.request("GET", f"/timers/{id}")).status == 404
        assert (await api.request("GET", "/timers", key=key)).data["total"] == 1

    async def test_the_platform_api_is_closed_to_a_key_for_several_others(
        self, api: ApiBench
    ) -> None:
        key = await api.issue_key("admin", namespaces=["a", "b"])
        reply = await api.request("GET", "/timers", key=key)
        assert reply.error == (400, 2, "namespace 'default' does not exist")


class TestWrongKeys:
    @pytest.mark.parametrize("path", BOTH_APIS)
    async def test_they_are_throttled_per_address(self, api: ApiBench, path: str) -> None:
        right = await api.issue_key("read")
        one, other = "192.0.2.1", "192.0.2.2"
        for number in range(20):
            reply = await api.request("GET", path, key=f"guess {number}", address=one)
            assert reply.status == 401
        for guess in ("guess", f"dt_{'0' * 16}_guess", right[:-1]):
            refused = await api.request("GET", path, key=guess, address=one)
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
            assert refused.json["message"] == "too many wrong keys from this address"
        assert (await api.request("GET", path, key="guess", address=other)).status == 401
        for key in (right, API_KEY):
            assert (await api.request("GET", path, key=key, address=one)).status == 200
        api.clock.advance(1)
        assert (await api.request("GET", path, key="guess", address=one)).status == 401

    async def test_requests_without_a_key_are_no_guesses(self, api: ApiBench) -> None:
        for _ in range(50):
            reply = await call(api.app, "GET", "/timers", address="192.0.2.1")
            assert reply.status == 401


class AbsentTable(SecurityTable):
    is_away = False

    async def credentials(self, known_version: int | None) -> Credentials | None:
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().credentials(known_version)


class TestAbsentStore:
    @pytest.mark.parametrize("path", BOTH_APIS)
    async def test_whether_a_key_is_right_cannot_be_told_for_long(self, path: str) -> None:
        store, table = MemoryStore(), AbsentTable()
        store.security = table
        api = ApiBench(store)
        await api.open()
        key = await api.issue_key("read")
        table.is_away = True
        assert (await api.request("GET", path, key=key)).status == 200
        api.clock.advance(5)
        reply = await api.request("GET", path, key=key)
        assert (reply.status, reply.headers["retry-after"]) == (503, "2")
        assert (await api.request("GET", path, key=API_KEY)).status == 200
        assert (await api.request("GET", path, key="wrong")).status == 401
        assert plain_create(api, key) is None
        # Metrics are needed most now.
        assert (await api.request("GET", "/metrics", key=key)).status == 200
        assert (await api.request("GET", "/metrics", key="wrong")).status == 401


async def test_keys_are_not_looked_up_before_the_start(api: ApiBench) -> None:
    key = await api.issue_key("read")
    api.app.lifecycle.is_started = False
    for path in BOTH_APIS:
        for given in (key, "wrong"):
            reply = await api.request("GET", path, key=given)
            assert (reply.status, reply.headers["retry-after"]) == (503, "2")
    assert plain_create(api, key) is None


class TestLimits:
    @pytest.mark.parametrize("path", BOTH_APIS)
    async def test_the_rate_of_a_key(self, api: ApiBench, path: str) -> None:
        key = await api.issue_key("read", rateLimit={"perSecond": 0.2, "burst": 2})
        for _ in range(2):
            assert (await api.request("GET", path, key=key)).status == 200
        reply = await api.request("GET", path, key=key)
        assert (reply.status, reply.headers["retry-after"]) == (429, "5")
        assert reply.json["message"] == "this key sends too many requests"
        assert reply.json.get("error", "TOO_MANY_REQUESTS") == "TOO_MANY_REQUESTS"
        assert (await api.request("GET", path)).status == 200
        api.clock.advance(5)
        assert (await api.request("GET", path, key=key)).status == 200

    async def test_refused_requests_count(self, api: ApiBench) -> None:
        key = await api.issue_key("read", rateLimit={"perSecond": 1, "burst": 2})
        for status in (403, 403, 429):
            reply = await api.request("POST", "/timers", create_body(), key=key)
            assert reply.status == status

    async def test_the_settings_limit_keys_and_not_the_key_of_the_settings(self) -> None:
        api = ApiBench(key_limits=KeyLimits(RateLimit(1, 1)))
        await api.open()
        key = await api.issue_key("read")
        assert [(await api.request("GET", "/timers", key=key)).status for _ in range(2)] == [
            200,
            429,
        ]
        for _ in range(5):
            assert (await api.request("GET", "/timers")).status == 200

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/timers", create_body()),
            (
                "/api/v1/timers",
                {"id": "a", "executeIn": "1h", "callbackUrl": "https://example.com/"},
            ),
        ],
    )
    async def test_requests_under_way(self, path: str, body: object) -> None:
        store = GatedStore()
        api = ApiBench(store)
        await api.open()
        key = await api.issue_key("write", maxConcurrent=1)
        first = asyncio.create_task(api.request("POST", path, body, key=key))
        await store.started.acquire()
        second = await api.request("POST", path, body, key=key)
        assert (second.status, second.headers["retry-after"]) == (429, "1")
        assert "its limit of 1 requests under way" in second.json["message"]
        store.gate.release()
        assert (await first).status in (200, 201)
        store.gate.release()
        assert (await api.request("POST", path, body, key=key)).status in (200, 201)

    async def test_a_place_is_given_back_however_a_request_ends(self, api: ApiBench) -> None:
        key = await api.issue_key("read", "write", maxConcurrent=1)
        headers: RawHeaders = [key_header(key)]
        for _ in range(3):
            assert (await api.request("POST", "/timers", b"no JSON", key=key)).status == 400
            assert (await api.request("GET", "/timers/x", key=key)).status == 400
            assert (await api.request("GET", "/api/v1/timers?a=b", key=key)).status == 400
            assert (await api.request("GET", "/api/v1/keys", key=key)).status == 403
            with pytest.raises(ValueError, match="not enough values"):
                # The client is gone before its body is complete, so there is no answer.
                await call(api.app, "POST", "/timers", [], headers)
        assert (await api.request("GET", "/timers", key=key)).status == 200

    async def test_a_place_is_given_back_when_the_request_is_canceled(self) -> None:
        store = GatedStore()
        api = ApiBench(store)
        await api.open()
        key = await api.issue_key("read", "write", maxConcurrent=1)
        request = asyncio.create_task(api.request("POST", "/timers", create_body(), key=key))
        await store.started.acquire()
        request.cancel()
        await asyncio.wait({request})
        assert (await api.request("GET", "/timers", key=key)).status == 200
        store.gate.release()


BODY = msgspec.json.encode(create_body())


def plain_create(api: ApiBench, key: str, *more: tuple[bytes, bytes]) -> "asyncio.Future[Answer]":
    """The answer to a create on the fast path; None if that does not admit it."""
    headers = [key_header(key), (b"host", b"timers.example"), *more]
    return plain(api, [*headers, (b"content-length", b"%d" % len(BODY))])


def plain(api: ApiBench, headers: RawHeaders) -> "asyncio.Future[Answer]":
    caller = api.app.fast_create.admit(b"POST", b"/timers", headers)
    if caller is None:
        return None  # type: ignore[return-value]
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    api.app.fast_create.handle(caller, BODY, answered.set_result)
    return answered


class TestFastPath:
    async def test_it_takes_keys_in_both_headers(self, api: ApiBench) -> None:
        for key in (API_KEY, await api.issue_key("write"), await api.issue_key("admin")):
            assert (await plain_create(api, key)).status == 201
            length = (b"content-length", b"%d" % len(BODY))
            host = (b"host", b"timers.example")
            assert (await plain(api, [bearer(key), host, length])).status == 201

    async def test_it_leaves_doubtful_requests_to_the_usual_path(self, api: ApiBench) -> None:
        reader, writer = await api.issue_key("read"), await api.issue_key("write")
        for key, more in (
            (reader, []),
            ("wrong", []),
            (writer[:-1], []),
            (writer, [bearer(writer)]),
            (writer, [(b"authorization", b"Basic YTpi")]),
        ):
            assert plain_create(api, key, *more) is None

    async def test_revoked_and_expired_keys_do_not_pass(self, api: ApiBench) -> None:
        key = await api.issue_key("write", expiresAt="2030-01-01T00:00:03Z")
        assert (await plain_create(api, key)).status == 201
        api.clock.advance(3)
        assert plain_create(api, key) is None
        key = await api.issue_key("write")
        assert (await plain_create(api, key)).status == 201
        await api.request("DELETE", f"/api/v1/keys/{key.split('_')[1]}")
        assert plain_create(api, key) is None

    async def test_it_acts_in_the_only_namespace_of_the_key(self, api: ApiBench) -> None:
        await api.request("PUT", "/api/v1/namespaces/team", {})
        key = await api.issue_key("write", namespaces=["team"])
        answer = await plain_create(api, key)
        id = msgspec.json.decode(answer.content)["data"]["id"]
        assert (await api.request("GET", f"/api/v1/timers/team/{id}")).status == 200

    async def test_a_key_for_several_others_gets_the_same_answer_as_on_the_usual_path(
        self, api: ApiBench
    ) -> None:
        key = await api.issue_key("write", namespaces=["a", "b"])
        usual = await api.request("POST", "/timers", create_body(), key=key)
        answer = await plain_create(api, key)
        assert (answer.status, answer.content) == (usual.status, usual.content)
        assert usual.error == (400, 2, "namespace 'default' does not exist")
        assert not any((await api.timers_stored()).values())

    async def test_the_rate_of_a_key(self, api: ApiBench) -> None:
        key = await api.issue_key("write", rateLimit={"perSecond": 0.5, "burst": 1})
        assert (await plain_create(api, key)).status == 201
        refused = await plain_create(api, key)
        assert refused.status == 429
        assert (b"retry-after", b"2") in refused.headers
        usual = await api.request("POST", "/timers", create_body(), key=key)
        assert usual.content == refused.content

    async def test_requests_under_way_whatever_becomes_of_them(self) -> None:
        store = GatedStore()
        api = ApiBench(store)
        await api.open()
        key = await api.issue_key("write", maxConcurrent=1)
        for failure in (None, StoreUnavailable("away"), RuntimeError("a bug"), None):
            if failure is not None:
                store.failures.append(failure)
            first = plain_create(api, key)
            assert (await plain_create(api, key)).status == 429
            await store.started.acquire()
            store.gate.release()
            assert (await first).status in (201, 500, 503)

    async def test_an_admitted_request_whose_body_never_comes_takes_no_place(
        self, api: ApiBench
    ) -> None:
        key = await api.issue_key("write", maxConcurrent=1)
        headers = [key_header(key), (b"host", b"x"), (b"content-length", b"100")]
        for _ in range(3):
            assert api.app.fast_create.admit(b"POST", b"/timers", headers)
        assert (await plain_create(api, key)).status == 201
