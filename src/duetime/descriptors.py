"""File descriptors: how many this process may open, and how they are shared out."""

import contextlib
import resource
from typing import NamedTuple

MOST_USED = 65_536
"""Descriptors that the process asks for. More would be of no use to one process."""

RESERVE = 64
"""Descriptors for the store, brokers, name look-ups, logs and files, which always come first."""

FEWEST = 8
"""Callbacks, and connections to the API, that are allowed however low the limit is."""

API_SHARE = 4
"""One in so many of the other descriptors is for connections to the API."""

SURPLUS_PART = 8
"""One more connection for every so many to the API can be told that there is no place."""


class DescriptorBudget(NamedTuple):
    """`limit` is the number of descriptors that the process may have open. `callbacks` of them are
    for connections to endpoints, busy or idle; `api_connections` for clients of the API, and
    `api_surplus` for those that find no place."""

    limit: int
    callbacks: int
    api_connections: int
    api_surplus: int


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files as far as the hard limit allows: thousands of callbacks
    may be under way at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST_USED if hard == resource.RLIM_INFINITY else min(hard, MOST_USED)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def descriptor_budget() -> DescriptorBudget:
    """The budget under the soft limit of now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return budget_of(MOST_USED if soft == resource.RLIM_INFINITY else soft)


def budget_of(limit: int) -> DescriptorBudget:
    shared = limit - RESERVE
    api_connections = max(FEWEST, shared // API_SHARE)
    api_surplus = api_connections // SURPLUS_PART
    callbacks = max(FEWEST, shared - api_connections - api_surplus)
    return DescriptorBudget(limit, callbacks, api_connections, api_surplus)
