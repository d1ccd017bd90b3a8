"""Schedules and cancels timers by key for the bus."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback, Payload
from duetime.domain.errors import (
    DuetimeError,
    InvalidInput,
    NamespaceNotFound,
    StoreUnavailable,
    TimerSealed,
    TimerUnreadable,
)
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

_NO_PAYLOAD = BusCallback()


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
    payload: Payload = UNSET
    traceparent: str | None = None

    @property
    def key(self) -> TimerKey:
        return TimerKey(self.namespace, self.id)


class Cancellation(Struct, frozen=True, kw_only=True):
    """A timer not to announce any more. `order` is as in `Schedule`."""

    namespace: str
    id: str
    order: int

    @property
    def key(self) -> TimerKey:
        return TimerKey(self.namespace, self.id)


class Scheduled(Enum):
    """The result of a schedule or a cancellation."""

    CREATED = "created"
    CHANGED = "changed"
    """The pending timer now has this instant and payload."""

    CANCELED = "canceled"
    """The pending timer is canceled."""

    UNCHANGED = "unchanged"
    """The timer already is as asked for, or as a later command asks."""

    TOO_LATE = "too late"
    """The timer has fired, or was canceled before it was to be scheduled: nothing happens."""

    UNKNOWN = "unknown"
    """There is no timer to cancel."""

    UNDECIDED = "undecided"
    """Only another try can tell. The timer is executing: it may have been announced, or may become
    pending again without. Or its namespace is being deleted, and can be created afterwards. Or its
    encryption key is missing."""


Answer = Scheduled | DuetimeError


class Scheduling:
    """Creates timers, changes and cancels pending ones. Missing namespaces are created."""

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

    async def handle_all(self, commands: Sequence[Schedule | Cancellation]) -> list[Answer]:
        """Schedule and cancel durably; one answer per command, in order. Commands for the same key
        take effect in the order of their positions. Raises like `schedule_all`."""
        answers: dict[int, Answer] = {}
        for round_ in _rounds(commands):
            schedules: dict[int, Schedule] = {}
            cancellations: dict[int, Cancellation] = {}
            for index in round_:
                command = commands[index]
                if isinstance(command, Schedule):
                    schedules[index] = command
                else:
                    cancellations[index] = command
            scheduled = await self.schedule_all(list(schedules.values()))
            answers |= zip(schedules, scheduled, strict=True)
            canceled = await asyncio.gather(*map(self._cancel, cancellations.values()))
            answers |= zip(cancellations, canceled, strict=True)
        return [answers[index] for index in range(len(commands))]

    async def _cancel(self, cancellation: Cancellation) -> Answer:
        key, order = cancellation.key, cancellation.order
        try:
            check_key_text("namespace", key.namespace)
            check_key_text("id", key.id)
            for _ in range(MAX_TRIES):
                existing = await self._store.get(key)
                if existing is None:
                    # The command that creates the timer may be waiting for the deletion to end.
                    is_deleted = key.namespace in self._namespaces.deleting
                    return Scheduled.UNDECIDED if is_deleted else Scheduled.UNKNOWN
                obstacle = _obstacle(existing, order)
                if obstacle is not None:
                    is_repeat = existing.status is TimerStatus.CANCELED
                    return Scheduled.UNCHANGED if is_repeat else obstacle
                result = await self._store.cancel_if_pending(
                    key, self._clock.now(), only_updated_at=existing.updated_at
                )
                if result is not None and result.applied:
                    return Scheduled.CANCELED
        except TimerSealed:
            return Scheduled.UNDECIDED
        except (InvalidInput, TimerUnreadable) as error:
            return error
        raise StoreUnavailable(f"timer {key.id!r} changes too fast to be canceled")

    async def schedule_all(self, schedules: Sequence[Schedule]) -> list[Answer]:
        """Schedule durably, in as few writes as possible; one answer per schedule, in order. An
        invalid schedule does not keep the others from being scheduled. Raises `StoreUnavailable`;
        then some may have been scheduled, and the same call may be made again."""
        answers: list[Answer] = [Scheduled.UNCHANGED] * len(schedules)
        named = _with_valid_namespaces(schedules, answers)
        await self._namespaces.provide({schedules[index].namespace for index in named})
        news = [_new_timer(schedules[index]) for index in named]
        batch = await self._requests.batch(news, self._clock.now(), self._turns)
        refused = {**batch.refused, **{at: error for at, (_, error) in batch.mistimed.items()}}
        for at, refusal in refused.items():
            # The namespace was provided, so it is being deleted, or is gone again already.
            is_deleted = isinstance(refusal, NamespaceNotFound)
            answers[named[at]] = Scheduled.UNDECIDED if is_deleted else refusal
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
    ) -> list[Answer]:
        results = await self._creates.create_all(requests)
        outcomes: list[Answer] = [Scheduled.CREATED] * len(results)
        for at, each in enumerate(results):
            if each.existence is Existence.UNREADABLE:
                outcomes[at] = await self._unreadable(each.timer.key)
        existing = [at for at, each in enumerate(results) if each.existence is Existence.EXISTING]
        changes = [self._change(results[at].timer, requests[at], orders[at]) for at in existing]
        for at, outcome in zip(existing, await asyncio.gather(*changes), strict=True):
            outcomes[at] = outcome
        return outcomes

    async def _change(self, existing: Timer, request: CreateRequest, order: int) -> Answer:
        for _ in range(MAX_TRIES):
            obstacle = _obstacle(existing, order)
            if obstacle is not None:
                return obstacle
            change = _change_of(existing, request.timer)
            result = await self._store.change_if_pending(existing.key, change)
            if result is None:
                # The timer was removed meanwhile, so its key is free again.
                (created,) = await self._creates.create_all([request])
                if created.existence is Existence.CREATED:
                    return Scheduled.CREATED
                if created.existence is Existence.UNREADABLE:
                    return await self._unreadable(created.timer.key)
                existing = created.timer
            elif not result.applied:
                existing = result.timer
            elif change.execute_at is UNSET and change.callback is UNSET:
                return Scheduled.UNCHANGED
            else:
                self._wakeups.announce(result.timer.shard, result.timer.due_at)
                return Scheduled.CHANGED
        raise StoreUnavailable(f"timer {existing.key.id!r} changes too fast to be changed")

    async def _unreadable(self, key: TimerKey) -> Answer:
        """The answer to a command for a timer that cannot be read. If an encryption key is
        missing, the command waits for it, as the timer does."""
        try:
            await self._store.get(key)
        except TimerSealed:
            return Scheduled.UNDECIDED
        except TimerUnreadable as error:
            return error
        return Scheduled.UNDECIDED


def _obstacle(existing: Timer, order: int) -> Answer | None:
    """The answer to a command that must leave the timer alone; None if it may be applied."""
    if not isinstance(existing.callback, BusCallback):
        # A producer of commands must not disarm timers that others rely on.
        return InvalidInput("id", "belongs to a timer that was not scheduled over the bus")
    if existing.status.is_finished:
        return Scheduled.TOO_LATE
    if existing.command_order >= order:
        return Scheduled.UNCHANGED
    return Scheduled.UNDECIDED if existing.status is TimerStatus.EXECUTING else None


def _rounds(commands: Sequence[Schedule | Cancellation]) -> Iterable[list[int]]:
    """Indexes of the commands that can be handled together, in rounds: a cancellation has the key
    for itself. Without cancellations there is one round."""
    if not any(isinstance(command, Cancellation) for command in commands):
        return [list(range(len(commands)))]
    turns: list[list[int]] = [[]]
    places: dict[TimerKey, tuple[int, bool]] = {}
    for index in sorted(range(len(commands)), key=lambda at: commands[at].order):
        command = commands[index]
        cancels = isinstance(command, Cancellation)
        turn, follows_cancel = places.get(command.key, (-1, True))
        if cancels or follows_cancel:
            turn += 1
        places[command.key] = (turn, cancels)
        if turn == len(turns):
            turns.append([])
        turns[turn].append(index)
    return turns


def _with_valid_namespaces(schedules: Sequence[Schedule], answers: list[Answer]) -> list[int]:
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


def _callback_of(schedule: Schedule) -> BusCallback:
    if schedule.payload is UNSET and schedule.traceparent is None:
        return _NO_PAYLOAD
    return BusCallback(payload=schedule.payload, traceparent=schedule.traceparent)


def _new_timer(schedule: Schedule) -> NewTimer:
    return NewTimer(
        namespace=schedule.namespace,
        id=schedule.id,
        execute_at=schedule.due_at,
        callback=_callback_of(schedule),
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
        callback=_changed_callback(existing.callback, scheduled.callback),
        correlation_id=scheduled.correlation_id,
        command_order=scheduled.command_order,
    )


def _changed_callback(existing: Callback, scheduled: Callback) -> Callback | UnsetType:
    """The callback with another payload; unset if the payload is the same to the letter."""
    is_same = _text_of(existing.payload) == _text_of(scheduled.payload)
    return UNSET if is_same else replace(existing, payload=scheduled.payload)


def _text_of(payload: Payload) -> bytes | None:
    return None if payload is UNSET else bytes(payload)
