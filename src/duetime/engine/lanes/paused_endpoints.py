"""Endpoints that an operator has paused, and the timers that wait until they are resumed."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import structlog

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.timer import Claim
from duetime.engine.lanes.deferrals import RETURNS_PER_SECOND, Away, Deferrals
from duetime.ports.endpoints import EndpointPause

_log = structlog.get_logger()

LONGEST_DEFERRAL_MS = 10_000.0
"""Deferral of a claim for a paused endpoint while few are deferred. Timers that are noted here need
not wait for its end when the endpoint is resumed."""

MAX_NOTED = 10_000
"""Timers noted for all paused endpoints together. Others are only counted, and return by themselves
when their deferral ends."""

NOTED_LONGER_SECONDS = 1.0
"""Time from the end of a deferral until its timer is claimed and put off again."""


class PutOff(NamedTuple):
    """A timer that was handed back because of a pause. `due_at` is the instant before that."""

    key: TimerKey
    shard: ShardNumber
    delivery_id: str
    due_at: Instant
    noted_until_seconds: float
    """The monotonic time at which the timer has been claimed again by itself."""


class _Paused:
    def __init__(self, pause: EndpointPause) -> None:
        self.pause = pause
        self.deferrals = Deferrals(LONGEST_DEFERRAL_MS)
        self.noted: dict[str, PutOff] = {}
        """By delivery id, in the order of their returns."""
        self.unnoted = Away()

    def forget_returned(self, now_seconds: float) -> int:
        """Forget timers that have returned: they are noted again, or were canceled meanwhile."""
        forgotten = 0
        while self.noted:
            first = next(iter(self.noted))
            if self.noted[first].noted_until_seconds > now_seconds:
                break
            del self.noted[first]
            forgotten += 1
        return forgotten


class PausedEndpoints:
    """The timers of a paused endpoint stay in the store, where they can be canceled and changed.

    They are noted here, as far as there is room, so that they need not wait for the end of their
    deferrals when the endpoint is resumed.
    """

    def __init__(self) -> None:
        self._paused: dict[str, _Paused] = {}
        self._noted = 0
        self.resumed: deque[PutOff] = deque()
        """Noted timers of resumed endpoints, which are due at once."""

    def __len__(self) -> int:
        return len(self._paused)

    def __contains__(self, endpoint: str) -> bool:
        return endpoint in self._paused

    def pause_of(self, endpoint: str) -> EndpointPause | None:
        paused = self._paused.get(endpoint)
        return None if paused is None else paused.pause

    def pauses(self) -> list[EndpointPause]:
        return [paused.pause for paused in self._paused.values()]

    def waiting(self, endpoint: str, now_seconds: float) -> int:
        """The timers that were put off here until the endpoint is resumed."""
        paused = self._paused.get(endpoint)
        if paused is None:
            return 0
        self._noted -= paused.forget_returned(now_seconds)
        return len(paused.noted) + paused.unnoted.count(now_seconds)

    def largest(self, most: int, now_seconds: float) -> dict[str, int]:
        """The timers that wait, by endpoint: up to `most` endpoints with the largest numbers."""
        waiting = {endpoint: self.waiting(endpoint, now_seconds) for endpoint in self._paused}
        names = sorted(filter(waiting.get, waiting), key=waiting.__getitem__, reverse=True)
        return {name: waiting[name] for name in names[:most]}

    def replace_all(self, pauses: Mapping[str, EndpointPause]) -> list[str]:
        """From now on exactly these endpoints are paused. Returns those that were not before."""
        for endpoint in self._paused.keys() - pauses.keys():
            noted = self._paused.pop(endpoint).noted.values()
            self._noted -= len(noted)
            self.resumed.extend(noted)
            _log.info("endpoint.resumed", endpoint=endpoint)
        begun = []
        for endpoint, pause in pauses.items():
            paused = self._paused.get(endpoint)
            if paused is None:
                self._paused[endpoint] = _Paused(pause)
                begun.append(endpoint)
                _log.info("endpoint.paused", endpoint=endpoint, paused_by=pause.paused_by)
            else:
                paused.pause = pause
        return begun

    def put_off(self, endpoint: str, claim: Claim, now_seconds: float) -> float:
        """The deferral of a claim, in milliseconds."""
        paused = self._paused[endpoint]
        deferral_ms = paused.deferrals.next_ms(
            now_seconds, turn_in_seconds=0.0, returns_per_second=RETURNS_PER_SECOND
        )
        before = paused.noted.pop(claim.delivery_id, None)
        self._noted -= (before is not None) + paused.forget_returned(now_seconds)
        returns_seconds = now_seconds + deferral_ms / 1_000
        if self._noted >= MAX_NOTED:
            paused.unnoted.note(now_seconds, returns_seconds)
        else:
            paused.noted[claim.delivery_id] = PutOff(
                TimerKey(claim.namespace, claim.id),
                claim.shard,
                claim.delivery_id,
                claim.due_at if before is None else before.due_at,
                returns_seconds + NOTED_LONGER_SECONDS,
            )
            self._noted += 1
        return deferral_ms
