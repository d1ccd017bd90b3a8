"""The promises of a server to its clients, and an audit of whether it kept them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from duetime.domain.instants import Instant
from duetime.domain.outcome import INTERRUPTED
from duetime.domain.timer import Timer, TimerStatus
from tests.real_server.callback_receiver import Request


class Reply(Enum):
    """The outcome of a request, unknown if the server was killed before it answered."""

    ACCEPTED = auto()
    REFUSED = auto()
    UNKNOWN = auto()


@dataclass(slots=True)
class Version:
    """A requested create or update. The payload carries its number."""

    execute_at: Instant
    reply: Reply = Reply.UNKNOWN
    replaced_at: Instant | None = None


@dataclass(slots=True)
class Promise:
    """One timer, the only one with this target. `id` is known once the create was answered."""

    target: str
    versions: list[Version] = field(default_factory=list)
    id: str = ""
    cancel: Reply | None = None
    canceled_at: Instant | None = None

    @property
    def was_created(self) -> bool:
        return self.versions[0].reply is Reply.ACCEPTED

    @property
    def is_certain(self) -> bool:
        """Whether every request for the timer was answered, and it was not canceled."""
        replies = {version.reply for version in self.versions}
        return (
            self.was_created
            and self.cancel in (None, Reply.REFUSED)
            and (Reply.UNKNOWN not in replies)
        )

    def versions_that_may_be_last(self) -> set[int]:
        """The last accepted version, and later ones whose outcome is unknown."""
        last = max(
            number
            for number, version in enumerate(self.versions)
            if version.reply is Reply.ACCEPTED
        )
        return {last} | {
            number
            for number, version in enumerate(self.versions)
            if number > last and version.reply is Reply.UNKNOWN
        }


class Audit:
    """Compares promises, callbacks and the final content of the store.

    `starts` are the instants at which each life of the server began.
    """

    def __init__(
        self,
        promises: Sequence[Promise],
        requests: Sequence[Request],
        timers: dict[str, Timer],
        starts: Sequence[Instant],
    ) -> None:
        self._promises = promises
        self._timers = timers
        self._starts = starts
        self._received: dict[str, list[Request]] = defaultdict(list)
        for request in requests:
            self._received[request.target].append(request)
        self.repeats_by_life = [0] * len(starts)

    def check(self) -> None:
        assert set(self._received) <= {promise.target for promise in self._promises}
        for promise in self._promises:
            self._check_nothing_lost(promise)
            self._check_truthful(promise)
            self._check_state(promise)
            for number in range(len(promise.versions)):
                self._check_version(promise, number)

    def life_of(self, request: Request) -> int:
        """The number of the server's life, from 0 on, in which the request came."""
        return sum(start <= request.arrived_at for start in self._starts) - 1

    def _of_version(self, promise: Promise, number: int) -> list[Request]:
        return [
            request
            for request in self._received[promise.target]
            if json.loads(request.body)["version"] == number
        ]

    def _check_nothing_lost(self, promise: Promise) -> None:
        if not promise.was_created:
            return
        assert promise.target in self._timers, f"lost without a trace: {promise}"
        if promise.cancel in (None, Reply.REFUSED):
            fired = {
                number
                for number in promise.versions_that_may_be_last()
                if self._of_version(promise, number)
            }
            assert fired, f"never fired: {promise} {self._timers[promise.target]}"

    def _check_truthful(self, promise: Promise) -> None:
        for number, version in enumerate(promise.versions):
            requests = self._of_version(promise, number)
            if version.reply is Reply.REFUSED:
                assert not requests, f"refused, yet fired: {promise}"
            for ended_at in (version.replaced_at, promise.canceled_at):
                if ended_at is not None:
                    late = [request for request in requests if request.arrived_at > ended_at]
                    assert not late, f"fired after it was canceled or changed: {promise} {late}"

    def _check_state(self, promise: Promise) -> None:
        timer = self._timers.get(promise.target)
        if timer is None:
            assert not promise.was_created
            assert not self._received[promise.target], f"fired without a timer: {promise}"
            return
        assert promise.versions[0].reply is not Reply.REFUSED, f"refused, yet stored: {promise}"
        for attempt in timer.attempts:
            assert attempt.sent_at is None or attempt.sent_at >= attempt.due_at, f"early: {timer}"
        if timer.status is TimerStatus.CANCELED:
            assert promise.cancel in (Reply.ACCEPTED, Reply.UNKNOWN), promise
            assert _interrupted(timer) >= len(self._received[promise.target])
        else:
            assert timer.status is TimerStatus.COMPLETED, timer
            assert promise.cancel is not Reply.ACCEPTED, promise
            delivery_ids = {r.headers["webhook-id"] for r in self._received[promise.target]}
            assert timer.delivery_id in delivery_ids, f"completed, yet not received: {timer}"

    def _check_version(self, promise: Promise, number: int) -> None:
        requests = self._of_version(promise, number)
        for request in requests:
            early = promise.versions[number].execute_at - request.arrived_at
            assert early <= 0, f"early by {early} microseconds: {promise}"
        assert len({request.headers["webhook-id"] for request in requests}) <= 1
        attempts = [int(request.headers["timer-attempt"]) for request in requests]
        assert attempts == sorted(set(attempts)), f"attempts do not count up: {promise} {attempts}"
        lives = [self.life_of(request) for request in requests]
        assert lives == sorted(set(lives)), f"repeated without a kill: {promise} {lives}"
        for life in lives[1:]:
            self.repeats_by_life[life] += 1
        if len(requests) > 1:
            assert _interrupted(self._timers[promise.target]) >= len(requests) - 1


def _interrupted(timer: Timer) -> int:
    return sum(attempt.error == INTERRUPTED for attempt in timer.attempts)
