"""What the bus asks for: timers that are scheduled, and scheduled again, by key."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from msgspec import UNSET, Struct

from duetime.domain.callback import BusCallback
from duetime.domain.errors import DuetimeError, InvalidInput, StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.store import CreateRequest, Existence, TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.admission import Admissions
from duetime.service.create_batcher import CreateBatcher
from duetime.service.key_text import check_key_text
from duetime.service.namespaces import Namespaces
from duetime.service.new_timer import NewTimer
from duetime.service.rules import TimerRules
from duetime.service.timer_checks import TimerChecks
from duetime.service.timer_service import MAX_TRIES, new_uuid7

_CALLBACK = BusCallback()


class Schedule(Struct, frozen=True, kw_only=True):
    """A timer that is wanted, and announced on the bus when it is due.

    `order` is the place of the command in its channel: of two for one key, the later one counts,
    whichever is looked at first.
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
    """What became of a schedule."""

    CREATED = "created"
    CHANGED = "changed"
    """The timer was pending and now has this instant."""

    UNCHANGED = "unchanged"
    """The timer has this instant already, or a later command's."""

    TOO_LATE = "too late"
    """The timer has fired, or is about to, or was canceled: nothing happens."""


class Scheduling:
    """Creates timers, and moves those that are pending. Namespaces need not exist before."""

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
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._creates = creates
        checks = TimerChecks(destination, rules)
        self._admissions = Admissions(namespaces, checks, rules, new_uuid)

    async def schedule_all(self, schedules: Sequence[Schedule]) -> list[Scheduled | DuetimeError]:
        """Durably, in as few writes as possible; one answer per schedule, in order. What is wrong
        with one does not keep the others from being scheduled. Raises `StoreUnavailable`; then
        some may have been scheduled, and the same call may be made again."""
        answers: list[Scheduled | DuetimeError] = [Scheduled.UNCHANGED] * len(schedules)
        named = _with_good_namespaces(schedules, answers)
        await self._namespaces.provide({schedules[place].namespace for place in named})
        batch = self._admissions.admit_all(
            [_new_timer(schedules[place]) for place in named], self._clock.now()
        )
        refused = {**batch.refused, **{at: error for at, (_, error) in batch.mistimed.items()}}
        for at, refusal in refused.items():
            answers[named[at]] = refusal
        admitted = [place for at, place in enumerate(named) if at not in refused]
        requests = dict(zip(admitted, batch.requests, strict=True))
        last = _last_of_each_key(schedules, admitted)
        outcomes = await self._create_or_change(
            [requests[place] for place in last], [schedules[place].order for place in last]
        )
        for place, outcome in zip(last, outcomes, strict=True):
            answers[place] = outcome
        return answers

    async def _create_or_change(
        self, requests: Sequence[CreateRequest], orders: Sequence[int]
    ) -> list[Scheduled | DuetimeError]:
        results = await self._creates.create_all(requests)
        outcomes: list[Scheduled | DuetimeError] = [Scheduled.CREATED] * len(results)
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
                # Who may publish commands may not disarm what others rely on.
                return InvalidInput("id", "belongs to a timer that was not scheduled over the bus")
            if existing.status is not TimerStatus.PENDING:
                return Scheduled.TOO_LATE
            if existing.command_order >= order:
                return Scheduled.UNCHANGED
            change = _change_of(existing, request.timer)
            result = await self._store.change_if_pending(existing.key, change)
            if result is None:
                # Somebody removed it, so its key is free again.
                (created,) = await self._creates.create_all([request])
                if created.existence is Existence.CREATED:
                    return Scheduled.CREATED
                existing = created.timer
            elif not result.applied:
                existing = result.timer
            elif change.execute_at is UNSET:
                return Scheduled.UNCHANGED
            else:
                self._wakeups.announce(result.timer.shard, result.timer.due_at)
                return Scheduled.CHANGED
        raise StoreUnavailable(f"timer {existing.key.id!r} changes too fast to be changed")


def _with_good_namespaces(
    schedules: Sequence[Schedule], answers: list[Scheduled | DuetimeError]
) -> list[int]:
    """Where they are; the others are answered."""
    good = []
    for place, schedule in enumerate(schedules):
        try:
            check_key_text("namespace", schedule.namespace)
        except InvalidInput as error:
            answers[place] = error
        else:
            good.append(place)
    return good


def _last_of_each_key(schedules: Sequence[Schedule], places: Iterable[int]) -> list[int]:
    """Where they are. Those before them are as good as done."""
    last: dict[TimerKey, int] = {}
    for place in places:
        key = schedules[place].key
        before = last.get(key)
        if before is None or schedules[place].order > schedules[before].order:
            last[key] = place
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


def _change_of(existing: Timer, wanted: Timer) -> Change:
    """A timer that has the instant already keeps its firing: if that was announced and the
    service did not live to see it, the next announcement must have the same name."""
    return Change(
        updated_at=wanted.updated_at,
        delivery_id=wanted.delivery_id,
        only_firing=existing.delivery_id,
        only_updated_at=existing.updated_at,
        execute_at=UNSET if existing.execute_at == wanted.execute_at else wanted.execute_at,
        correlation_id=wanted.correlation_id,
        command_order=wanted.command_order,
    )

