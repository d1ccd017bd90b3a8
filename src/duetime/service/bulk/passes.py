"""The pass of an operation over all timers that match, and the wait for those that execute."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress

from msgspec.structs import replace

from duetime.domain.bulk import BulkAction, BulkOperation, BulkStatus
from duetime.domain.errors import TimerUnreadable
from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.domain.keys import TimerKey
from duetime.domain.timer import TimerStatus
from duetime.ports.clock import Clock
from duetime.ports.store import Position, ScanQuery, TimerStore
from duetime.service.bulk.changes import BulkChanges, Effect, is_to_change
from duetime.service.bulk.matching import BATCH_SIZE, following, scan_of
from duetime.service.bulk.progress import OperationProgress
from duetime.service.turns import Turns

CONCURRENT_CHANGES = 16
"""Changes under way at once: enough to share a commit, and too few to keep others from the store's
connections."""

FOLLOWING_SECONDS = 15 * 60
"""Time after the first pass for which an operation waits for timers that are executing."""

EXECUTING_AT_ONCE = 1_000
"""Executing timers that are read at once."""

REST_FACTOR = 10
"""Length of the pause between two looks at executing timers, in units of the look's duration."""


class _Run:
    """This process's knowledge of an operation beyond the progress that is written."""

    def __init__(self, version: int) -> None:
        self.version = version
        """The version of the progress that this knowledge belongs to."""
        self.followed: dict[TimerKey, None] = {}
        """Timers that match and were executing when the pass met them."""
        self.has_passed = False
        self.look_at_seconds = 0.0


class _Batch:
    """Timers of a batch by the effect on them."""

    def __init__(self) -> None:
        self.keys: dict[Effect, list[TimerKey]] = {effect: [] for effect in Effect}

    def add(self, keys: Iterable[TimerKey], effects: Iterable[Effect]) -> None:
        for key, effect in zip(keys, effects, strict=True):
            self.keys[effect].append(key)

    def followed_after(self, before: Mapping[TimerKey, None]) -> dict[TimerKey, None]:
        settled = {*self.keys[Effect.CHANGED], *self.keys[Effect.SKIPPED]}
        left = {key: None for key in before if key not in settled}
        return left | dict.fromkeys(self.keys[Effect.EXECUTING])


