"""Cancels and updates that race with the instant: every answer is true."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from duetime.domain.instants import Instant, format_instant, plus_ms
from tests.real_server.api_connection import ApiAnswer, ApiConnection
from tests.real_server.callback_receiver import CallbackReceiver, Request
from tests.real_server.databases import Database, on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import connections_to, in_ms, timer_body, wait_until_dry

pytestmark = [pytest.mark.crash, on_every_database]

TIMERS = 400
EARLY = 40
LATE = 40
CONNECTIONS = 18
CLAIM_HORIZON_MS = 50

Act = Callable[[ApiConnection, str], Awaitable[ApiAnswer]]


class Race:
    """Timers due at one instant. The first few are acted on well before it, the last few after
    the first callback, and all the others around the instant at which timers are claimed."""

    def __init__(self, server: ServerProcess, receiver: CallbackReceiver) -> None:
        self.due_at: Instant = in_ms(2_500)
        self.ids: list[str] = []
        self._server = server
        self._receiver = receiver

    def target(self, position: int) -> str:
        return f"/raced/{position}"

    def fired(self, position: int) -> list[Request]:
        return self._receiver.of(self.target(position))

    async def run(self, act: Act) -> list[ApiAnswer]:
        """The answers, one per timer, after all timers have finished and the server has stopped."""
        async with connections_to(self._server, CONNECTIONS) as connections:
            await self._create(connections)
            early = [await act(connections[0], timer_id) for timer_id in self.ids[:EARLY]]
            # Timers of the service itself give the signals, spread over the critical moments.
            raced = await asyncio.gather(
                *(
                    self._act_on_signal(connection, act, number, self.ids[EARLY + number : -LATE])
                    for number, connection in enumerate(connections)
                )
            )
            await self._receiver.wait_for(1, lambda request: request.target.startswith("/raced/"))
            late = [await act(connections[0], timer_id) for timer_id in self.ids[-LATE:]]
        async with self._server.client() as api:
            await wait_until_dry(api)
        assert await self._server.stop() == 0
        middle = dict(pair for pairs in raced for pair in pairs)
        in_order = [middle[timer_id] for timer_id in self.ids[EARLY:-LATE]]
        return [*early, *in_order, *late]

    async def _create(self, connections: list[ApiConnection]) -> None:
        async def create(connection: ApiConnection, positions: range) -> list[str]:
            return [
                await self._created(connection, self.target(position), self.due_at, position)
                for position in positions
            ]

        share = TIMERS // 8
        created = await asyncio.gather(
            *(create(connections[n], range(n * share, (n + 1) * share)) for n in range(8))
        )
        self.ids = [timer_id for ids in created for timer_id in ids]
        for number, connection in enumerate(connections):
            signal_at = plus_ms(self.due_at, -CLAIM_HORIZON_MS - 30 + 4 * number)
            await self._created(connection, f"/signal/{number}", signal_at, None)

    async def _created(
        self, connection: ApiConnection, target: str, execute_at: Instant, payload: int | None
    ) -> str:
        body = timer_body(
            self._receiver.url + target, execute_at, callback={"payload": {"old": payload}}
        )
        answer = await connection.request("POST", "/timers", body)
        assert answer.status == 201, answer
        return str(answer.body["data"]["id"])

    async def _act_on_signal(
        self, connection: ApiConnection, act: Act, number: int, ids: list[str]
    ) -> list[tuple[str, ApiAnswer]]:
        await self._receiver.wait_for(1, lambda request: request.target == f"/signal/{number}")
        return [(timer_id, await act(connection, timer_id)) for timer_id in ids[::CONNECTIONS]]


async def test_a_cancel_wins_or_the_answer_says_why_not(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    async def cancel(connection: ApiConnection, timer_id: str) -> ApiAnswer:
        return await connection.request("DELETE", f"/timers/{timer_id}")

    async with ServerProcess(tmp_path, **database.settings) as server:
        race = Race(server, receiver)
        answers = await race.run(cancel)
    for position, answer in enumerate(answers):
        if answer.status == 200:
            assert answer.body["data"]["status"] == "canceled"
            assert race.fired(position) == []
        else:
            assert_refused("cancel", answer)
            assert len(race.fired(position)) == 1
    report(answers)


async def test_an_update_wins_or_the_answer_says_why_not(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path, **database.settings) as server:
        race = Race(server, receiver)
        later = plus_ms(race.due_at, 2_000)

        async def update(connection: ApiConnection, timer_id: str) -> ApiAnswer:
            position = race.ids.index(timer_id)
            url = receiver.url + race.target(position)
            body = timer_body(url, later, callback={"payload": {"new": position}})
            return await connection.request("PUT", f"/timers/{timer_id}", body)

        answers = await race.run(update)
    for position, answer in enumerate(answers):
        (request,) = race.fired(position)
        if answer.status == 200:
            assert answer.body["data"]["execute_at"] == format_instant(later)
            assert request.body == b'{"new": %d}' % position
            assert request.arrived_at >= later
        else:
            assert_refused("update", answer)
            assert request.body == b'{"old": %d}' % position
            assert race.due_at <= request.arrived_at
    report(answers)


def assert_refused(action: str, answer: ApiAnswer) -> None:
    assert (answer.status, answer.body["code"]) == (400, 2), answer
    assert answer.body["message"] in {
        f"cannot {action} timer with status 'executing'",
        f"cannot {action} timer with status 'completed'",
    }


def report(answers: list[ApiAnswer]) -> None:
    assert len(answers) == TIMERS
    won = sum(answer.status == 200 for answer in answers)
    sys.stdout.write(f"{won} of {TIMERS} won\n")
    assert EARLY <= won <= TIMERS - LATE
