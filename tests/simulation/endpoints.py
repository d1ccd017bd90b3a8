"""The receiving side of a simulation: endpoints whose mood changes."""

import asyncio
from collections.abc import Callable
from random import Random

from msgspec import UNSET, json

from duetime.domain.callback import Callback, HttpCallback
from duetime.domain.instants import plus_ms
from duetime.domain.outcome import Completed, Failed, Outcome, Rescheduled
from duetime.domain.timer import Claim
from duetime.ports.clock import Clock
from tests.simulation.faulty_store import Limbo
from tests.simulation.invariants import Broken, Owner, Sending, TimerHistory

MOODS = ("quick", "quick", "slow", "failing", "hanging", "flaky", "rescheduling")


class Endpoints:
    """What all processes of a simulation send to."""

    def __init__(self, random: Random, clock: Clock, count: int) -> None:
        self._random = random
        self._clock = clock
        self.moods = {f"https://endpoint-{number}.example": "quick" for number in range(count)}
        self.always_quick: str | None = None
        """An endpoint that is never in a bad mood, and that no other may delay."""
        self.histories: dict[str, TimerHistory] = {}
        self.trace: list[str] = []
        self.reschedules: dict[str, int] = {}
        self.broken: list[Broken] = []

    def any_url(self) -> str:
        return self._random.choice(list(self.moods))

    def change_mood(self) -> None:
        url, mood = self.any_url(), self._random.choice(MOODS)
        if url != self.always_quick:
            self.moods[url] = mood

    def heal(self) -> None:
        for url in self.moods:
            self.moods[url] = "quick"

    async def receive(self, claim: Claim, sending: Sending) -> Outcome:
        callback = claim.callback
        assert isinstance(callback, HttpCallback)
        sent_at = self._clock.now()
        mood = self.moods[callback.url]
        if mood == "flaky":
            mood = self._random.choice(MOODS[:-2])
        assert callback.timeout_ms is not None
        timeout_seconds = callback.timeout_ms / 1_000
        seconds = {
            "slow": self._random.uniform(0.2, 3.0),
            "hanging": timeout_seconds,
        }.get(mood, self._random.uniform(0.0, 0.02))
        await self._clock.sleep(min(seconds, timeout_seconds))
        answered_at = self._clock.now()
        if seconds >= timeout_seconds:
            return Failed(sent_at=sent_at, answered_at=answered_at, error="timeout")
        if mood == "failing":
            return Failed(sent_at=sent_at, answered_at=answered_at, error="HTTP 500")
        if mood == "rescheduling" and self.reschedules.setdefault(claim.id, 0) < 3:
            self.reschedules[claim.id] += 1
            next_at = plus_ms(answered_at, self._random.uniform(0, 20_000))
            return Rescheduled(sent_at=sent_at, answered_at=answered_at, next_execute_at=next_at)
        return Completed(sent_at=sent_at, answered_at=answered_at)


class ProcessDestination:
    """Implements the destination port for one process, which may be killed."""

    def __init__(
        self,
        endpoints: Endpoints,
        clock: Clock,
        owner: Owner,
        is_dead: Callable[[], bool],
        limbo: Limbo,
    ) -> None:
        self._limbo = limbo
        self._endpoints = endpoints
        self._clock = clock
        self._owner = owner
        self._is_dead = is_dead
        self.abandoned = 0

    def check(self, callback: Callback) -> None:
        pass

    def endpoint_of(self, claim: Claim) -> str:
        assert isinstance(claim.callback, HttpCallback)
        return claim.callback.url

    async def deliver(self, claim: Claim) -> Outcome:
        if self._is_dead():
            await self._limbo.stay()
        history = self._endpoints.histories[claim.id]
        try:
            now = self._clock.now()
            sending = history.started(claim, _version(claim), now, self._owner)
            if self.endpoint_of(claim) == self._endpoints.always_quick:
                history.check_lateness(claim, now)
        except Broken as broken:
            # The engine survives whatever a destination raises, so the scenario must be told.
            self._endpoints.broken.append(broken)
            raise
        self._endpoints.trace.append(f"{now} sends {claim.id} attempt {claim.attempt}")
        try:
            outcome = await self._endpoints.receive(claim, sending)
        except asyncio.CancelledError:
            self.abandoned += 1
            raise
        finally:
            sending.open = False
        # Whether the process learns of it or is dead by now: this is what the receiver said.
        sending.outcome = outcome
        if self._is_dead():
            await self._limbo.stay()
        return outcome

    async def close(self) -> None: ...


def _version(claim: Claim) -> int:
    assert isinstance(claim.callback, HttpCallback)
    assert claim.callback.payload is not UNSET
    return json.decode(claim.callback.payload, type=int)
