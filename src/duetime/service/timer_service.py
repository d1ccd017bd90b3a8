"""What can be done with timers, the same for every front door."""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace
from uuid_utils import uuid7

from duetime.domain.callback import BusCallback, Callback
from duetime.domain.errors import (
    DuetimeError,
    InvalidInput,
    StoreUnavailable,
    TimerConflict,
    TimerDiffers,
    TimerNotFound,
    TimerNotPending,
)
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.store import (
    CreateRequest,
    CreateResult,
    Existence,
    OnExisting,
    Page,
    PageQuery,
    ScanQuery,
    TimerStore,
)
from duetime.ports.wakeups import WakeUps
from duetime.service.admission import Admissions
from duetime.service.create_batcher import CreateBatcher
from duetime.service.create_comparison import differing_fields
from duetime.service.idempotency import fingerprint_of, id_of_idempotency_key
from duetime.service.key_text import check_key_text
from duetime.service.namespaces import Namespaces
from duetime.service.new_timer import NewTimer
from duetime.service.rules import TimerRules
from duetime.service.timer_checks import TimerChecks

MAX_TRIES = 10
"""How often a timer may be changed by others while one changes a part of it."""


def new_uuid7() -> str:
    return str(uuid7())


class TimerService:
    """Validates, writes, and wakes the engine. It keeps no timer: the store is the truth.

    Each front door has a service with its own rules; `creates` may be shared between them.
    Fields are named in the spelling of the platform API (`execute_at`, `callback.url`); a door
    that spells them otherwise translates.
    """

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        wakeups: WakeUps,
        destination: Destination,
        namespaces: Namespaces,
        rules: TimerRules,
        *,
        creates: CreateBatcher | None = None,
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._rules = rules
        self._checks = TimerChecks(destination, rules)
        self._new_uuid = new_uuid
        self._admissions = Admissions(namespaces, self._checks, rules, new_uuid)
        self._creates = CreateBatcher(store, wakeups) if creates is None else creates

    async def create(self, new: NewTimer) -> CreateResult:
        """Create the timer, durably; the result tells whether it is a new one.

        With an id or an idempotency key, a repeat of what was accepted once is answered with the
        timer it made, however close its instant is by now. Raises `InvalidInput`, `TooLarge`,
        `NamespaceNotFound`, `StoreUnavailable`; `TimerConflict` when the key belongs to a
        different timer (with an id it is `TimerDiffers`, which says in what); `TimerNotPending`
        when that was to be replaced and is not pending.
        """
        await self._namespaces.named(new.namespace)
        if new.idempotency_key is not None:
            return await self._create_once(new, new.idempotency_key)
        if new.id is None:
            return await self.begin_create(new)
        request = self._admissions.to(new.namespace).request_of(new, self._clock.now())
        try:
            self._checks.check_instant(request.timer.execute_at, request.timer.created_at)
        except InvalidInput as mistimed:
            return await self._met_too_late(request, mistimed)
        return self._checked(await self._creates.create(request), request)

    def begin_create(self, new: NewTimer) -> "asyncio.Future[CreateResult]":
        """Create a timer that has neither an id nor an idempotency key, in a namespace that is
        known here, without a coroutine: what is wrong is raised at once, and the result is there
        when it is durable."""
        assert new.idempotency_key is None
        assert new.id is None
        request = self._admissions.to(new.namespace).request_of(new, self._clock.now())
        self._checks.check_instant(request.timer.execute_at, request.timer.created_at)
        return self._creates.create(request)

    async def create_many(
        self, news: Sequence[NewTimer | DuetimeError]
    ) -> list[CreateResult | DuetimeError]:
        """Create timers that have ids of their own, in as few durable writes as possible; one
        answer per timer, in order. What is wrong with one does not keep the others from being
        created, and what the front door found wrong with one is its answer. Raises
        `StoreUnavailable`; then some may have been created, and the same call may be made
        again."""
        batch = self._admissions.admit_all(news, self._clock.now())
        if batch.misses_namespaces:
            await self._namespaces.refresh()
            batch = self._admissions.admit_all(news, self._clock.now())
        others: dict[int, CreateResult | DuetimeError] = {**batch.refused}
        for place, (request, mistimed) in batch.mistimed.items():
            try:
                others[place] = await self._met_too_late(request, mistimed)
            except (InvalidInput, TimerDiffers, TimerNotPending) as error:
                others[place] = error
        created = await self._create_all(batch.requests)
        if not others:
            return created
        rest = iter(created)
        return [others[place] if place in others else next(rest) for place in range(len(news))]

    async def get(self, key: TimerKey) -> Timer:
        await self._namespaces.named(key.namespace)
        timer = await self._store.get(key)
        if timer is None:
            raise TimerNotFound(key)
        return timer

    async def change(
        self,
        key: TimerKey,
        *,
        execute_at: Instant | UnsetType = UNSET,
        callback: Callback | UnsetType = UNSET,
        metadata: Raw | UnsetType | None = UNSET,
        retry_policy: RetryPolicy | UnsetType | None = UNSET,
    ) -> Timer:
        """Change what is given, if the timer is pending.

        Raises `TimerNotFound` or `TimerNotPending` even when the values are wrong as well:
        correcting them would not help.
        """
        change = Change(
            updated_at=self._clock.now(),
            delivery_id=self._new_uuid(),
            execute_at=execute_at,
            callback=callback,
            metadata=metadata,
            retry_policy=retry_policy,
        )
        timer = await self._change(key, change)
        assert timer is not None
        return timer

    async def change_parts(
        self,
        key: TimerKey,
        change_callback: Callable[[Callback], Callback | UnsetType],
        *,
        execute_at: Instant | UnsetType = UNSET,
        retry_policy: RetryPolicy | UnsetType | None = UNSET,
    ) -> Timer:
        """The same for parts of the callback. What others change meanwhile is not undone: then
        `change_callback` is called again with what they left."""
        for _ in range(MAX_TRIES):
            before = await self.get(key)
            callback = change_callback(before.callback)
            change = Change(
                updated_at=self._clock.now(),
                delivery_id=self._new_uuid(),
                only_firing=None if callback is UNSET else before.delivery_id,
                execute_at=execute_at,
                callback=callback,
                retry_policy=retry_policy,
            )
            timer = await self._change(key, change)
            if timer is not None:
                return timer
        raise StoreUnavailable(f"timer {key.id!r} changes too fast to be changed: try again")

    async def _change(self, key: TimerKey, change: Change) -> Timer | None:
        """The changed timer; None when it is pending and has another firing by now."""
        namespace = await self._namespaces.named(key.namespace)
        try:
            self._check_change(change, namespace)
        except InvalidInput:
            timer = await self.get(key)
            if timer.status is not TimerStatus.PENDING:
                raise TimerNotPending("update", timer.status) from None
            raise
        result = await self._store.change_if_pending(key, change)
        if result is None:
            raise TimerNotFound(key)
        if not result.applied:
            if result.timer.status is TimerStatus.PENDING:
                return None
            raise TimerNotPending("update", result.timer.status)
        if change.execute_at is not UNSET:
            self._wakeups.announce(result.timer.shard, result.timer.due_at)
        return result.timer

    def _check_change(self, change: Change, namespace: Namespace) -> None:
        if change.execute_at is not UNSET:
            self._checks.check_instant(change.execute_at, change.updated_at)
        if change.callback is not UNSET:
            max_payload_bytes = self._checks.max_payload_bytes(namespace)
            self._checks.check_callback(change.callback, max_payload_bytes)
        if change.metadata is not UNSET:
            self._checks.check_metadata(change.metadata)
        if change.retry_policy is not UNSET:
            self._checks.check_policy(change.retry_policy)

    async def cancel(self, key: TimerKey) -> Timer:
        """Cancel the timer if it is pending; one that is canceled already stays so."""
        await self._namespaces.named(key.namespace)
        result = await self._store.cancel_if_pending(key, self._clock.now())
        if result is None:
            raise TimerNotFound(key)
        if not result.applied and result.timer.status is not TimerStatus.CANCELED:
            raise TimerNotPending("cancel", result.timer.status)
        return result.timer

    async def remove(self, key: TimerKey) -> None:
        """Forget the timer if it is pending, so that it never fires and its id is free again.

        One that came over the bus is canceled instead: its command may come once more, and must
        find that there is nothing left to do.
        """
        timer = await self.get(key)
        if isinstance(timer.callback, BusCallback):
            await self.cancel(key)
            return
        result = await self._store.remove_if_pending(key)
        if result is None:
            raise TimerNotFound(key)
        if not result.applied:
            raise TimerNotPending("delete", result.timer.status)

    async def page(self, query: PageQuery) -> Page:
        await self._namespaces.named(query.namespace)
        return await self._store.page(query)

    async def scan(self, query: ScanQuery) -> list[Timer]:
        await self._namespaces.named(query.namespace)
        return await self._store.scan(query)

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        return await self._store.counts(namespace)

    async def _create_once(self, new: NewTimer, idempotency_key: str) -> CreateResult:
        if new.id is not None:
            raise InvalidInput("idempotency_key", "cannot be given together with id")
        check_key_text("idempotency_key", idempotency_key)
        timer_id = id_of_idempotency_key(idempotency_key)
        fingerprint = fingerprint_of(new)
        try:
            admission = self._admissions.to(new.namespace)
            request = admission.request_of(new, self._clock.now(), timer_id, fingerprint)
            self._checks.check_instant(new.execute_at, request.timer.created_at)
        except InvalidInput:
            existing = await self._store.get(TimerKey(new.namespace, timer_id))
            if existing is None:
                raise
            result = CreateResult(Existence.EXISTING, existing)
        else:
            result = await self._creates.create(request)
        if result.timer.fingerprint != fingerprint:
            raise TimerConflict("idempotency_key was used for a different timer")
        return result

    async def _create_all(
        self, requests: Sequence[CreateRequest]
    ) -> list[CreateResult | DuetimeError]:
        results = await self._creates.create_all(requests)
        answers: list[CreateResult | DuetimeError] = [*results]
        existing = Existence.EXISTING
        for place, result in enumerate(results):
            if result.existence is existing:
                answers[place] = self._checked_or_error(result, requests[place])
        return answers

    async def _met_too_late(self, request: CreateRequest, mistimed: InvalidInput) -> CreateResult:
        """The timer that an earlier request made, if this one repeats it. If it asks for the same
        instant and for something else, that is what is wrong with it; otherwise its instant is,
        and so it is when the timer is pending and to be replaced."""
        existing = await self._store.get(request.timer.key)
        if existing is None:
            raise mistimed
        fields = self._differing_fields(request, existing)
        is_replacing = (
            request.on_existing is OnExisting.REPLACE and existing.status is TimerStatus.PENDING
        )
        if "execute_at" in fields or (fields and is_replacing):
            raise mistimed
        return self._checked(CreateResult(Existence.EXISTING, existing), request)

    def _checked(self, result: CreateResult, request: CreateRequest) -> CreateResult:
        """The result, unless the timer that exists is not the one that was asked for."""
        if result.existence is not Existence.EXISTING:
            return result
        fields = self._differing_fields(request, result.timer)
        if not fields:
            return result
        if request.on_existing is OnExisting.REPLACE:
            raise TimerNotPending("replace", result.timer.status)
        raise TimerDiffers(fields)

    def _checked_or_error(
        self, result: CreateResult, request: CreateRequest
    ) -> CreateResult | DuetimeError:
        try:
            return self._checked(result, request)
        except (TimerDiffers, TimerNotPending) as error:
            return error

    def _differing_fields(self, request: CreateRequest, existing: Timer) -> list[str]:
        wanted = request.timer
        namespace = self._namespaces.known(wanted.key.namespace)
        if namespace is not None and wanted.retry_policy == namespace.options.retry_policy:
            # Nothing was asked for, or just that; the namespace's may have been another one then.
            wanted = replace(wanted, retry_policy=existing.retry_policy)
        return differing_fields(wanted, existing, self._rules.callback_timeout_ms)
