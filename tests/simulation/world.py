"""The surroundings of all processes of a simulation, and the history of every timer."""

import random as global_random
from random import Random

from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer
from duetime.ports.endpoints import EndpointPause
from duetime.testing import LoopClock
from tests.simulation.audited_store import AuditedStore
from tests.simulation.endpoints import Endpoints
from tests.simulation.faulty_store import Limbo
from tests.simulation.invariants import Broken, TimerHistory


class World:
    """Everything random in a simulation comes from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        global_random.seed(seed)  # The dispatcher's jitter.
        self.clock = LoopClock()
        self.truth = AuditedStore()
        self.limbo = Limbo()
        self.endpoints = Endpoints(self.random, count=self.random.randint(1, 6))
        self.histories: dict[str, TimerHistory] = {}
        self.longest_lateness_ms: float | None = None
        """Longest lateness of first attempts at quick endpoints, where one is promised."""
        self.concurrency: int | None = None
        """How many attempts of the namespace may be under way, where that is limited."""
        self.paused: dict[str, EndpointPause] = {}
        self._paused_seconds: dict[str, float] = {}
        self.trace: list[str] = []
        self.broken: list[Broken] = []
        self._uuids = 0

    def new_uuid(self) -> str:
        self._uuids += 1
        return f"uuid-{self._uuids:06}"

    def pause(self, endpoint: str) -> None:
        if endpoint not in self.paused:
            self._paused_seconds[endpoint] = self.clock.monotonic()
            self.paused[endpoint] = EndpointPause(
                endpoint=endpoint, paused_at=self.clock.now(), paused_by="operator"
            )

    def check_not_paused(self, endpoint: str) -> None:
        """An attempt that begins now may go to the endpoint. One that had begun at the moment of
        the pause may be on its way to it."""
        if endpoint in self.paused and self.clock.monotonic() > self._paused_seconds[endpoint]:
            raise Broken(f"an attempt was made at {endpoint}, which is paused")

    def note(self, what: str) -> None:
        self.trace.append(f"{self.clock.monotonic():.6f} {what}")

    def check(self) -> None:
        for broken in [*self.broken, *self.truth.broken]:
            raise broken

    async def timers(self) -> list[Timer]:
        found = [await self.truth.get(TimerKey("default", id)) for id in self.histories]
        return [timer for timer in found if timer is not None]

    async def seconds_until_last_due(self) -> float:
        live = [timer for timer in await self.timers() if not timer.status.is_finished]
        last_due_at = max((timer.due_at for timer in live), default=self.clock.now())
        return max(0.0, (last_due_at - self.clock.now()) / MICROSECONDS_PER_SECOND)

    async def check_end(self) -> None:
        """Everything has come to rest: is every timer where it has to be?"""
        self.check()
        for history in self.histories.values():
            history.check_end(await self.truth.get(TimerKey("default", history.id)))
