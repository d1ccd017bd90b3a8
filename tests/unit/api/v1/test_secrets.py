"""The secrets of a namespace through the v1 API, and their public keys."""

import base64
import string
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from structlog.testing import capture_logs

from duetime.domain.security.credentials import SecretKind
from duetime.domain.security.secret_text import format_secret
from tests.unit.api.asgi_client import Reply, call
from tests.unit.api.v1.v1_bench import V1Bench, error_of

PATH = "/api/v1/namespaces/notifications/secrets"
JWKS = "/.well-known/jwks.json"
CONFIGURED = format_secret(SecretKind.ED25519, b"c" * 32)


async def listed(bench: V1Bench, path: str = PATH) -> list[dict[str, object]]:
    reply = await bench.request("GET", path)
    assert reply.status == 200
    secrets: list[dict[str, object]] = reply.json["secrets"]
    return secrets


async def jwks(bench: V1Bench, query: str = "?namespace=notifications") -> Reply:
    return await call(bench.app, "GET", f"{JWKS}{query}", [b""], [])


@pytest.mark.parametrize("body", [b"", b"{}", b'{"type": "hmac"}'])
async def test_a_secret_is_shown_when_it_is_created(bench: V1Bench, body: bytes) -> None:
    reply = await bench.request("POST", PATH, body)
    assert reply.status == 201
    assert reply.headers["cache-control"] == "no-store"
    new = reply.json
    secret = new.pop("secret")
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert new == {
        "id": new["id"],
        "type": "hmac",
        "createdAt": "2030-01-01T00:00:00Z",
        "expiresAt": None,
    }
    assert len(bench.signers.signers("notifications")) == 1
    assert await listed(bench) == [new]


async def test_no_secret_is_shown_again_nor_logged(bench: V1Bench) -> None:
    with capture_logs() as logs:
        made = [await bench.request("POST", PATH, {"type": kind}) for kind in ("hmac", "ed25519")]
        for reply in made:
            answers = [
                await bench.request("GET", PATH),
                await bench.request("GET", "/api/v1/namespaces/notifications"),
                await jwks(bench),
                await bench.request("DELETE", f"{PATH}/{reply.json['id']}"),
            ]
            key = reply.json["secret"].partition("_")[2].rstrip("=").encode()
            assert all(key not in answer.content for answer in answers)
            assert key.decode() not in str(logs)


async def test_a_rotation_shows_when_the_others_expire(bench: V1Bench) -> None:
    old = (await bench.request("POST", PATH)).json
    bench.clock.advance(1)
    new = (await bench.request("POST", PATH, {"expireOthersAfter": "24h"})).json
    assert [(each["id"], each["expiresAt"]) for each in await listed(bench)] == [
        (old["id"], "2030-01-02T00:00:01Z"),
        (new["id"], None),
    ]


async def test_a_revoked_secret_is_gone(bench: V1Bench) -> None:
    new = (await bench.request("POST", PATH)).json
    assert (await bench.request("DELETE", f"{PATH}/{new['id']}")).status == 204
    assert await listed(bench) == []
    assert bench.signers.signers("notifications") == ()
    again = await bench.request("DELETE", f"{PATH}/{new['id']}")
    assert error_of(again) == (404, "SECRET_NOT_FOUND", "secret not found")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "body must be an object"),
        (b'{"type": "rsa"}', "type must be 'hmac' or 'ed25519'"),
        (b'{"type": 1}', "type must be a string"),
        (b'{"expireOthersAfter": 24}', "expireOthersAfter must be a string"),
        (b'{"expireOthersAfter": "31d"}', "expireOthersAfter must be from 0s to 30d"),
        (b'{"secret": "whsec_AAAA"}', "secret is not a known field"),
    ],
)
async def test_bad_bodies_are_refused_by_field(bench: V1Bench, body: bytes, message: str) -> None:
    status, error, told = error_of(await bench.request("POST", PATH, body))
    assert (status, error) == (400, "INVALID_INPUT")
    assert told.startswith(message)
    assert await listed(bench) == []


async def test_a_duration_that_is_none_is_refused(bench: V1Bench) -> None:
    reply = await bench.request("POST", PATH, {"expireOthersAfter": "soon"})
    assert error_of(reply)[2].startswith("expireOthersAfter must")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_unknown_namespace_is_not_found(bench: V1Bench, method: str) -> None:
    path = "/api/v1/namespaces/unknown/secrets" + ("/id" if method == "DELETE" else "")
    reply = await bench.request(method, path)
    assert error_of(reply)[:2] == (404, "NAMESPACE_NOT_FOUND")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_secrets_need_a_key(bench: V1Bench, method: str) -> None:
    path = PATH + ("/id" if method == "DELETE" else "")
    assert (await call(bench.app, method, path, [b""], [])).status == 401


