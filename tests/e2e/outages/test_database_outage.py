"""The database goes away under load and comes back: no timer is lost, and requests fail clearly."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duetime.domain.instants import Instant, plus_ms
from tests.crash.load_client import LoadClient
from tests.crash.promises import Audit
from tests.crash.stored_timers import stored_timers
from tests.polling import poll
from tests.postgres.fixtures import MakePostgres
from tests.postgres.relay import Relay
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.databases import PostgresDatabase
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, now, timer_body, wait_until_dry
from tests.real_server.v1_requests import v1_body
from tests.seed import chosen_seed

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CLIENTS = 8
CALLBACKS_BEFORE = 150
CREATES_BEFORE = 1_000
CREATES_AFTER = 50
LONGEST_DELAY_AFTER_MS = 1_000
CALLBACK_SECONDS = 0.1
MARGIN_MS = 1_000
HEALTH_SECONDS = 5.0
HOUR_MS = 3_600_000
NOBODY = "http://127.0.0.1:9/nobody"
ONCE = {"retryPolicy": {"maxRetries": 0}}


class Load:
    """Clients of a server whose database goes away, and the audit of their timers."""

    def __init__(
        self, server: ServerProcess, receiver: CallbackReceiver, *, longest_delay_ms: float
    ) -> None:
        seed = chosen_seed()
        self._server = server
        self._receiver = receiver
        self._started_at = now()
        self._clients = [
            LoadClient(
                f"c{number}",
                receiver.url,
                random.Random(seed + number),
                longest_delay_ms=longest_delay_ms,
                may_fail=True,
            )
            for number in range(CLIENTS)
        ]
        self._outages: list[tuple[Instant, Instant]] = []
        self._back = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Encloses an outage. It begins once many callbacks have come, and ends when the clients
        have made a few more requests."""
        self._receiver.reaction = Answer(delay_seconds=CALLBACK_SECONDS)
        self._back.clear()
        until = len(self._receiver.requests) + CALLBACKS_BEFORE
        async with asyncio.TaskGroup() as group:
            for client in self._clients:
                group.create_task(self._use(client))
            await self._receiver.wait_for_total(until)
            began_at = now()
            yield
            self._outages.append((began_at, now()))
            self._back.set()

    async def _use(self, client: LoadClient) -> None:
        await client.run(self._server.url, CREATES_BEFORE)
        await self._back.wait()
        client.longest_delay_ms = LONGEST_DELAY_AFTER_MS
        await client.run(self._server.url, CREATES_AFTER)

    async def audit(self, database: PostgresDatabase) -> None:
        """Waits until every timer is finished, stops the server, and checks every promise."""
        async with self._server.client() as api:
            counts = await wait_until_dry(api)
        assert await self._server.stop() == 0
        promises = [promise for client in self._clients for promise in client.promises]
        timers = await stored_timers(database)
        starts = [self._started_at, *(began_at for began_at, _ in self._outages)]
        audit = Audit(promises, self._receiver.requests, timers, starts)
        audit.check()
        sys.stdout.write(f"{len(promises)} creates, {counts}, repeats {audit.repeats_by_life}\n")
        assert counts["completed"] > CALLBACKS_BEFORE
        assert not self._repeated() - self._in_flight()
        assert not any("Traceback" in line for line in self._server.output)

    def _repeated(self) -> set[str]:
        counts = Counter(request.headers["webhook-id"] for request in self._receiver.requests)
        return {webhook_id for webhook_id, count in counts.items() if count > 1}

    def _in_flight(self) -> set[str]:
        """The callbacks that were sent and perhaps not settled before the database went away."""
        return {
            request.headers["webhook-id"]
            for request in self._receiver.requests
            for began_at, ended_at in self._outages
            if plus_ms(began_at, -MARGIN_MS) <= request.arrived_at <= ended_at
        }


