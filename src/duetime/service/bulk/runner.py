"""Runs the bulk operations of the shards that this process owns."""

import asyncio
from collections.abc import Sequence

import structlog
from msgspec.structs import replace

from duetime.background import BackgroundLoop
from duetime.domain.bulk import BulkAction, BulkOperation, BulkStatus, firing_of
from duetime.domain.errors import TimerUnreadable, Unavailable
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant, plus_ms
from duetime.domain.limits import MAX_DELAY_MICROSECONDS, MAX_RUNNING_OPERATIONS
from duetime.domain.timer import Timer
from duetime.domain.transitions import Change, Redrive
from duetime.ports.bulk import BulkStore
from duetime.ports.clock import Clock
from duetime.ports.leases import OwnedShards
from duetime.ports.store import Position, TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.bulk.deletion import NamespaceDeletion
from duetime.service.bulk.operations import BATCH_SIZE, scan_of
from duetime.service.bulk.progress import OperationProgress
from duetime.service.namespaces import Namespaces

_log = structlog.get_logger()

LOOK_SECONDS = 2.0
"""Time after which an operation that another node started, or left behind, is noticed."""

WAITING_SECONDS = 0.5
"""Pause when no operation can go on, because timers that it waits for are executing."""

CONCURRENT_CHANGES = 16
"""Changes under way at once: enough to share a commit, and too few to keep others from the store's
connections."""

KEPT_SECONDS = 7 * 86_400
"""Time for which ended operations are kept."""