async def test_the_eleventh_secret_is_refused(bench: V1Bench) -> None:
    for _ in range(10):
        assert (await bench.request("POST", PATH)).status == 201
    assert error_of(await bench.request("POST", PATH)) == (
        409,
        "TOO_MANY_SECRETS",
        "namespace 'notifications' has 10 secrets: revoke one first",
    )


async def test_a_configured_secret_is_listed_and_cannot_be_revoked() -> None:
    bench = await V1Bench(webhook_secrets=[CONFIGURED]).open()
    path = "/api/v1/namespaces/default/secrets"
    (only,) = await listed(bench, path)
    assert (only["id"], only["createdAt"]) == ("configured-1", None)
    reply = await bench.request("DELETE", f"{path}/configured-1")
    assert error_of(reply)[:2] == (409, "SECRET_CONFIGURED")
    assert "WEBHOOK_SECRETS" in error_of(reply)[2]


async def test_the_public_keys_verify_signatures_and_name_no_namespace(bench: V1Bench) -> None:
    assert (await jwks(bench)).json == {"keys": []}
    new = (await bench.request("POST", PATH, {"type": "ed25519"})).json
    await bench.request("POST", PATH, {"type": "hmac"})
    reply = await jwks(bench)
    assert reply.status == 200
    assert reply.headers["cache-control"] == "public, max-age=60"
    assert b"notifications" not in reply.content
    (key,) = reply.json["keys"]
    x = key.pop("x")
    assert key == {"kid": new["id"], "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
    assert set(x) <= set(string.ascii_letters + string.digits + "-_")
    raw = base64.urlsafe_b64decode(x + "=")
    assert new["publicKey"] == "whpk_" + base64.b64encode(raw).decode()
    signer = bench.signers.signers("notifications")[1]
    signature = signer.sign(b"id.1900000000.body").removeprefix(b"v1a,")
    public = Ed25519PublicKey.from_public_bytes(raw)
    public.verify(base64.b64decode(signature), b"id.1900000000.body")


async def test_public_keys_are_those_of_the_namespace_that_is_asked_for(bench: V1Bench) -> None:
    for name in ("default", "notifications"):
        path = f"/api/v1/namespaces/{name}/secrets"
        new = (await bench.request("POST", path, {"type": "ed25519"})).json
        assert UUID(new["id"]).version == 4
        reply = await jwks(bench, f"?namespace={name}")
        assert [each["kid"] for each in reply.json["keys"]] == [new["id"]]
        assert name.encode() not in reply.content
    assert (await jwks(bench, "")).json == (await jwks(bench, "?namespace=default")).json
    nothing = await jwks(bench, "?namespace=audit")
    for query in ("?namespace=unknown", "?namespace=", "?namespace=%00", "?namespace=" + "x" * 999):
        other = await jwks(bench, query)
        assert (other.status, other.content) == (nothing.status, nothing.content)
    assert nothing.json == {"keys": []}


@pytest.mark.parametrize(
    ("query", "field"), [("?ns=a", "ns"), ("?namespace=a&namespace=b", "namespace")]
)
async def test_a_wrong_parameter_of_the_public_keys_is_named(
    bench: V1Bench, query: str, field: str
) -> None:
    reply = await jwks(bench, query)
    assert reply.status == 400
    assert reply.json["message"].startswith(f"{field} is ")


async def test_a_deleted_namespace_takes_its_secrets_along(bench: V1Bench) -> None:
    await bench.request("POST", PATH)
    bench.bulk_runner.start()
    started = await bench.request("DELETE", "/api/v1/namespaces/notifications")
    operation = f"/api/v1/operations/{started.json['id']}"
    while (await bench.request("GET", operation)).json["status"] == "running":
        bench.clock.advance(1)
        await bench.clock.sleep(0)
    await bench.bulk_runner.stop()
    await bench.request("PUT", "/api/v1/namespaces/notifications", {})
    assert await listed(bench) == []
    assert (await bench.create_v1(namespace="notifications")).status == 200
    assert bench.signers.signers("notifications") == ()
