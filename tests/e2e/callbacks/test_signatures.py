"""Signed callbacks of a real server, verified by the official library at a real receiver."""

import base64
import json
import signal
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook, WebhookVerificationError

from duetime.domain.security.credentials import SecretKind
from duetime.domain.security.secret_text import format_secret
from tests.real_server.callback_receiver import Answer, CallbackReceiver, Request
from tests.real_server.command import Cli, Command, run_command
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import Json, in_ms
from tests.real_server.v1_requests import create_v1, wait_for_v1

pytestmark = pytest.mark.e2e

SECRETS = "/api/v1/namespaces/default/secrets"
CONFIGURED = format_secret(SecretKind.HMAC, b"c" * 32)


async def new_secret(api: httpx.AsyncClient, **body: str) -> Json:
    answer = await api.post(SECRETS, json=body)
    assert answer.status_code == 201, answer.text
    secret: Json = answer.json()
    return secret


async def fired(api: httpx.AsyncClient, receiver: CallbackReceiver, id: str) -> Request:
    receiver.reaction = Answer(body=b'{"ok": true}')
    await create_v1(api, id, f"{receiver.url}/{id}", in_ms(100), payload={"text": "\N{SNOWMAN}"})
    (request,) = await receiver.wait_for(1, lambda request: request.target == f"/{id}")
    return request


def accepts(secret: str, request: Request) -> bool:
    try:
        Webhook(secret).verify(request.body, request.headers)
    except WebhookVerificationError:
        return False
    return True


@on_every_database
async def test_the_official_library_accepts_callbacks_before_during_and_after_a_rotation(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    assert "webhook-signature" not in (await fired(api, receiver, "unsigned")).headers
    old = await new_secret(api)
    before = await fired(api, receiver, "before")
    new = await new_secret(api, expireOthersAfter="1h")
    during = await fired(api, receiver, "during")
    assert (await api.delete(f"{SECRETS}/{old['id']}")).status_code == 204
    after = await fired(api, receiver, "after")
    verdicts = [
        (accepts(old["secret"], request), accepts(new["secret"], request))
        for request in (before, during, after)
    ]
    assert verdicts == [(True, False), (True, True), (False, True)]
    during.body = during.body.replace(b"during", b"forged")
    assert not accepts(new["secret"], during)


@on_every_database
async def test_secrets_survive_a_restart_and_are_in_no_log(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    settings = {**database.settings, "LOG_LEVEL": "trace", "WEBHOOK_SECRETS": CONFIGURED}
    async with ServerProcess(tmp_path, **settings) as server:
        async with server.client() as api:
            made = [await new_secret(api, type=kind) for kind in ("hmac", "ed25519")]
            listed = (await api.get(SECRETS)).json()
        assert await server.stop() == 0
        await server.start()
        async with server.client() as api:
            assert (await api.get(SECRETS)).json() == listed
            request = await fired(api, receiver, "one")
            assert accepts(made[0]["secret"], request)
            assert accepts(CONFIGURED, request)
        assert await server.stop() == 0
    shown = "\n".join([*server.output, json.dumps(listed)])
    for secret in (CONFIGURED, *(each["secret"] for each in made)):
        assert secret.partition("_")[2] not in shown
    assert [each["id"] for each in listed["secrets"]] == [
        "configured-1",
        *(each["id"] for each in made),
    ]


async def test_the_published_key_verifies_a_callback(
    server: ServerProcess, api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    new = await new_secret(api, type="ed25519")
    request = await fired(api, receiver, "one")
    async with httpx.AsyncClient(trust_env=False) as anybody:
        keys = (await anybody.get(f"{server.url}/.well-known/jwks.json")).json()["keys"]
    (key,) = (each for each in keys if each["kid"] == new["id"])
    version, _, signature = request.headers["webhook-signature"].partition(",")
    assert version == "v1a"
    headers = request.headers
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
    public.verify(base64.b64decode(signature), content)


async def test_listen_verifies_callbacks_with_the_secret_of_the_command_line(
    server: ServerProcess, api: httpx.AsyncClient, cli: Cli, tmp_path: Path
) -> None:
    made = await cli.data("secrets", "create", "default")
    text = str(made["secret"])
    listen = ("listen", "--port", "0", "--secret", text)
    async with Command(*listen, directory=tmp_path) as command:
        url = (await command.line()).split()[2]
        await create_v1(api, "genuine", url, in_ms(100))
        assert "  signature verified  → 200" in await command.line()
        async with httpx.AsyncClient(trust_env=False) as client:
            forged = await client.post(url, json={})
        assert forged.status_code == 401
        assert "  signature refused: it is not signed  → 401" in await command.line()
        rotated = await cli("secrets", "rotate", "default", "--overlap", "0s")
        assert rotated.status == 0
        none = {"maxRetries": 0}
        await create_v1(api, "unknown", url, in_ms(100), retryPolicy=none)
        assert "no signature matches" in await command.line()
        timer = await wait_for_v1(api, "unknown", "failed")
        assert timer["lastError"].startswith("HTTP 401")
        assert await command.end(signal.SIGINT) == 0
    assert (await wait_for_v1(api, "genuine", "completed"))["attempts"][0]["error"] is None


async def test_secrets_on_the_command_line(server: ServerProcess, cli: Cli) -> None:
    created = await cli("secrets", "create", "default", "--type", "ed25519")
    assert "It is shown only now." in created.output
    (line,) = (line for line in created.output.splitlines() if line.startswith("secret: "))
    listed = await cli("secrets", "list", "default")
    assert line.partition(": ")[2] not in listed.output
    id = listed.output.splitlines()[1].split("\t")[0]
    assert (await cli("secrets", "revoke", "default", id)).output == f"Secret {id} revoked.\n"
    again = await cli("secrets", "revoke", "default", id)
    assert (again.status, again.errors) == (1, "secret not found\n")
    missing = await cli("secrets", "create", "nowhere")
    assert missing.status == 1
    assert "`duetime namespaces set nowhere` creates it" in missing.errors


async def test_a_bad_setting_is_refused_without_showing_it(tmp_path: Path) -> None:
    secret = "whsec_" + base64.b64encode(b"too short").decode()
    finished = await run_command(
        "serve",
        directory=tmp_path,
        API_KEY="k" * 32,
        WEBHOOK_SECRETS=f"{CONFIGURED}, {secret}",
    )
    assert finished.status == 2
    assert finished.errors == (
        "WEBHOOK_SECRETS: must be a list of secrets, and number 2 must be whsec_ and 24 to 64 "
        "bytes in base64, not 9\n"
    )
