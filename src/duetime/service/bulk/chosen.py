"""One action on timers that somebody has chosen, one by one, and the answer for each."""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from duetime.domain.bulk import BulkAction
from duetime.domain.errors import (
    DuetimeError,
    InvalidInput,
    StoreUnavailable,
    TimerNotFound,
    TimerNotPending,
    TimerSealed,
)
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.limits import MAX_CHOSEN_TIMERS, MAX_DELAY_YEARS
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change, run_now
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.bulk.changes import moved_by
from duetime.service.bulk.operations import check_move
from duetime.service.bulk.passes import CONCURRENT_CHANGES
from duetime.service.bulk.progress import MAX_TRIES
from duetime.service.namespaces import Namespaces
from duetime.service.redriving import Redriving
from duetime.service.timer_service import TimerService, new_uuid7

MakeChange = Callable[[Timer, Instant], Change | None]
"""The change of a pending timer as it was read; None if nothing is to be done."""


class Answered(Struct, frozen=True):
    """The timer after the action, or the reason why nothing was done to it."""

    key: TimerKey
    timer: Timer | None = None
    error: DuetimeError | None = None


class ChosenTimers:
    """Acts on single timers by the rules of the operations on one. Nothing is kept about it: if the
    process ends in between, some timers are changed and the others are not."""

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        wakeups: WakeUps,
        namespaces: Namespaces,
        timers: TimerService,
        redriving: Redriving,
        *,
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._timers = timers
        self._redriving = redriving
        self._new_uuid = new_uuid

    async def act(
        self, action: BulkAction, keys: Sequence[TimerKey], *, move_by_ms: int | None = None
    ) -> list[Answered]:
        """Cancel, redrive, move or run each timer; one answer per timer, in order, without repeats.
        A timer that is refused does not keep the others from being changed. Raises `InvalidInput`.
        """
        keys = list(dict.fromkeys(keys))
        if not 1 <= len(keys) <= MAX_CHOSEN_TIMERS:
            raise InvalidInput("timer", f"must be given 1 to {MAX_CHOSEN_TIMERS} times")
        if action is BulkAction.RESCHEDULE:
            if move_by_ms is None:
                raise InvalidInput("move_by", "is needed")
            check_move(move_by_ms)
        answers: list[Answered] = []
        for start in range(0, len(keys), CONCURRENT_CHANGES):
            group = keys[start : start + CONCURRENT_CHANGES]
            answers += await asyncio.gather(
                *(self._answered(action, key, move_by_ms) for key in group)
            )
        return answers

    async def run_now(self, key: TimerKey) -> Timer:
        """Make a pending timer due at once; one that is due already stays as it is. Raises
        `NamespaceNotFound`, `TimerNotFound`, `TimerNotPending`."""
        return await self._change(
            key, "run", lambda timer, now: run_now(timer, now, self._new_uuid())
        )

    async def move(self, key: TimerKey, move_by_ms: int) -> Timer:
        """Move the next attempt of a pending timer, which may be a retry, and start a new firing.
        Moved into the past, it is due at once. Raises `InvalidInput`, `NamespaceNotFound`,
        `TimerNotFound`, `TimerNotPending`."""
        check_move(move_by_ms)

        def change(timer: Timer, now: Instant) -> Change:
            moved = moved_by(move_by_ms, timer, now, self._new_uuid())
            if moved is None:
                problem = f"leads too far into the future: at most {MAX_DELAY_YEARS} years"
                raise InvalidInput("move_by", problem)
            return moved

        return await self._change(key, "move", change)

    async def _answered(
        self, action: BulkAction, key: TimerKey, move_by_ms: int | None
    ) -> Answered:
        try:
            return Answered(key, timer=await self._act(action, key, move_by_ms))
        except DuetimeError as error:
            return Answered(key, error=error)

    async def _act(self, action: BulkAction, key: TimerKey, move_by_ms: int | None) -> Timer:
        match action:
            case BulkAction.CANCEL:
                return await self._timers.cancel(key)
            case BulkAction.REDRIVE:
                return await self._redriving.redrive(key)
            case BulkAction.RUN_NOW:
                return await self.run_now(key)
            case BulkAction.RESCHEDULE:
                assert move_by_ms is not None
                return await self.move(key, move_by_ms)
            case BulkAction.DELETE_NAMESPACE:
                raise InvalidInput("action", "is not for single timers")

    async def _change(self, key: TimerKey, verb: str, make_change: MakeChange) -> Timer:
        """Change the timer as it was read, and again if it was written meanwhile."""
        await self._namespaces.named(key.namespace)
        timer = await self._get(key)
        for _ in range(MAX_TRIES):
            if timer.status is not TimerStatus.PENDING:
                raise TimerNotPending(verb, timer.status)
            change = make_change(timer, self._clock.now())
            if change is None:
                return timer
            result = await self._store.change_if_pending(key, change)
            if result is None:
                raise TimerNotFound(key)
            timer = result.timer
            if result.applied:
                self._wakeups.announce(timer.shard, timer.due_at)
                return timer
        raise StoreUnavailable(f"timer {key.id!r} changes too fast to be changed: try again")

    async def _get(self, key: TimerKey) -> Timer:
        """The timer, sealed or not: its contents do not matter here."""
        try:
            timer = await self._store.get(key)
        except TimerSealed as sealed:
            return sealed.timer
        if timer is None:
            raise TimerNotFound(key)
        return timer