async def test_a_database_out_of_reach_for_ten_seconds_costs_no_timer(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    with Relay(postgres_url) as relay:
        database = PostgresDatabase(relay.url, postgres_schema)
        async with ServerProcess(tmp_path, **database.settings) as server:
            known = await a_timer(server)
            load = Load(server, receiver, longest_delay_ms=11_000)
            async with load.running():
                relay.cut()
                relay.heal_after(10)
                await check_answers_while_away(server, known, longest_seconds=8)
                await relay.wait_until_healed()
                await wait_until_healthy(server)
            await delete(server, known)
            await load.audit(PostgresDatabase(postgres_url, postgres_schema))


async def test_a_database_that_stops_answering_costs_no_timer(
    tmp_path: Path, receiver: CallbackReceiver, postgres_url: str, postgres_schema: str
) -> None:
    """As if a firewall dropped all packets: connections stay open, and no answer comes."""
    with Relay(postgres_url) as relay:
        database = PostgresDatabase(relay.url, postgres_schema)
        settings = {"PG_STATEMENT_TIMEOUT_SECONDS": "1", "LEASE_SECONDS": "4"}
        async with ServerProcess(tmp_path, **database.settings, **settings) as server:
            known = await a_timer(server)
            load = Load(server, receiver, longest_delay_ms=6_000)
            async with load.running():
                relay.freeze()
                await check_answers_while_away(server, known, longest_seconds=9)
                relay.heal()
                await wait_until_healthy(server)
            await delete(server, known)
            await load.audit(PostgresDatabase(postgres_url, postgres_schema))


async def test_a_database_crash_costs_no_timer(
    tmp_path: Path, receiver: CallbackReceiver, make_postgres: MakePostgres
) -> None:
    with make_postgres(durable=True) as postgres:
        database = PostgresDatabase(postgres.url, "duetime")
        async with ServerProcess(tmp_path, **database.settings) as server:
            load = Load(server, receiver, longest_delay_ms=3_000)
            async with load.running():
                await asyncio.to_thread(postgres.restart, "immediate")
                await wait_until_healthy(server)
            await load.audit(database)


async def test_health_is_answered_in_time_while_the_database_hangs(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    """A connection is open and idle, and statements may take longer than the health check."""
    with Relay(postgres_url) as relay:
        database = PostgresDatabase(relay.url, postgres_schema)
        async with ServerProcess(tmp_path, **database.settings) as server:
            await wait_until_healthy(server)
            relay.freeze()
            await check_health_while_away(server)


async def check_health_while_away(server: ServerProcess) -> None:
    async with server.client() as api, asyncio.timeout(HEALTH_SECONDS):
        answer = await api.get("/healthz")
    assert answer.status_code == 500
    body = answer.json()
    assert (body["code"], body["message"]) == (1, "database connection failed")
    assert (body["data"]["status"], body["data"]["database"]) == ("degraded", "disconnected")


async def check_answers_while_away(
    server: ServerProcess, known: str, *, longest_seconds: float
) -> None:
    """Every request is answered soon, and in the usual form."""
    await check_health_while_away(server)
    async with server.client() as api:
        body = timer_body(NOBODY, in_ms(1_000))
        async with asyncio.timeout(longest_seconds):
            platform = asyncio.gather(
                api.post("/timers", json=body),
                api.get(f"/timers/{known}"),
                api.get("/timers"),
                api.put(f"/timers/{known}", json={"metadata": 1}),
                api.delete(f"/timers/{known}"),
            )
            v1 = asyncio.gather(
                api.post("/api/v1/timers", json=v1_body("away", NOBODY, in_ms(1_000), **ONCE)),
                api.get(f"/api/v1/timers/default/{known}"),
                api.post(f"/api/v1/timers/default/{known}/cancel"),
                api.get("/api/v1/timers"),
                api.get("/api/v1/namespaces"),
            )
            probes = asyncio.gather(api.get("/livez"), api.get("/readyz"))
            answers, in_v1, (alive, ready) = await asyncio.gather(platform, v1, probes)
        for answer in answers:
            assert answer.status_code == 503, answer.text
            assert set(answer.json()) == {"code", "message", "data"}
            assert answer.json()["code"] == 1
            assert answer.json()["message"]
        for answer in in_v1:
            assert answer.status_code == 503, answer.text
            assert answer.json()["error"] == "SERVICE_UNAVAILABLE"
        assert all(int(answer.headers["retry-after"]) > 0 for answer in (*answers, *in_v1, ready))
        assert (alive.status_code, ready.status_code) == (200, 503)
        # Requests that need no database are answered as ever.
        wrong = await api.post("/timers", json={"callback": 1})
        assert (wrong.status_code, wrong.json()["code"]) == (400, 2)


async def a_timer(server: ServerProcess) -> str:
    async with server.client() as api:
        return await create_timer(api, NOBODY + "/known", in_ms(HOUR_MS))


async def delete(server: ServerProcess, timer_id: str) -> None:
    async with server.client() as api:
        assert (await api.delete(f"/timers/{timer_id}")).status_code == 200


async def wait_until_healthy(server: ServerProcess) -> None:
    async with server.client() as api:
        await poll(lambda: api.get("/healthz"), lambda answer: answer.status_code == 200)
