"""A destination that follows a script and records every attempt."""

import asyncio
from collections import Counter
from urllib.parse import urlsplit

from msgspec import Struct

from duetime.domain.callback import BusCallback, Callback, HttpCallback
from duetime.domain.defaults import DEFAULT_CALLBACK_TIMEOUT_MS
from duetime.domain.errors import LocalShortage
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.outcome import Completed, Failed, Outcome, Rescheduled
from duetime.domain.timer import Claim
from duetime.ports.clock import Clock
from duetime.ports.destination import MaySend


class Succeed(Struct, frozen=True):
    """Accept the callback."""

    after_seconds: float = 0.0


class Fail(Struct, frozen=True):
    """Refuse the callback. If it `is_final`, this service itself refuses to send it."""

    after_seconds: float = 0.0
    error: str = "HTTP 500"
    retry_after_ms: int | None = None
    is_final: bool = False


class Hang(Struct, frozen=True):
    """Do not answer until the callback's timeout is over."""


class Reschedule(Struct, frozen=True):
    """Ask to be called again `in_seconds` from the answer on."""

    in_seconds: float
    after_seconds: float = 0.0


class RunOut(Struct, frozen=True):
    """Lack a resource of this process, so that the attempt cannot be made."""

    resource: str = "file descriptors"


Behaviour = Succeed | Fail | Hang | Reschedule | RunOut


class RecordedAttempt:
    """`outcome` is None while the attempt runs, and stays None when it was abandoned."""

    def __init__(self, claim: Claim, endpoint: str, sent_at: Instant, at_once: int) -> None:
        self.claim = claim
        self.endpoint = endpoint
        self.sent_at = sent_at
        self.at_once = at_once
        """Attempts to this endpoint that ran when this one began, including it."""
        self.outcome: Outcome | None = None
        self.abandoned = False

    @property
    def lateness_ms(self) -> float:
        return (self.sent_at - self.claim.due_at) / 1_000


class RecordingDestination:
    """Implements the destination port without a network.

    An endpoint is the scheme and host of a URL, `nats:<topic>` or `bus`. A behaviour is set for the
    id of a timer or for an endpoint; the id takes precedence. Everything else succeeds at once. An
    attempt that `RunOut` prevents is not recorded.
    """

    def __init__(self, clock: Clock, default: Behaviour | None = None) -> None:
        self._clock = clock
        self._default = default or Succeed()
        self._scripts: dict[str, list[Behaviour]] = {}
        self._running: Counter[str] = Counter()
        self.attempts: list[RecordedAttempt] = []

    def script(self, endpoint_or_id: str, *behaviours: Behaviour) -> None:
        """Use these behaviours, one per attempt; the last one stays."""
        if not behaviours:
            raise ValueError("name at least one behaviour")
        self._scripts[endpoint_or_id] = list(behaviours)

    def attempts_of(self, endpoint_or_id: str) -> list[RecordedAttempt]:
        return [
            attempt
            for attempt in self.attempts
            if endpoint_or_id in (attempt.claim.id, attempt.endpoint)
        ]

    def running(self, endpoint: str) -> int:
        """The number of attempts to the endpoint that run now."""
        return self._running[endpoint]

    def most_at_once(self, endpoint: str) -> int:
        return max((attempt.at_once for attempt in self.attempts_of(endpoint)), default=0)

    def check(self, callback: Callback) -> None:
        pass

    def endpoint_of(self, claim: Claim) -> str:
        callback = claim.callback
        if isinstance(callback, HttpCallback):
            url = urlsplit(callback.url)
            return f"{url.scheme}://{url.netloc}"
        return "bus" if isinstance(callback, BusCallback) else f"nats:{callback.topic}"

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        endpoint = self.endpoint_of(claim)
        behaviour = self._next_behaviour(claim, endpoint)
        if isinstance(behaviour, RunOut):
            raise LocalShortage(behaviour.resource)
        self._running[endpoint] += 1
        attempt = RecordedAttempt(claim, endpoint, self._clock.now(), self._running[endpoint])
        self.attempts.append(attempt)
        try:
            attempt.outcome = await self._behave(behaviour, attempt)
            return attempt.outcome
        except asyncio.CancelledError:
            attempt.abandoned = True
            raise
        finally:
            self._running[endpoint] -= 1

    async def close(self) -> None:
        pass

    def _next_behaviour(self, claim: Claim, endpoint: str) -> Behaviour:
        script = self._scripts.get(claim.id) or self._scripts.get(endpoint)
        if script is None:
            return self._default
        return script[0] if len(script) == 1 else script.pop(0)

    async def _behave(
        self, behaviour: Succeed | Fail | Hang | Reschedule, attempt: RecordedAttempt
    ) -> Outcome:
        sent_at = attempt.sent_at
        timeout_ms = attempt.claim.callback.timeout_ms or DEFAULT_CALLBACK_TIMEOUT_MS
        delay_seconds = timeout_ms / 1_000
        if not isinstance(behaviour, Hang):
            delay_seconds = min(behaviour.after_seconds, delay_seconds)
        if delay_seconds:
            await self._clock.sleep(delay_seconds)
        now = self._clock.now()
        if delay_seconds * 1_000 >= timeout_ms:
            error = f"no answer within {timeout_ms} ms"
            return Failed(sent_at=sent_at, answered_at=now, error=error)
        match behaviour:
            case Fail(error=error, retry_after_ms=retry_after_ms, is_final=is_final):
                return Failed(
                    sent_at=sent_at,
                    answered_at=now,
                    error=error,
                    retry_after_ms=retry_after_ms,
                    blames_endpoint=not is_final,
                    is_final=is_final,
                )
            case Reschedule(in_seconds=in_seconds):
                next_execute_at = plus_ms(now, in_seconds * 1_000)
                return Rescheduled(
                    sent_at=sent_at, answered_at=now, next_execute_at=next_execute_at
                )
            case _:
                return Completed(sent_at=sent_at, answered_at=now)