class BulkRunner(BackgroundLoop):
    """Takes a batch of each operation in turn and writes the progress after each batch.

    A batch may be repeated: after a crash, or by a former owner of the shard that was paused. Every
    change is conditional, and a new firing has a name that follows from the operation and the
    timer, so a repeat changes no timer twice. A runner that finds its progress overtaken by
    another one starts over with what the other wrote.
    """

    name = "bulk-runner"

    def __init__(
        self,
        store: TimerStore,
        operations: BulkStore,
        clock: Clock,
        wakeups: WakeUps,
        namespaces: Namespaces,
        owned: OwnedShards,
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._operations = operations
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._owned = owned
        self._progress = OperationProgress(operations, clock)
        self._deletion = NamespaceDeletion(store, clock, namespaces, self._progress)
        self._tidied_seconds = -LOOK_SECONDS

    async def step(self) -> None:
        owned = self._owned.owned_shards()
        mine = [operation for operation in await self._running() if operation.shard in owned]
        if not mine or self._clock.monotonic() >= self._tidied_seconds + LOOK_SECONDS:
            await self._tidy()
        if not mine:
            await self.wait(LOOK_SECONDS)
            return
        progressed = False
        unavailable: Unavailable | None = None
        for operation in mine:
            try:
                progressed |= await self._advance_or_fail(operation)
            except Unavailable as error:
                # Others may go on: a disk that is nearly full refuses some changes only.
                unavailable = error
        if unavailable is not None and not progressed:
            raise unavailable
        if not progressed:
            await self.wait(WAITING_SECONDS)

    async def _advance_or_fail(self, operation: BulkOperation) -> bool:
        """Take one batch. An operation that cannot go on ends, so that it does not hold up the
        others."""
        try:
            return await self._advance(operation)
        except Unavailable:
            raise
        except Exception:
            _log.exception("operation.failed", operation=operation.id)
            return await self._fail(operation, "internal error; the log of the service has more")

    async def _advance(self, operation: BulkOperation) -> bool:
        """Take one batch. Returns whether the operation went on or ended."""
        if operation.action is BulkAction.DELETE_NAMESPACE:
            return await self._deletion.advance(operation)
        query = scan_of(operation.namespace, operation.action, operation.filter)
        if operation.last_execute_at is not None and operation.last_timer_uuid is not None:
            position = Position(operation.last_execute_at, operation.last_timer_uuid)
            query = replace(query, after_exclusive=position)
        timers = await self._store.scan(query)
        matching = [timer for timer in timers if _is_to_change(operation, timer)]
        changed = await self._change(operation, matching)
        is_last = len(timers) < query.limit
        last = None if is_last else timers[-1]
        await self._progress.write(
            operation,
            replace(
                operation,
                status=BulkStatus.COMPLETED if last is None else BulkStatus.RUNNING,
                scanned=operation.scanned + len(timers),
                changed=operation.changed + changed,
                skipped=operation.skipped + len(matching) - changed,
                last_execute_at=None if last is None else last.execute_at,
                last_timer_uuid=None if last is None else last.timer_uuid,
            ),
        )
        return True

    async def _change(self, operation: BulkOperation, timers: Sequence[Timer]) -> int:
        """Change the timers that still can be changed, and return their number."""
        if operation.action is BulkAction.REDRIVE:
            redrives = [
                Redrive(key=timer.key, delivery_id=firing_of(operation, timer.key))
                for timer in timers
            ]
            redriven = await self._store.redrive_if_failed(redrives, self._clock.now())
            changed = [timer for timer in redriven if timer is not None]
            self._announce(changed)
            return len(changed)
        change = self._cancel if operation.action is BulkAction.CANCEL else self._reschedule
        count = 0
        for start in range(0, len(timers), CONCURRENT_CHANGES):
            group = timers[start : start + CONCURRENT_CHANGES]
            count += sum(await asyncio.gather(*(change(operation, timer) for timer in group)))
        return count

    async def _cancel(self, operation: BulkOperation, timer: Timer) -> bool:
        try:
            result = await self._store.cancel_if_pending(timer.key, self._clock.now())
        except TimerUnreadable:
            return False
        return result is not None and result.applied

    async def _reschedule(self, operation: BulkOperation, timer: Timer) -> bool:
        now = self._clock.now()
        execute_at = operation.execute_at
        if execute_at is None:
            assert operation.move_by_ms is not None
            # Moved into the past, it is due at once.
            execute_at = max(plus_ms(timer.execute_at, operation.move_by_ms), now)
        if execute_at - now > MAX_DELAY_MICROSECONDS:
            return False
        change = Change(
            updated_at=now,
            delivery_id=firing_of(operation, timer.key),
            only_firing=timer.delivery_id,
            execute_at=execute_at,
        )
        try:
            result = await self._store.change_if_pending(timer.key, change)
        except TimerUnreadable:
            return False
        if result is None or not result.applied:
            return False
        self._announce([result.timer])
        return True

    def _announce(self, timers: Sequence[Timer]) -> None:
        for timer in timers:
            self._wakeups.announce(timer.shard, timer.due_at)

    async def _fail(self, operation: BulkOperation, error: str) -> bool:
        if operation.action is BulkAction.DELETE_NAMESPACE:
            return await self._deletion.fail(operation, error)
        failed = replace(operation, status=BulkStatus.FAILED, error=error)
        await self._progress.write(operation, failed)
        return True

    async def _tidy(self) -> None:
        """Forget old operations, and clear marks that a crash may have left behind."""
        self._tidied_seconds = self._clock.monotonic()
        kept_since = Instant(self._clock.now() - KEPT_SECONDS * MICROSECONDS_PER_SECOND)
        await self._operations.forget_operations(ended_before=kept_since, limit=BATCH_SIZE)
        marked = self._namespaces.deleting
        if marked:
            await self._deletion.clear_marks(await self._running(), marked)

    async def _running(self) -> Sequence[BulkOperation]:
        return await self._operations.operations(running=True, limit=MAX_RUNNING_OPERATIONS)


def _is_to_change(operation: BulkOperation, timer: Timer) -> bool:
    return (
        timer.created_at <= operation.created_at
        and operation.filter.matches(timer)
        and timer.delivery_id != firing_of(operation, timer.key)
    )
