"""The receiving side of a simulation: endpoints whose mood changes."""

from random import Random

from duetime.domain.callback import HttpCallback
from duetime.domain.instants import plus_ms
from duetime.domain.outcome import Completed, Failed, Outcome, Rescheduled
from duetime.domain.timer import Claim
from duetime.ports.clock import Clock

MOODS = ("quick", "quick", "slow", "failing", "hanging", "flaky", "rescheduling")


class Endpoints:
    """The endpoints to which all processes of a simulation send."""

    def __init__(self, random: Random, count: int) -> None:
        self._random = random
        self.moods = {f"https://endpoint-{number}.example": "quick" for number in range(count)}
        self.always_quick: str | None = None
        """An endpoint that is never in a bad mood, and that no other may delay."""
        self.reschedules: dict[str, int] = {}

    def any_url(self) -> str:
        return self._random.choice(list(self.moods))

    def change_mood(self) -> None:
        url, mood = self.any_url(), self._random.choice(MOODS)
        if url != self.always_quick:
            self.moods[url] = mood

    def heal(self) -> None:
        for url in self.moods:
            self.moods[url] = "quick"

    async def receive(self, claim: Claim, clock: Clock) -> Outcome:
        """The outcome of an attempt, by the clock of the process that makes it."""
        callback = claim.callback
        assert isinstance(callback, HttpCallback)
        sent_at = clock.now()
        mood = self.moods[callback.url]
        if mood == "flaky":
            mood = self._random.choice(MOODS[:-2])
        assert callback.timeout_ms is not None
        timeout_seconds = callback.timeout_ms / 1_000
        seconds = {
            "slow": self._random.uniform(0.2, 3.0),
            "hanging": timeout_seconds,
        }.get(mood, self._random.uniform(0.0, 0.02))
        await clock.sleep(min(seconds, timeout_seconds))
        answered_at = clock.now()
        if seconds >= timeout_seconds:
            return Failed(sent_at=sent_at, answered_at=answered_at, error="timeout")
        if mood == "failing":
            return Failed(sent_at=sent_at, answered_at=answered_at, error="HTTP 500")
        if mood == "rescheduling" and self.reschedules.setdefault(claim.id, 0) < 3:
            self.reschedules[claim.id] += 1
            next_at = plus_ms(answered_at, self._random.uniform(0, 20_000))
            return Rescheduled(sent_at=sent_at, answered_at=answered_at, next_execute_at=next_at)
        return Completed(sent_at=sent_at, answered_at=answered_at)
