"""The entries of refused requests: as many as a key may leave in the audit log."""

from msgspec import Struct

from duetime.domain.security.audit import AuditEntry
from duetime.domain.security.credentials import RateLimit
from duetime.ports.clock import Clock
from duetime.service.security.token_bucket import TokenBuckets
from duetime.service.security.wrong_keys import source_of

REFUSED_ENTRIES = RateLimit(per_second=10, burst=100)
"""Entries of refused requests of one key; of one address, for requests without a key."""

MAX_SOURCES = 10_000
"""Keys and addresses remembered; the one that was quiet for the longest time is forgotten first."""


class LeftOut(Struct):
    """The requests of a key or an address that have no entry."""

    last: AuditEntry
    requests: int = 0


class RefusalThrottle:
    """Admits entries of refused requests, and counts those that are one too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets = TokenBuckets(REFUSED_ENTRIES, MAX_SOURCES)
        self._left_out: dict[str, LeftOut] = {}

    def admits(self, entry: AuditEntry) -> bool:
        source = entry.key_id or f"{entry.actor} {source_of(entry.address)}"
        if not self._buckets.take(source, self._clock.monotonic()):
            return True
        left_out = self._left_out.setdefault(source, LeftOut(entry))
        left_out.last = entry
        left_out.requests += 1
        return False

    def take_left_out(self) -> list[LeftOut]:
        """The requests without an entry since the last call, of each key and address."""
        left_out, self._left_out = self._left_out, {}
        return list(left_out.values())
