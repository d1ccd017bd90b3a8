"""The throttle of wrong keys: nobody may try keys by the thousand, nor without a trace."""

from collections import Counter
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

import structlog

from duetime.domain.errors import TooManyRequests
from duetime.domain.security.credentials import RateLimit
from duetime.ports.clock import Clock
from duetime.service.security.token_bucket import TokenBuckets

_log = structlog.get_logger()

WRONG_KEYS = RateLimit(per_second=1, burst=20)
"""Wrong keys of one address that are answered with 401; those beyond it are answered with 429."""

MAX_ADDRESSES = 10_000
"""Addresses remembered; the one that was quiet for the longest time is forgotten first."""

IPV6_PREFIX = 64
"""Length of the prefix that stands for one IPv6 client, who has all addresses behind it."""


class WrongKeys:
    """Counts wrong keys by the address that they come from. Right keys are not its business: one
    attacker behind a shared address must not lock out everybody else there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets = TokenBuckets(WRONG_KEYS, MAX_ADDRESSES)
        self._refused = 0
        self._throttled = 0
        self._tries: Counter[str] = Counter()
        """Tries since the last report, by the client."""

    def count(self, address: str | None) -> None:
        """Count one key that is probably wrong. Raises `TooManyRequests`."""
        source = source_of(address)
        wait_seconds = self._buckets.take(source, self._clock.monotonic())
        if wait_seconds:
            self._throttled += 1
            self._note_try(source)
            raise TooManyRequests("too many wrong keys from this address", ceil(wait_seconds))

    def note_refused(self, address: str | None) -> None:
        """Note for the next report that a key was wrong."""
        self._refused += 1
        self._note_try(source_of(address))

    def report(self) -> None:
        """Log the wrong keys since the last report. Nothing that a client sent is in the line."""
        if not self._tries:
            return
        ((address, tries),) = self._tries.most_common(1)
        _log.warning(
            "api.wrong_keys",
            refused=self._refused,
            throttled=self._throttled,
            address=address or None,
            address_tries=tries,
        )
        self._refused = self._throttled = 0
        self._tries.clear()

    def _note_try(self, source: str) -> None:
        if source in self._tries or len(self._tries) < MAX_ADDRESSES:
            self._tries[source] += 1


def source_of(address: str | None) -> str:
    """The client that an address belongs to: all addresses of an IPv6 network of /64 are one."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return ""
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ip_network((int(parsed), IPV6_PREFIX), strict=False))
    return str(parsed)
