"""Schedules timers by key for the bus: a create, or a change of the pending timer."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from msgspec import UNSET, Struct

from duetime.domain.callback import BusCallback
from duetime.domain.errors import DuetimeError, InvalidInput, StoreUnavailable, TimerUnreadable
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.store import CreateRequest, Existence, TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.create_batcher import CreateBatcher
from duetime.service.create_requests import CreateRequests, NewTimer
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import MAX_TRIES, new_uuid7
from duetime.service.turns import Turns
from duetime.service.validation import TimerChecks, TimerRules, check_key_text

_CALLBACK = BusCallback()


class Schedule(Struct, frozen=True, kw_only=True):
    """A timer to announce on the bus when it is due.

    `order` is the position of the command in its channel. For each key the command with the
    highest position counts, whichever is handled first.
    """

    namespace: str
    id: str
    due_at: Instant
    correlation_id: str | None
    order: int

    @property
    def key(self) -> TimerKey:
        return TimerKey(self.namespace, self.id)


class Scheduled(Enum):
    """The result of a schedule."""

    CREATED = "created"
    CHANGED = "changed"
    """The pending timer now has this instant."""

    UNCHANGED = "unchanged"
    """The timer already has this instant, or the instant of a later command."""

    TOO_LATE = "too late"
    """The timer has fired, or is about to, or was canceled: nothing happens."""


class Scheduling:
    """Creates timers and changes pending ones. Missing namespaces are created."""

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        wakeups: WakeUps,
        destination: Destination,
        namespaces: Namespaces,
        rules: TimerRules,
        *,
        creates: CreateBatcher,
        turns: Turns,
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._creates = creates
        self._turns = turns
        checks = TimerChecks(destination, rules)
        self._requests = CreateRequests(namespaces, checks, rules, new_uuid)

    async def schedule_all(self, schedules: Sequence[Schedule]) -> list[Scheduled | DuetimeError]:
        """Schedule durably, in as few writes as possible; one answer per schedule, in order. An
        invalid schedule does not keep the others from being scheduled. Raises `StoreUnavailable`;
        then some may have been scheduled, and the same call may be made again."""
        answers: list[Scheduled | DuetimeError] = [Scheduled.UNCHANGED] * len(schedules)
        named = _with_valid_namespaces(schedules, answers)
        await self._namespaces.provide({schedules[index].namespace for index in named})
        news = [_new_timer(schedules[index]) for index in named]
        batch = await self._requests.batch(news, self._clock.now(), self._turns)
        refused = {**batch.refused, **{at: error for at, (_, error) in batch.mistimed.items()}}
        for at, refusal in refused.items():
            answers[named[at]] = refusal
        accepted = [index for at, index in enumerate(named) if at not in refused]
        requests = dict(zip(accepted, batch.requests, strict=True))
        last = _last_of_each_key(schedules, accepted)
        outcomes = await self._create_or_change(
            [requests[index] for index in last], [schedules[index].order for index in last]
        )
        for index, outcome in zip(last, outcomes, strict=True):
            answers[index] = outcome
        return answers

    async def _create_or_change(
        self, requests: Sequence[CreateRequest], orders: Sequence[int]
    ) -> list[Scheduled | DuetimeError]:
        results = await self._creates.create_all(requests)
        outcomes: list[Scheduled | DuetimeError] = [Scheduled.CREATED] * len(results)
        for at, each in enumerate(results):
            if each.existence is Existence.UNREADABLE:
                outcomes[at] = TimerUnreadable(each.timer.key)
        existing = [at for at, each in enumerate(results) if each.existence is Existence.EXISTING]
        changes = [self._change(results[at].timer, requests[at], orders[at]) for at in existing]
        for at, outcome in zip(existing, await asyncio.gather(*changes), strict=True):
            outcomes[at] = outcome
        return outcomes

    async def _change(
        self, existing: Timer, request: CreateRequest, order: int
    ) -> Scheduled | DuetimeError:
        for _ in range(MAX_TRIES):
            if not isinstance(existing.callback, BusCallback):
                # A producer of commands must not disarm timers that others rely on.
                return InvalidInput("id", "belongs to a timer that was not scheduled over the bus")
            if existing.status is not TimerStatus.PENDING:
                return Scheduled.TOO_LATE
            if existing.command_order >= order:
                return Scheduled.UNCHANGED
            change = _change_of(existing, request.timer)
            result = await self._store.change_if_pending(existing.key, change)
            if result is None:
                # The timer was removed meanwhile, so its key is free again.
                (created,) = await self._creates.create_all([request])
                if created.existence is Existence.CREATED:
                    return Scheduled.CREATED
                if created.existence is Existence.UNREADABLE:
                    return TimerUnreadable(created.timer.key)
                existing = created.timer
            elif not result.applied:
                existing = result.timer
            elif change.execute_at is UNSET:
                return Scheduled.UNCHANGED
            else:
                self._wakeups.announce(result.timer.shard, result.timer.due_at)
                return Scheduled.CHANGED
        raise StoreUnavailable(f"timer {existing.key.id!r} changes too fast to be changed")


def _with_valid_namespaces(
    schedules: Sequence[Schedule], answers: list[Scheduled | DuetimeError]
) -> list[int]:
    """Indexes of the schedules with valid namespaces; the others get their answers."""
    valid = []
    for index, schedule in enumerate(schedules):
        try:
            check_key_text("namespace", schedule.namespace)
        except InvalidInput as error:
            answers[index] = error
        else:
            valid.append(index)
    return valid


def _last_of_each_key(schedules: Sequence[Schedule], indexes: Iterable[int]) -> list[int]:
    """Indexes of the schedules that count; a later command for the same key overrides the rest."""
    last: dict[TimerKey, int] = {}
    for index in indexes:
        key = schedules[index].key
        before = last.get(key)
        if before is None or schedules[index].order > schedules[before].order:
            last[key] = index
    return list(last.values())


def _new_timer(schedule: Schedule) -> NewTimer:
    return NewTimer(
        namespace=schedule.namespace,
        id=schedule.id,
        execute_at=schedule.due_at,
        callback=_CALLBACK,
        correlation_id=schedule.correlation_id,
        command_order=schedule.order,
    )


def _change_of(existing: Timer, scheduled: Timer) -> Change:
    """The change, for the existing timer as it was read. A timer that already has the instant
    keeps its firing: if the service died after announcing it, the next announcement must have
    the same id."""
    return Change(
        updated_at=scheduled.updated_at,
        delivery_id=scheduled.delivery_id,
        only_firing=existing.delivery_id,
        only_updated_at=existing.updated_at,
        execute_at=UNSET if existing.execute_at == scheduled.execute_at else scheduled.execute_at,
        correlation_id=scheduled.correlation_id,
        command_order=scheduled.command_order,
    )
