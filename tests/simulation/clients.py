"""Clients of a simulation: their requests, and what follows from the answers."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from msgspec import Raw

from duetime.domain.callback import HttpCallback
from duetime.domain.errors import (
    DuetimeError,
    InvalidInput,
    StoreUnavailable,
    TimerNotFound,
    TimerNotPending,
)
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import TimerStatus
from duetime.ports.store import Existence
from duetime.service.create_requests import NewTimer
from tests.simulation.invariants import Broken, TimerHistory, Version
from tests.simulation.process import Process
from tests.simulation.world import World

LONGEST_RETRY_SECONDS = 20.0
LONGEST_ATTEMPT_SECONDS = 30.0


class Clients:
    """Each request goes to one process; when that is killed, its client never knows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random
        self._histories = world.histories
        self._requests: dict[asyncio.Task[None], Process] = {}

    def create(self, process: Process) -> None:
        self._ask(process, self._create(process, self._any_instant(process)))

    def burst(self, process: Process) -> None:
        instant = self._any_instant(process)
        for _ in range(self._random.randint(5, 120)):
            self._ask(process, self._create(process, instant))

    def change(self, process: Process) -> None:
        history = self._any_timer()
        if history is not None:
            self._ask(process, self._change(process, history))

    def cancel(self, process: Process) -> None:
        history = self._any_timer()
        if history is not None:
            self._ask(process, self._cancel(process, history))

    def check(self) -> None:
        """Raise the errors of requests that are not awaited."""
        for request in [request for request in self._requests if request.done()]:
            del self._requests[request]
            if not request.cancelled():
                request.result()

    async def wait(self, process: Process | None = None) -> None:
        """Until the requests to the process, or all, are answered."""
        requests = self._of(process)
        if requests:
            await asyncio.wait(requests)
        self.check()

    def abandon(self, process: Process) -> None:
        for request in self._of(process):
            request.cancel()

    async def _create(self, process: Process, execute_at: Instant) -> None:
        version = Version(0, execute_at, self._any_policy())
        history = TimerHistory(f"timer-{len(self._histories):05}", version)
        self._histories[history.id] = history
        new = NewTimer(
            id=history.id,
            execute_at=execute_at,
            callback=self._callback(0),
            retry_policy=version.policy,
        )
        try:
            result = await process.service.create(new)
        except (StoreUnavailable, InvalidInput):
            pass
        else:
            if result.existence is not Existence.CREATED:
                raise Broken(f"{history.id} is new, but the answer is {result.existence}")
            history.accepted = True
        history.busy = False

    async def _change(self, process: Process, history: TimerHistory) -> None:
        number = max([*history.possible, 0]) + 1
        old = dict(history.possible)
        version = Version(number, self._any_instant(process), self._any_policy())
        history.possible[number] = version
        try:
            await process.service.change(
                TimerKey("default", history.id),
                execute_at=version.execute_at,
                callback=self._callback(number),
                retry_policy=version.policy,
            )
        except StoreUnavailable:
            pass
        except (TimerNotPending, InvalidInput, TimerNotFound) as error:
            del history.possible[number]
            self._check_refusal(history, error)
        else:
            history.accepted = True
            for replaced in old:
                del history.possible[replaced]
        history.busy = False

    async def _cancel(self, process: Process, history: TimerHistory) -> None:
        asked_before, history.cancel_asked = history.cancel_asked, True
        try:
            await process.service.cancel(TimerKey("default", history.id))
        except StoreUnavailable:
            pass
        except (TimerNotPending, TimerNotFound) as error:
            history.cancel_asked = asked_before
            self._check_refusal(history, error)
        else:
            history.possible.clear()
        history.busy = False

    def _check_refusal(self, history: TimerHistory, error: DuetimeError) -> None:
        if isinstance(error, TimerNotFound) and history.accepted:
            raise Broken(f"{history.id} was accepted and is not found")
        if not isinstance(error, TimerNotPending):
            return
        if error.status in (TimerStatus.COMPLETED, TimerStatus.FAILED) and not history.sendings:
            raise Broken(f"{history.id} was never sent but is said to be {error.status.label}")
        if error.status is TimerStatus.CANCELED and not history.cancel_asked:
            raise Broken(f"{history.id} is said to be canceled, which nobody asked for")

    def _any_instant(self, process: Process) -> Instant:
        delay_ms = self._random.choice([1, 30, 200, 1_000, 5_000, 60_000])
        return plus_ms(process.clock.now(), 0.001 + self._random.uniform(0, delay_ms))

    def _any_policy(self) -> RetryPolicy | None:
        if self._random.random() < 0.3:
            return None
        return RetryPolicy(
            max_retries=self._random.randint(0, 6),
            initial_interval_ms=self._random.choice([10, 1_000, 20_000]),
            max_interval_ms=round(LONGEST_RETRY_SECONDS * 1_000),
        )

    def _callback(self, version_number: int) -> HttpCallback:
        longest_ms = round(LONGEST_ATTEMPT_SECONDS * 1_000)
        return HttpCallback(
            url=self._world.endpoints.any_url(),
            payload=Raw(str(version_number).encode()),
            timeout_ms=self._random.choice([500, 5_000, longest_ms]),
        )

    def _any_timer(self) -> TimerHistory | None:
        free = [history for history in self._histories.values() if not history.busy]
        if not free:
            return None
        # Mostly one of the latest: older ones have long been sent.
        history = self._random.choice(free[-20:] if self._random.random() < 0.8 else free)
        history.busy = True
        return history

    def _ask(self, process: Process, request: Coroutine[Any, Any, None]) -> None:
        self._requests[asyncio.get_running_loop().create_task(request)] = process

    def _of(self, process: Process | None) -> list[asyncio.Task[None]]:
        return [
            request
            for request, asked in self._requests.items()
            if process is None or asked is process
        ]
