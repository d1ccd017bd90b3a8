"""Encryption at rest: nothing readable in the database, and no timer lost without the key."""

from base64 import b64encode
from pathlib import Path

import asyncpg
import pytest
from standardwebhooks import Webhook

from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.databases import (
    Database,
    PostgresDatabase,
    SqliteDatabase,
    on_every_database,
)
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, wait_for_status
from tests.real_server.v1_requests import TIMERS, create_v1, v1_path

pytestmark = pytest.mark.e2e

K1, K2 = (f"k{number}:{b64encode(bytes([number]) * 32).decode()}" for number in (1, 2))
MARK = b"s3cr3t-m4rk"
VISIBLE = b"v1s1ble-m4rk"
HEADERS = {"Authorization": "Bearer s3cr3t-m4rk-1", "X-Tag": "s3cr3t-m4rk-2"}
PAYLOAD = {"text": "s3cr3t-m4rk-3"}
FAR_MS = 3_600_000


def server_with(directory: Path, database: Database, keys: str) -> ServerProcess:
    return ServerProcess(directory, ENCRYPTION_KEYS=keys, **database.settings)


async def stored_bytes(database: Database) -> bytes:
    """Everything that the database has on disk, and all its rows."""
    if isinstance(database, SqliteDatabase):
        files = sorted(database.path.parent.glob(f"{database.path.name}*"))
        assert any(file.name.endswith("-wal") for file in files)
        return b"".join(file.read_bytes() for file in files)
    assert isinstance(database, PostgresDatabase)
    connection = await asyncpg.connect(database.url)
    try:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = $1", database.schema
        )
        rows = [
            row["text"]
            for (table,) in tables
            for row in await connection.fetch(
                f'SELECT each::text AS text FROM "{database.schema}"."{table}" AS each'
            )
        ]
        await connection.execute("CHECKPOINT")
        directory = Path(await connection.fetchval("SHOW data_directory"))
    finally:
        await connection.close()
    files = [*directory.glob("base/*/*"), *directory.glob("pg_wal/*")]
    return b"".join(
        ["\n".join(rows).encode(), *(file.read_bytes() for file in files if file.is_file())]
    )


@on_every_database
async def test_the_database_has_nothing_to_read(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    callback = {"headers": HEADERS, "payload": PAYLOAD}
    receiver.script("/v1s1ble-m4rk-failing", Answer(500))
    async with server_with(tmp_path, database, K1) as server, server.client() as api:
        url = receiver.url.replace("//", "//user:s3cr3t-m4rk-4@") + "/v1s1ble-m4rk"
        await create_timer(api, url, in_ms(FAR_MS), callback=callback)
        created = await api.post("/api/v1/namespaces/default/secrets", json={})
        assert created.status_code == 201, created.text
        secret = created.json()["secret"].removeprefix("whsec_").encode()
        more = {"callbackHeaders": HEADERS, "payload": PAYLOAD}
        await create_v1(api, "far", url, in_ms(FAR_MS), **more)
        answer = await api.put(v1_path("far"), json={"payload": ["s3cr3t-m4rk-5"]})
        assert answer.is_success, answer.text
        fired = await create_timer(api, url, in_ms(100), callback=callback)
        await wait_for_status(api, fired, "completed")
        failed = await create_timer(api, f"{url}-failing", in_ms(100), callback=callback)
        await wait_for_status(api, failed, "failed")
        request = receiver.of("/v1s1ble-m4rk")[0]
        assert (request.headers["authorization"], request.headers["x-tag"]) == (
            HEADERS["Authorization"],
            HEADERS["X-Tag"],
        )
        assert request.headers["webhook-signature"].startswith("v1,")
        assert b"s3cr3t-m4rk-3" in request.body
        shown = (await api.get(f"{v1_path('far')}?secrets=true")).json()
        assert (shown["callbackUrl"], shown["callbackHeaders"]) == (url, HEADERS)
        stored = await stored_bytes(database)
    assert VISIBLE in stored
    assert MARK not in stored
    assert secret not in stored


@on_every_database
async def test_timers_without_their_key_wait_for_it(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    async with server_with(tmp_path, database, K1) as server, server.client() as api:
        more = {"callbackHeaders": HEADERS, "payload": PAYLOAD}
        await create_v1(api, "far", f"{receiver.url}/far", in_ms(FAR_MS), **more)
        # It fires once the key is there: this server stops right now.
        await create_v1(api, "due", f"{receiver.url}/due", in_ms(2_000), **more)
        await server.kill()

    async with server_with(tmp_path, database, K2) as server, server.client() as api:
        short = await server.wait_for_log("engine.short")
        assert short["resource"] == "encryption key k1"
        assert "ENCRYPTION_KEYS" in str(short["advice"])
        answer = await api.get(v1_path("far"))
        assert answer.status_code == 503
        assert answer.json()["message"] == (
            "the stored timer 'far' cannot be decrypted: the key 'k1' is not among ENCRYPTION_KEYS"
        )
        page = (await api.get(TIMERS)).json()
        assert (page["timers"], page["unreadable"]) == ([], 2)
        new = await create_timer(api, f"{receiver.url}/new", in_ms(100))
        await wait_for_status(api, new, "completed")
        assert not any("Traceback" in line for line in server.output)
        assert await server.stop() == 0
    assert receiver.of("/due") == []

    async with server_with(tmp_path, database, f"{K2},{K1}") as server, server.client() as api:
        (request,) = await receiver.wait_for(1, lambda each: each.target == "/due")
        assert request.headers["timer-attempt"] == "1"
        assert request.headers["authorization"] == HEADERS["Authorization"]
        assert b'"payload":{"text":"s3cr3t-m4rk-3"}' in request.body.replace(b" ", b"")
        assert (await api.get(v1_path("far"))).json()["payload"] == PAYLOAD


@on_every_database
async def test_callbacks_without_the_key_of_their_secret_wait_for_it_and_are_never_unsigned(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    async with server_with(tmp_path, database, K1) as server, server.client() as api:
        created = await api.post("/api/v1/namespaces/default/secrets", json={})
        secret = created.json()["secret"]
        assert await server.stop() == 0

    async with server_with(tmp_path, database, K2) as server, server.client() as api:
        await create_v1(api, "due", f"{receiver.url}/due", in_ms(100))
        short = await server.wait_for_log("engine.short")
        assert short["resource"] == "encryption key k1"
        assert await server.stop() == 0
    assert receiver.of("/due") == []

    async with server_with(tmp_path, database, f"{K2},{K1}") as server:
        (request,) = await receiver.wait_for(1, lambda each: each.target == "/due")
        Webhook(secret).verify(request.body, request.headers, json_parse=False)
        assert request.headers["timer-attempt"] == "1"
        assert await server.stop() == 0

    # The secret was sealed again by the first key, and the old one can go.
    async with server_with(tmp_path, database, K2) as server, server.client() as api:
        await create_v1(api, "later", f"{receiver.url}/later", in_ms(100))
        (request,) = await receiver.wait_for(1, lambda each: each.target == "/later")
        Webhook(secret).verify(request.body, request.headers, json_parse=False)
