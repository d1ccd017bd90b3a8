"""The server is killed five times in a row while batches are created, repeated, and fired."""

import asyncio
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from duetime.domain.instants import parse_instant, plus_ms
from tests.effort import scaled
from tests.polling import poll
from tests.real_server.api_connection import ApiConnection, ConnectionEnded
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import Json, in_ms, now
from tests.real_server.v1_requests import TIMERS, v1_body
from tests.seed import chosen_seed

pytestmark = [pytest.mark.crash, pytest.mark.slow]

KILLS = scaled(5)
CLIENTS = 4
LARGEST_BATCH = 300
MOST_ACCEPTED_IN_A_LIFE = 2_000
AN_HOUR_MS = 3_600_000


class BatchClient:
    """Creates batches until the server is gone, then repeats the unanswered batch."""

    def __init__(self, name: str, receiver_url: str, chance: random.Random) -> None:
        self._name = name
        self._receiver_url = receiver_url
        self._chance = chance
        self._unanswered: list[Json] = []
        self._made = 0
        self.accepted: dict[str, Json] = {}

    async def run(self, url: str, on_accepted: asyncio.Semaphore) -> None:
        try:
            async with ApiConnection(url) as connection:
                while True:
                    batch = self._unanswered or self._next_batch()
                    self._unanswered = batch
                    answer = await connection.request("POST", f"{TIMERS}/batch", {"timers": batch})
                    assert answer.status == 200, answer
                    for body, result in zip(batch, answer.body["results"], strict=True):
                        if result["status"] == "invalid":
                            # The request came too late: the server was gone, or the machine busy.
                            assert "in the future" in result["error"]["message"], result
                            assert parse_instant(body["executeAt"]) <= now()
                        else:
                            assert result["status"] in ("created", "existing"), result
                            self.accepted[body["id"]] = body
                    self._unanswered = []
                    for _ in batch:
                        on_accepted.release()
        except (ConnectionEnded, ConnectionError):
            return

    def _next_batch(self) -> list[Json]:
        """Timers that are due soon, and timers that stay pending."""
        batch = []
        for _ in range(self._chance.randint(1, LARGEST_BATCH)):
            self._made += 1
            is_near = self._chance.random() < 0.3
            delay_ms = self._chance.uniform(500, 2_000) if is_near else AN_HOUR_MS
            timer_id = f"{self._name}/{self._chance.random()}/{self._made}"
            due_at = plus_ms(now(), delay_ms + self._chance.uniform(0, 1_000))
            batch.append(v1_body(timer_id, self._receiver_url, due_at, payload=self._made))
        return batch


@on_every_database
async def test_every_timer_of_an_answered_batch_is_stored_and_fires(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(body=b'{"ok": true}')
    seed = chosen_seed()
    chance = random.Random(seed)
    clients = [BatchClient(f"c{n}", receiver.url, random.Random(seed + n)) for n in range(CLIENTS)]
    server = ServerProcess(tmp_path, **database.settings)
    for _ in range(KILLS):
        async with server:
            await _kill_when_accepted(server, clients, chance.randint(1, MOST_ACCEPTED_IN_A_LIFE))
    async with server:
        near_are_over_at = in_ms(4_000)
        listed = await poll(
            lambda: _all_timers(server),
            lambda listed: now() >= near_are_over_at and not _unfinished_near(listed),
        )

    accepted = {id: body for client in clients for id, body in client.accepted.items()}
    assert accepted.keys() <= listed.keys()
    for timer_id, body in accepted.items():
        timer = listed[timer_id]
        assert (timer["executeAt"], timer["payload"]) == (body["executeAt"], body["payload"])
    statuses = Counter(timer["status"] for timer in listed.values())
    assert statuses.keys() == {"pending", "completed"}
    fired = Counter(request.headers["webhook-id"] for request in receiver.requests)
    completed = {timer["deliveryId"] for timer in listed.values() if timer["status"] == "completed"}
    assert completed <= fired.keys()
    sys.stdout.write(f"{len(accepted)} accepted, {statuses}, {len(receiver.requests)} callbacks\n")


async def _kill_when_accepted(
    server: ServerProcess, clients: list[BatchClient], count: int
) -> None:
    accepted = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(server.url, accepted))
        for _ in range(count):
            await accepted.acquire()
        await server.kill()


def _unfinished_near(listed: dict[str, Json]) -> bool:
    far_from = in_ms(AN_HOUR_MS / 2)
    return any(
        timer["status"] in ("pending", "executing") and parse_instant(timer["executeAt"]) < far_from
        for timer in listed.values()
    )


async def _all_timers(server: ServerProcess) -> dict[str, Json]:
    """Every timer by its id, page by page. No timer is on two pages."""
    timers: dict[str, Json] = {}
    cursor = ""
    async with ApiConnection(server.url) as connection:
        while True:
            answer = await connection.request("GET", f"{TIMERS}?limit=1000{cursor}")
            assert answer.status == 200, answer
            page = {timer["id"]: timer for timer in answer.body["timers"]}
            assert not page.keys() & timers.keys()
            timers |= page
            if answer.body["nextCursor"] is None:
                return timers
            cursor = f"&cursor={answer.body['nextCursor']}"
