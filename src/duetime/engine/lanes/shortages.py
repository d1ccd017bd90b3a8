"""Shortages: this process lacks descriptors, ports, memory or its proxy, so claims wait in the
store."""

import random

import structlog

from duetime.domain.instants import Instant, plus_ms
from duetime.engine.lanes.deferrals import returning_at
from duetime.ports.clock import Clock

_log = structlog.get_logger()

FIRST_DEFERRAL_MS = 100.0
LONGEST_DEFERRAL_MS = 2_000.0
"""Bounds of a deferral. The longest is short, because claims wait that long once the shortage is
over; claims that return too early cost little."""

RETURNS_PER_SECOND = 500.0
LONGEST_SPREAD_MS = 30_000.0
"""Claims that return in a second, unless they are so many that they would be away for longer than
the spread. Without this bound a backlog would be claimed and handed back without pause."""

JITTER = 0.25
"""Part of a deferral by which it is longer or shorter. Several processes may lack the same."""

OVER_AFTER_SECONDS = 5.0
"""Time without a shortage, once every claim has had the time to return, after which it is over."""

REMIND_SECONDS = 60.0
"""Time between two log lines about a shortage that lasts."""

MAX_RESOURCES = 8
"""Resources that are told apart while they are short. Any others count as one."""

_OTHERS = "others"

_ADVICE = {
    "file descriptors": "raise the limit of open files (ulimit -n, or LimitNOFILE of the service),"
    " or lower DELIVERY_CONCURRENCY",
    "local ports": "let the endpoint keep connections alive, or widen the system's range of local"
    " ports",
    "threads for name lookups": "the name servers of many hosts do not answer; see which timers"
    " fail with 'host name not resolved'",
    "callback proxy": "start the proxy that CALLBACK_PROXY names, or correct that setting",
    "readable webhook secret": "revoke the secret that is named, and create another for the"
    " receivers",
    "processor time": "this process stood still; look for pauses and for other load",
}
_KEY = "encryption key "
_KEY_ADVICE = (
    "add the key to ENCRYPTION_KEYS, as it was when the timers, or the secrets that sign their"
    " callbacks, were created"
)
_OTHER_ADVICE = "give this machine or process more of it"


class Shortages:
    """The shortages of each resource, apart from those of the others: one that lasts neither keeps
    the claims that lack something else away nor hides them in the log."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: dict[str, _Shortage] = {}
        self.count = 0
        """Attempts that could not be made, since the start of the process."""

    def deferred_to(self, resource: str, now: Instant) -> Instant:
        """The instant at which a claim that lacks the resource returns."""
        now_seconds = self._clock.monotonic()
        self.count += 1
        deferral_ms = self._shortage_of(resource, now_seconds).deferral_ms(resource, now_seconds)
        jitter = random.uniform(1 - JITTER, 1 + JITTER)
        return returning_at(plus_ms(now, deferral_ms * jitter))

    def _shortage_of(self, resource: str, now_seconds: float) -> "_Shortage":
        name = _name_of(resource)
        shortage = self._of.get(name)
        if shortage is None:
            if len(self._of) >= MAX_RESOURCES:
                self._of = {
                    name: each for name, each in self._of.items() if not each.is_over(now_seconds)
                }
            if len(self._of) >= MAX_RESOURCES:
                name = _OTHERS
            shortage = self._of.setdefault(name, _Shortage())
        return shortage


class _Shortage:
    """Deferrals grow with each round for as long as the shortage lasts: all claims handed back
    before the first of them returns stay away about equally long."""

    def __init__(self) -> None:
        self._deferral_ms = FIRST_DEFERRAL_MS
        self._round_ends_seconds = 0.0
        self._next_return_seconds = 0.0
        self._over_seconds = 0.0
        self._remind_seconds = 0.0
        self._unlogged = 0

    def is_over(self, now_seconds: float) -> bool:
        return now_seconds >= self._over_seconds

    def deferral_ms(self, resource: str, now_seconds: float) -> float:
        """The time for which one more claim stays away."""
        self._unlogged += 1
        if self.is_over(now_seconds):
            self._deferral_ms = FIRST_DEFERRAL_MS
            self._next_return_seconds = self._remind_seconds = now_seconds
        elif now_seconds >= self._round_ends_seconds:
            self._deferral_ms = min(2 * self._deferral_ms, LONGEST_DEFERRAL_MS)
        if now_seconds >= self._round_ends_seconds:
            self._round_ends_seconds = now_seconds + self._deferral_ms / 1_000
        if now_seconds >= self._remind_seconds:
            self._log(resource, now_seconds)
        spread_ms = min((self._next_return_seconds - now_seconds) * 1_000, LONGEST_SPREAD_MS)
        deferral_ms = max(self._deferral_ms, spread_ms)
        return_seconds = now_seconds + deferral_ms / 1_000
        self._next_return_seconds = return_seconds + 1 / RETURNS_PER_SECOND
        self._over_seconds = return_seconds + OVER_AFTER_SECONDS
        return deferral_ms

    def _log(self, resource: str, now_seconds: float) -> None:
        _log.warning(
            "engine.short",
            resource=resource,
            attempts_postponed=self._unlogged,
            advice=_advice_for(_name_of(resource)),
        )
        self._unlogged = 0
        self._remind_seconds = now_seconds + REMIND_SECONDS


def _name_of(resource: str) -> str:
    # A resource may have details in parentheses.
    return resource.partition(" (")[0]


def _advice_for(name: str) -> str:
    return _KEY_ADVICE if name.startswith(_KEY) else _ADVICE.get(name, _OTHER_ADVICE)
