"""Readings of the store that take a while, made for whoever asks and shared by all who ask."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog
from msgspec import Struct

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.ports.clock import Clock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

FRESH_SECONDS = 5.0
"""Age up to which a reading is not repeated, unless it took long."""

SHARE_OF_TIME = 0.02
"""Part of the time that the store may spend on one reading, within LONGEST_REST_SECONDS."""

LONGEST_REST_SECONDS = 60.0

MAX_READINGS = 200
"""Readings that are kept. Beyond that, the one that was asked for longest ago goes."""

_log = structlog.get_logger()


class Reading(Struct, Generic[Value], frozen=True):
    value: Value
    read_at: Instant


class _Kept(Generic[Value]):
    def __init__(self) -> None:
        self.reading: Reading[Value] | None = None
        self.rest_until_seconds = 0.0
        self.task: asyncio.Task[None] | None = None


class SharedReadings(Generic[Key, Value]):
    """Nothing is read unless somebody asks. Each reading is made once at a time, and whoever asks
    while it is fresh gets the same. A reading that fails leaves the last one in place. `read`
    answers None if it gave up."""

    def __init__(self, clock: Clock, read: Callable[[Key], Awaitable[Value | None]]) -> None:
        self._clock = clock
        self._read = read
        self._kept: dict[Key, _Kept[Value]] = {}

    async def get(self, key: Key, *, patience_seconds: float) -> Reading[Value] | None:
        """The latest reading, after waiting a little for a new one if it is not fresh. None if
        there is none yet."""
        kept = self._kept.pop(key, None) or _Kept[Value]()
        self._kept[key] = kept
        self._forget_oldest()
        if kept.task is None and self._clock.monotonic() >= kept.rest_until_seconds:
            kept.task = asyncio.create_task(self._renew(key, kept), name="shared-reading")
        if kept.task is not None:
            await asyncio.wait({kept.task}, timeout=patience_seconds)
        return kept.reading

    async def _renew(self, key: Key, kept: _Kept[Value]) -> None:
        began_at, began_seconds = self._clock.now(), self._clock.monotonic()
        try:
            value = await self._read(key)
        except StoreUnavailable:
            # Other parts report a store that is away.
            value = None
        except Exception:
            _log.exception("loop.step_failed", loop="shared-reading")
            value = None
        finally:
            took_seconds = self._clock.monotonic() - began_seconds
            rest_seconds = max(FRESH_SECONDS, took_seconds / SHARE_OF_TIME)
            kept.rest_until_seconds = self._clock.monotonic() + min(
                rest_seconds, LONGEST_REST_SECONDS
            )
            kept.task = None
        if value is not None:
            kept.reading = Reading(value, began_at)

    def _forget_oldest(self) -> None:
        while len(self._kept) > MAX_READINGS:
            self._kept.pop(next(iter(self._kept)))
