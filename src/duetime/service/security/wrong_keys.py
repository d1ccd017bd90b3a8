"""The throttle of wrong keys: nobody may try keys by the thousand."""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from duetime.domain.errors import TooManyRequests
from duetime.domain.security.credentials import RateLimit
from duetime.ports.clock import Clock
from duetime.service.security.token_bucket import TokenBucket

WRONG_KEYS = RateLimit(per_second=1, burst=20)
"""Wrong keys of one address that are looked at."""

MAX_ADDRESSES = 10_000
"""Addresses remembered; the one that was quiet for the longest time is forgotten first."""

IPV6_PREFIX = 64
"""Length of the prefix that stands for one IPv6 client, who has all addresses behind it."""


class WrongKeys:
    """Counts wrong keys by the address that they come from. Right keys are not its business: one
    attacker behind a shared address must not lock out everybody else there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def count(self, address: str | None) -> None:
        """Count one wrong key. Raises `TooManyRequests`."""
        source = source_of(address)
        now_seconds = self._clock.monotonic()
        bucket = self._buckets.get(source)
        if bucket is None:
            if len(self._buckets) >= MAX_ADDRESSES:
                self._buckets.popitem(last=False)
            bucket = self._buckets[source] = TokenBucket(WRONG_KEYS, now_seconds)
        self._buckets.move_to_end(source)
        wait_seconds = bucket.take(now_seconds)
        if wait_seconds:
            raise TooManyRequests("too many wrong keys from this address", ceil(wait_seconds))


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
