"""Bulk operations: one action on every timer of a namespace that matches a filter."""

import re
from enum import Enum
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from msgspec import Struct

from duetime.domain.callback import HttpCallback
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant
from duetime.domain.keys import ShardNumber, TimerKey, derived_uuid7
from duetime.domain.metadata import has_member
from duetime.domain.timer import Timer, TimerStatus

_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*)://)?(?P<authority>[^/?#]*)(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)


class BulkAction(Enum):
    CANCEL = "cancel"
    REDRIVE = "redrive"
    RESCHEDULE = "reschedule"
    RUN_NOW = "run-now"
    DELETE_NAMESPACE = "delete-namespace"
    """Forget every timer of the namespace, then the namespace itself."""


class BulkStatus(Enum):
    RUNNING = "running"
    COMPLETED = "completed"
    ABORTED = "aborted"
    FAILED = "failed"


class TimerFilter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Matches timers that meet every condition given. `endpoint` is an origin such as
    `https://api.example.com`, or a host with or without a port. `metadata_key` and `metadata_value`
    are given together: `metadata.has_member` says what they match."""

    due_from_inclusive: Instant | None = None
    due_until_exclusive: Instant | None = None
    id_prefix: str | None = None
    endpoint: str | None = None
    error_contains: str | None = None
    metadata_key: str | None = None
    metadata_value: str | None = None

    @property
    def is_range(self) -> bool:
        """The filter asks for nothing but a range of instants."""
        return self.id_prefix is None and not self.reads_contents

    @property
    def reads_contents(self) -> bool:
        """The filter asks for something that no index of a store serves."""
        contents = (self.endpoint, self.error_contains, self.metadata_key, self.metadata_value)
        return any(each is not None for each in contents)

    def matches(self, timer: Timer) -> bool:
        first, end = self.due_from_inclusive, self.due_until_exclusive
        if first is not None and timer.execute_at < first:
            return False
        if end is not None and timer.execute_at >= end:
            return False
        if self.id_prefix is not None and not timer.key.id.startswith(self.id_prefix):
            return False
        if self.error_contains is not None and self.error_contains not in (timer.last_error or ""):
            return False
        if self.endpoint is not None and not _is_at(self.endpoint, timer):
            return False
        key, value = self.metadata_key, self.metadata_value
        return key is None or value is None or has_member(timer.metadata, key, value)


class BulkOperation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A bulk operation and its progress. Timers that were created after it are left alone.

    The owner of `shard` runs it. `matched` was counted at the start; with `matched_is_minimum` the
    count was cut short. `scanned` timers were looked at since, `changed` of them were changed, and
    `skipped` of them matched but could not be changed any more. `executing` of them match and are
    waited for: they may become pending again. After a crash the last batch is repeated, or the
    whole pass if timers were waited for; each timer is changed once only, but the timers of a batch
    may be missing in `changed`.
    """

    id: str
    namespace: str
    action: BulkAction
    shard: ShardNumber
    created_at: Instant
    updated_at: Instant
    started_by: str | None = None
    """The name of the key that started it. Operations of earlier releases have none."""
    filter: TimerFilter = TimerFilter()
    execute_at: Instant | None = None
    move_by_ms: int | None = None
    force: bool = False
    """Whether the deletion of a namespace forgets pending timers too."""
    marked_at: Instant | None = None
    """The instant at which a deletion found, or set, the mark of its namespace."""
    version: int = 0
    status: BulkStatus = BulkStatus.RUNNING
    matched: int = 0
    matched_is_minimum: bool = False
    scanned: int = 0
    changed: int = 0
    skipped: int = 0
    last_execute_at: Instant | None = None
    """Position of the last timer looked at, together with `last_timer_uuid`."""
    last_timer_uuid: bytes | None = None
    executing: int = 0
    passed_at: Instant | None = None
    """The instant at which the first pass over all timers ended."""
    error: str | None = None

    @property
    def is_running(self) -> bool:
        return self.status is BulkStatus.RUNNING


def status_to_change(action: BulkAction) -> TimerStatus:
    """The status of the timers that the action changes."""
    return TimerStatus.FAILED if action is BulkAction.REDRIVE else TimerStatus.PENDING


def has_run_since(operation: BulkOperation, timer: Timer) -> bool:
    """Whether an attempt of the timer ended after the operation was created."""
    if not timer.attempts:
        return False
    last = timer.attempts[-1]
    ended_at = last.claimed_at if last.answered_at is None else last.answered_at
    return ended_at > operation.created_at


def firing_of(operation: BulkOperation, key: TimerKey) -> str:
    """The delivery id that the operation gives to the timer. It follows from both, so that a
    repeated batch recognises the timers that it has changed already. It is a UUID of version 7, as
    every delivery id, of the time at which the operation was created."""
    text = f"{operation.id}\n{len(key.namespace)}\n{key.namespace}\n{key.id}"
    return derived_uuid7(text, unix_ms=operation.created_at // MICROSECONDS_PER_MS)


def is_endpoint(text: str) -> bool:
    """Whether the text is an endpoint that timers can have."""
    match = _URL.fullmatch(text)
    place = _place_of(text)
    return (
        match is not None
        and match["rest"] in ("", "/")
        and "@" not in match["authority"]
        and place is not None
        and place[0] in ("", *_DEFAULT_PORTS)
    )


def _is_at(endpoint: str, timer: Timer) -> bool:
    callback = timer.callback
    if not isinstance(callback, HttpCallback):
        return False
    place, wanted = _place_of(callback.url), _place_of(endpoint)
    if place is None or wanted is None:
        return False
    return place[1] == wanted[1] and wanted[0] in ("", place[0]) and wanted[2] in (None, place[2])


@lru_cache(1_024)
def _place_of(url: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port; an empty scheme and no port where the text has none. None if there is
    no valid host or port."""
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme = (match["scheme"] or "").lower()
    try:
        # Names and passwords may have characters in them that are not valid in a host.
        parts = urlsplit(f"//{match['authority'].rpartition('@')[2]}")
        host, port = _spelt_as_called(parts.hostname or ""), parts.port
    except ValueError:
        return None
    return (scheme, host, port or _DEFAULT_PORTS.get(scheme)) if host else None


def _spelt_as_called(host: str) -> str:
    """A host has several spellings, and one in which it is called. Raises ValueError."""
    if ":" in host:
        return IPv6Address(host).compressed
    return host if host.isascii() else host.encode("idna").decode().lower()
