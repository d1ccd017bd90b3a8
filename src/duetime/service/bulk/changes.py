"""The change that an operation makes to a timer, if the timer still matches."""

from collections.abc import Sequence
from enum import Enum

from duetime.domain.bulk import BulkAction, BulkOperation, firing_of, has_run_since
from duetime.domain.errors import TimerUnreadable
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import TimerKey
from duetime.domain.limits import MAX_DELAY_MICROSECONDS
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, run_now
from duetime.ports.clock import Clock
from duetime.ports.store import ConditionalResult, TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.bulk.progress import MAX_TRIES


class Effect(Enum):
    CHANGED = "changed"
    SKIPPED = "skipped"
    """The timer has finished, is gone, or does not match any more."""

    EXECUTING = "executing"
    """The timer may become pending again, and has to be changed then."""


class BulkChanges:
    """Changes timers as they were read: a timer that was written meanwhile is looked at again."""

    def __init__(self, store: TimerStore, clock: Clock, wakeups: WakeUps) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups

    async def redrive(self, operation: BulkOperation, keys: Sequence[TimerKey]) -> list[Effect]:
        """Redrive all timers that are failed, in one write; one effect per timer, in order."""
        redrives = [Redrive(key=key, delivery_id=firing_of(operation, key)) for key in keys]
        redriven = await self._store.redrive_if_failed(redrives, self._clock.now())
        for timer in redriven:
            if timer is not None:
                self._announce(timer)
        return [Effect.SKIPPED if timer is None else Effect.CHANGED for timer in redriven]

    async def change(self, operation: BulkOperation, timer: Timer) -> Effect:
        """Cancel, reschedule or run the timer."""
        for _ in range(MAX_TRIES):
            if timer.status.is_finished or not is_to_change(operation, timer):
                return Effect.SKIPPED
            if timer.status is TimerStatus.EXECUTING:
                # Run now, a timer that is executing has nothing to wait for.
                is_run = operation.action is BulkAction.RUN_NOW
                return Effect.SKIPPED if is_run else Effect.EXECUTING
            try:
                result = await self._apply(operation, timer)
            except TimerUnreadable:
                return Effect.SKIPPED
            if result is None:
                return Effect.SKIPPED
            if result.applied:
                return Effect.CHANGED
            timer = result.timer
        return Effect.SKIPPED

    async def _apply(self, operation: BulkOperation, timer: Timer) -> ConditionalResult | None:
        now = self._clock.now()
        if operation.action is BulkAction.CANCEL:
            return await self._store.cancel_if_pending(
                timer.key, now, only_updated_at=timer.updated_at
            )
        delivery_id = firing_of(operation, timer.key)
        if operation.action is BulkAction.RUN_NOW:
            change = run_now(timer, now, delivery_id)
        elif operation.execute_at is not None:
            change = moved_to(operation.execute_at, timer, now, delivery_id)
        else:
            assert operation.move_by_ms is not None
            change = moved_by(operation.move_by_ms, timer, now, delivery_id)
        if change is None:
            return None
        result = await self._store.change_if_pending(timer.key, change)
        if result is not None and result.applied:
            self._announce(result.timer)
        return result

    def _announce(self, timer: Timer) -> None:
        self._wakeups.announce(timer.shard, timer.due_at)


def moved_by(move_by_ms: int, timer: Timer, now: Instant, delivery_id: str) -> Change | None:
    """The next attempt is moved, which may be a retry. Moved into the past, it is due at once.
    None if it would be too far in the future."""
    execute_at = max(plus_ms(timer.due_at, move_by_ms), now)
    return moved_to(execute_at, timer, now, delivery_id)


def moved_to(execute_at: Instant, timer: Timer, now: Instant, delivery_id: str) -> Change | None:
    """The change of the timer as it was read. None if it would be too far in the future."""
    if execute_at - now > MAX_DELAY_MICROSECONDS:
        return None
    return Change(
        updated_at=now,
        delivery_id=delivery_id,
        only_firing=timer.delivery_id,
        only_updated_at=timer.updated_at,
        execute_at=execute_at,
    )


def is_to_change(operation: BulkOperation, timer: Timer) -> bool:
    """Whether the timer is one that the operation is for, and has not changed yet. A timer that
    has run since is not run again: its receiver may have rescheduled it."""
    return (
        timer.created_at <= operation.created_at
        and operation.filter.matches(timer)
        and timer.delivery_id != firing_of(operation, timer.key)
        and not (operation.action is BulkAction.RUN_NOW and has_run_since(operation, timer))
    )
