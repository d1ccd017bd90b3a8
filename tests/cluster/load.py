"""Timers created through several nodes, and their callbacks."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from tests.real_server.api_connection import ApiAnswer, ApiConnection, ConnectionEnded
from tests.real_server.callback_receiver import CallbackReceiver, Request
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms, timer_body


class Load:
    """Every timer has a target of its own. Only creates that were answered are promises."""

    def __init__(self, receiver: CallbackReceiver, name: str = "load") -> None:
        self._receiver = receiver
        self._name = name
        self._number = 0
        self._stopped = False
        self.due_at: dict[str, Instant] = {}
        self.unknown: set[str] = set()

    def stop(self) -> None:
        self._stopped = True

    async def create(self, connection: ApiConnection, delay_ms: float) -> None:
        """Create one timer, unless its instant has passed before the node sees it. Raises
        `ConnectionEnded` when the node is gone."""
        target, due_at = f"/{self._name}/{self._number}", in_ms(delay_ms)
        self._number += 1
        self.unknown.add(target)
        body = timer_body(self._receiver.url + target, due_at)
        answer = await connection.request("POST", "/timers", body)
        if answer.status == 201:
            self.due_at[target] = due_at
        if answer.status in (201, 400):
            self.unknown.discard(target)
        else:
            _check_unavailable(answer)

    async def create_many(
        self, nodes: Sequence[ServerProcess], count: int, first_ms: float, last_ms: float
    ) -> None:
        """Create `count` timers through all nodes in turn, due evenly between the two delays."""
        async with asyncio.TaskGroup() as group:
            for lane in range(8):
                node = nodes[lane % len(nodes)]
                delays = [
                    first_ms + (last_ms - first_ms) * n / count for n in range(lane, count, 8)
                ]
                group.create_task(self._create_each(node, delays))

    async def keep_creating(self, node: ServerProcess, delays_ms: Sequence[float]) -> None:
        """Create through the node, and its restarts, until `stop` is called."""
        while not self._stopped:
            try:
                async with ApiConnection(node.url) as connection:
                    while not self._stopped:
                        for delay_ms in delays_ms:
                            await self.create(connection, delay_ms)
            except (ConnectionEnded, ConnectionError):
                continue

    async def wait_until_all_came(self) -> None:
        await self._receiver.wait_for_targets(set(self.due_at))

    def received(self) -> dict[str, list[Request]]:
        """The requests of each timer, in the order they came."""
        by_target: dict[str, list[Request]] = defaultdict(list)
        for request in self._receiver.requests:
            by_target[request.target].append(request)
        return by_target

    def repeated(self) -> dict[str, list[Request]]:
        """The timers that were sent more than once."""
        return {t: requests for t, requests in self.received().items() if len(requests) > 1}

    def check_each_came_once(self) -> None:
        received = self.received()
        times = Counter(len(received.get(target, [])) for target in self.due_at)
        assert times == {1: len(self.due_at)}
        self.check_nothing_strange()

    def check_nothing_strange(self) -> None:
        """No timer is lost, early or invented, and repeats have increasing attempt numbers."""
        received = self.received()
        missing = self.due_at.keys() - received.keys()
        assert not missing, f"{len(missing)} never came: {sorted(missing)[:5]}"
        assert received.keys() <= self.due_at.keys() | self.unknown
        for target, due_at in self.due_at.items():
            requests = received[target]
            assert all(request.arrived_at >= due_at for request in requests), f"early: {target}"
            assert len({request.headers["webhook-id"] for request in requests}) == 1
            attempts = [int(request.headers["timer-attempt"]) for request in requests]
            assert attempts == sorted(set(attempts)), f"{target}: attempts {attempts}"

    def latest_seconds(self) -> float:
        """The longest lateness of a first callback."""
        received = self.received()
        return max(
            (received[target][0].arrived_at - due_at) / MICROSECONDS_PER_SECOND
            for target, due_at in self.due_at.items()
        )

    async def _create_each(self, node: ServerProcess, delays_ms: Sequence[float]) -> None:
        async with ApiConnection(node.url) as connection:
            for delay_ms in delays_ms:
                await self.create(connection, delay_ms)


def _check_unavailable(answer: ApiAnswer) -> None:
    """A node may fail to reach the database, and says so. Nothing else may go wrong."""
    assert answer.status >= 500, answer
    assert set(answer.body) == {"code", "message", "data"}, answer