class BulkPasses:
    """A pass scans pending and executing timers together, so that it meets every timer in one of
    both. It changes the pending ones, and follows the executing ones until they are pending again
    or have finished.

    The keys of followed timers are in memory only. A process that takes an operation over while
    some are followed repeats the pass, which changes no timer twice.
    """

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        changes: BulkChanges,
        progress: OperationProgress,
        turns: Turns,
    ) -> None:
        self._store = store
        self._clock = clock
        self._changes = changes
        self._progress = progress
        self._turns = turns
        self._runs: dict[str, _Run] = {}

    def forget_others(self, running: Collection[BulkOperation]) -> None:
        """Forget operations that have ended, or that another process runs."""
        ids = {operation.id for operation in running}
        self._runs = {id: run for id, run in self._runs.items() if id in ids}

    async def advance(self, operation: BulkOperation) -> bool:
        """Take one batch. Returns whether the operation went on or ended."""
        run = self._runs.get(operation.id)
        if run is None or run.version != operation.version:
            run = self._runs[operation.id] = _Run(operation.version)
            if operation.executing:
                operation = replace(operation, last_execute_at=None, last_timer_uuid=None)
        if run.has_passed:
            return await self._follow(operation, run)
        await self._pass(operation, run)
        return True

    async def _pass(self, operation: BulkOperation, run: _Run) -> None:
        query = scan_of(operation.namespace, operation.action, operation.filter)
        if operation.last_execute_at is not None and operation.last_timer_uuid is not None:
            position = Position(operation.last_execute_at, operation.last_timer_uuid)
            query = replace(query, after_exclusive=position)
        timers = await self._store.scan(query)
        are_to_change = await self._turns.map(partial(is_to_change, operation), timers)
        matching = {timer.key: timer for timer in compress(timers, are_to_change)}
        batch = await self._change(
            operation, list(matching), lambda key: self._changes.change(operation, matching[key])
        )
        rest = following(query, timers)
        last = None if rest is None else rest.after_exclusive
        passed_at = operation.passed_at
        if rest is None and passed_at is None:
            passed_at = self._clock.now()
        after = replace(
            operation,
            scanned=operation.scanned + len(timers),
            last_execute_at=None if last is None else last.execute_at,
            last_timer_uuid=None if last is None else last.timer_uuid,
            passed_at=passed_at,
        )
        await self._write(operation, after, batch, run, has_passed=rest is None)

    async def _follow(self, operation: BulkOperation, run: _Run) -> bool:
        """Change the timers that are pending again."""
        began_seconds = self._clock.monotonic()
        if began_seconds < run.look_at_seconds:
            return False
        assert operation.passed_at is not None
        if self._clock.now() - operation.passed_at > FOLLOWING_SECONDS * MICROSECONDS_PER_SECOND:
            batch = _Batch()
            batch.keys[Effect.SKIPPED] += run.followed
            await self._write(operation, operation, batch, run, has_passed=True)
            return True
        executing = await self._executing(operation)
        returned = [key for key in run.followed if key not in executing][:BATCH_SIZE]
        if not returned:
            took_seconds = self._clock.monotonic() - began_seconds
            run.look_at_seconds = began_seconds + REST_FACTOR * took_seconds
            return False
        batch = await self._change(
            operation, returned, lambda key: self._change_now(operation, key)
        )
        await self._write(operation, operation, batch, run, has_passed=True)
        return True

    async def _executing(self, operation: BulkOperation) -> set[TimerKey]:
        query: ScanQuery | None = replace(
            scan_of(operation.namespace, operation.action, operation.filter),
            status=TimerStatus.EXECUTING,
            limit=EXECUTING_AT_ONCE,
        )
        keys: set[TimerKey] = set()
        while query is not None:
            timers = await self._store.scan(query)
            keys.update(timer.key for timer in timers)
            query = following(query, timers)
        return keys

    async def _change_now(self, operation: BulkOperation, key: TimerKey) -> Effect:
        """Change the timer as it is now."""
        try:
            timer = await self._store.get(key)
        except TimerUnreadable:
            return Effect.SKIPPED
        return Effect.SKIPPED if timer is None else await self._changes.change(operation, timer)

    async def _change(
        self,
        operation: BulkOperation,
        keys: Sequence[TimerKey],
        change: Callable[[TimerKey], Awaitable[Effect]],
    ) -> _Batch:
        """Change timers group by group, until somebody else has written to the operation."""
        batch = _Batch()
        # A redrive of many timers is one write.
        is_redrive = operation.action is BulkAction.REDRIVE
        size = BATCH_SIZE if is_redrive else CONCURRENT_CHANGES
        for start in range(0, len(keys), size):
            if not await self._progress.is_current(operation):
                break
            group = keys[start : start + size]
            if is_redrive:
                batch.add(group, await self._changes.redrive(operation, group))
            else:
                batch.add(group, await asyncio.gather(*map(change, group)))
        return batch

    async def _write(
        self,
        read: BulkOperation,
        after: BulkOperation,
        batch: _Batch,
        run: _Run,
        *,
        has_passed: bool,
    ) -> None:
        followed = batch.followed_after(run.followed)
        is_done = has_passed and not followed
        after = replace(
            after,
            status=BulkStatus.COMPLETED if is_done else BulkStatus.RUNNING,
            changed=read.changed + len(batch.keys[Effect.CHANGED]),
            skipped=read.skipped + len(batch.keys[Effect.SKIPPED]),
            executing=len(followed),
        )
        written = await self._progress.write(read, after)
        if written is None:
            del self._runs[read.id]
            return
        run.version, run.followed, run.has_passed = written.version, followed, has_passed
