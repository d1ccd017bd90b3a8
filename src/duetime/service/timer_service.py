"""Create, get, change, cancel, remove and list timers: the same for every front door."""

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
    TimerSealed,
    TimerUnreadable,
)
from duetime.domain.instants import Delay, Instant, due_instant
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.redaction import has_redacted, refuse_redacted
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
    ScanEntry,
    ScanQuery,
    TimerStore,
)
from duetime.ports.wakeups import WakeUps
from duetime.service.create_comparison import differing_fields
from duetime.service.create_requests import CreateRequests, NewTimer, with_trace_context
from duetime.service.idempotency import fingerprint_of, id_of_idempotency_key
from duetime.service.namespaces import Namespaces
from duetime.service.pending_limits import LimitedCreates
from duetime.service.stored_secrets import StoredSecrets, with_secrets_of
from duetime.service.turns import Turns
from duetime.service.validation import TimerChecks, TimerRules, check_key_text

MAX_TRIES = 10
"""Attempts to change a part of a timer that others keep changing."""


def new_uuid7() -> str:
    return str(uuid7())


class TimerService:
    """Validates, writes, and wakes the engine. It keeps no timer: the store is the truth.

    Each front door has a service with its own rules; services may share `creates` and `turns`.
    Errors name fields as the platform API does (`execute_at`, `callback.url`); a front door that
    names them differently translates. `checks` are those that every create and change passes.
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
        creates: LimitedCreates | None = None,
        turns: Turns | None = None,
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._rules = rules
        self.checks = TimerChecks(destination, rules)
        self._new_uuid = new_uuid
        self._secrets = StoredSecrets(store)
        self._requests = CreateRequests(namespaces, self.checks, rules, new_uuid)
        self._creates = creates or LimitedCreates(store, clock, wakeups, namespaces)
        self.turns = Turns(clock) if turns is None else turns

    def knows(self, namespace: str) -> bool:
        """Whether the namespace is known here, so that nobody needs to ask the store for it."""
        return self._namespaces.known(namespace) is not None

    async def create(self, new: NewTimer, *, may_move_secrets: bool = False) -> CreateResult:
        """Create the timer, durably; the result says whether it is a new one.

        A request with an id or an idempotency key may be repeated: the repeat is answered with
        the timer that the first request made, however close its instant is by now. Raises
        `InvalidInput`, `TooLarge`, `NamespaceNotFound`, `StoreUnavailable`; `TimerConflict` when
        the key belongs to a different timer (with an id it is `TimerDiffers`, which names the
        fields); `TimerNotPending` when the timer to replace is not pending; `TooManyTimers` when
        the namespace has no room for a new one. Secrets that are given as they are shown stand for
        those of the existing timer, if the request names it by its id. They go to another place
        with it only if `may_move_secrets`.
        """
        await self._namespaces.named(new.namespace)
        if new.idempotency_key is not None:
            return await self._create_once(new, new.idempotency_key)
        if new.id is None:
            return await self.begin_create(new)
        new = await self._secrets.put_into(new, may_move=may_move_secrets)
        request = self._requests.in_namespace(new.namespace).request_for(new, self._clock.now())
        try:
            self.checks.check_instant(new.execute_at, request.timer.created_at)
        except InvalidInput as mistimed:
            return await self._repeat_or_raise(request, mistimed)
        try:
            result = await self._creates.create(request)
        except TimerUnreadable as error:
            # The store knows the reason, and raises it here.
            await self._store.get(error.key)
            raise
        return self._checked(result, request)

    def begin_create(self, new: NewTimer) -> "asyncio.Future[CreateResult]":
        """Create a timer without an id or an idempotency key, in a namespace that is known here.
        Without a coroutine: errors in the input are raised at once, and the future has the result
        when the timer is durable."""
        assert new.idempotency_key is None
        assert new.id is None
        request = self._requests.in_namespace(new.namespace).request_for(new, self._clock.now())
        self.checks.check_instant(new.execute_at, request.timer.created_at)
        return self._creates.create(request)

    async def create_many(
        self, news: Sequence[NewTimer | DuetimeError], *, may_move_secrets: bool = False
    ) -> list[CreateResult | DuetimeError]:
        """Create timers that have ids of their own, in as few durable writes as possible; one
        answer per timer, in order. An invalid timer does not keep the others from being created,
        and an entry that is already an error is its own answer. Raises `StoreUnavailable`; then
        some may have been created, and the same call may be made again. Secrets that are given as
        they are shown are treated as in `create`."""
        news = await self._secrets.put_into_all(news, may_move=may_move_secrets)
        batch = await self._requests.batch(news, self._clock.now(), self.turns)
        if batch.misses_namespaces:
            await self._namespaces.look_up(
                {new.namespace for new in news if isinstance(new, NewTimer)}
            )
            batch = await self._requests.batch(news, self._clock.now(), self.turns)
        others: dict[int, CreateResult | DuetimeError] = {**batch.refused}
        for index, (request, mistimed) in batch.mistimed.items():
            try:
                others[index] = await self._repeat_or_raise(request, mistimed)
            except (InvalidInput, TimerDiffers, TimerNotPending, TimerUnreadable) as error:
                others[index] = error
        created = await self._create_all(batch.requests)
        if not others:
            return created
        rest = iter(created)
        return [others[index] if index in others else next(rest) for index in range(len(news))]

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
        execute_at: Instant | Delay | UnsetType = UNSET,
        callback: Callback | UnsetType = UNSET,
        metadata: Raw | UnsetType | None = UNSET,
        retry_policy: RetryPolicy | UnsetType | None = UNSET,
        may_move_secrets: bool = False,
    ) -> Timer:
        """Change the given fields, if the timer is pending. A delay counts from now.

        Raises `TimerNotFound` or `TimerNotPending` even when the values are wrong as well:
        correcting them would not help. Secrets in the callback that are given as they are shown
        stay as they are stored, and go to another place only if `may_move_secrets`.
        """
        if callback is not UNSET and has_redacted(callback := with_trace_context(callback)):
            return await self.change_parts(
                key,
                lambda before: callback,
                execute_at=execute_at,
                metadata=metadata,
                retry_policy=retry_policy,
                may_move_secrets=may_move_secrets,
            )
        now = self._clock.now()
        change = Change(
            updated_at=now,
            delivery_id=self._new_uuid(),
            execute_at=UNSET if execute_at is UNSET else due_instant(execute_at, now),
            callback=callback,
            metadata=metadata,
            retry_policy=retry_policy,
        )
        timer = await self._change(key, change, execute_at)
        assert timer is not None
        return timer

    async def change_parts(
        self,
        key: TimerKey,
        change_callback: Callable[[Callback], Callback | UnsetType],
        *,
        execute_at: Instant | Delay | UnsetType = UNSET,
        metadata: Raw | UnsetType | None = UNSET,
        retry_policy: RetryPolicy | UnsetType | None = UNSET,
        may_move_secrets: bool = False,
    ) -> Timer:
        """Like `change`, for parts of the callback. A change that others make meanwhile is not
        undone: `change_callback` is called again with the callback that they left."""
        for _ in range(MAX_TRIES):
            before = await self.get(key)
            callback = change_callback(before.callback)
            if callback is not UNSET:
                callback = with_secrets_of(before, callback, may_move=may_move_secrets)
            now = self._clock.now()
            change = Change(
                updated_at=now,
                delivery_id=self._new_uuid(),
                only_firing=None if callback is UNSET else before.delivery_id,
                execute_at=UNSET if execute_at is UNSET else due_instant(execute_at, now),
                callback=callback,
                metadata=metadata,
                retry_policy=retry_policy,
            )
            timer = await self._change(key, change, execute_at)
            if timer is not None:
                return timer
        raise StoreUnavailable(f"timer {key.id!r} changes too fast to be changed: try again")

    async def _change(
        self, key: TimerKey, change: Change, asked: Instant | Delay | UnsetType
    ) -> Timer | None:
        """The changed timer; None when it is pending and has a new firing by now. `asked` is the
        instant or the delay that the client gave."""
        namespace = await self._namespaces.named(key.namespace)
        try:
            self._check_change(change, asked, namespace)
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

    def _check_change(
        self, change: Change, asked: Instant | Delay | UnsetType, namespace: Namespace
    ) -> None:
        if asked is not UNSET:
            self.checks.check_instant(asked, change.updated_at)
        if change.callback is not UNSET:
            max_payload_bytes = self.checks.max_payload_bytes(namespace)
            self.checks.check_callback(change.callback, max_payload_bytes)
        if change.metadata is not UNSET:
            self.checks.check_metadata(change.metadata)
        if change.retry_policy is not UNSET:
            self.checks.check_policy(change.retry_policy)

    async def cancel(self, key: TimerKey) -> Timer:
        """Cancel the timer if it is pending, sealed or not; a canceled timer stays canceled."""
        await self._namespaces.named(key.namespace)
        result = await self._store.cancel_if_pending(key, self._clock.now())
        if result is None:
            raise TimerNotFound(key)
        if not result.applied and result.timer.status is not TimerStatus.CANCELED:
            raise TimerNotPending("cancel", result.timer.status)
        return result.timer

    async def remove(self, key: TimerKey) -> None:
        """Forget the timer if it is pending, so that it never fires and its id is free again.

        A timer that came over the bus is canceled instead: its command may be delivered again and
        must then find nothing to do.
        """
        try:
            timer = await self.get(key)
        except TimerSealed as sealed:
            timer = sealed.timer
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

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        await self._namespaces.named(query.namespace)
        return await self._store.scan_entries(query)

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        return await self._store.counts(namespace)

    async def _create_once(self, new: NewTimer, idempotency_key: str) -> CreateResult:
        if new.id is not None:
            raise InvalidInput("idempotency_key", "cannot be given together with id")
        check_key_text("idempotency_key", idempotency_key)
        # A repeat is recognised by its content, so it has to have all of it.
        refuse_redacted(new.callback)
        timer_id = id_of_idempotency_key(idempotency_key)
        fingerprint = fingerprint_of(new)
        try:
            requests = self._requests.in_namespace(new.namespace)
            request = requests.request_for(new, self._clock.now(), timer_id, fingerprint)
            self.checks.check_instant(new.execute_at, request.timer.created_at)
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
        created = Existence.CREATED
        if all(isinstance(each, CreateResult) and each.existence is created for each in results):
            return results
        return await self.turns.map(self._checked_or_error, results, requests)

    async def _repeat_or_raise(
        self, request: CreateRequest, mistimed: InvalidInput
    ) -> CreateResult:
        """Return the existing timer if the request repeats it. If only other fields than the
        instant differ, raise that conflict, unless the request would replace a pending timer. In
        all other cases raise `mistimed`."""
        existing = await self._store.get(request.timer.key)
        if existing is None:
            raise mistimed
        fields = self._differing_fields(request, existing)
        is_replacing = (
            request.on_existing is OnExisting.REPLACE and existing.status is TimerStatus.PENDING
        )
        is_other_instant = "execute_at" in fields or "execute_in" in fields
        if is_other_instant or (fields and is_replacing):
            raise mistimed
        return self._checked(CreateResult(Existence.EXISTING, existing), request)

    def _checked(self, result: CreateResult, request: CreateRequest) -> CreateResult:
        """The result, unless the existing timer differs from the requested one, or is
        unreadable."""
        if result.existence is Existence.UNREADABLE:
            raise TimerUnreadable(result.timer.key)
        if result.existence is not Existence.EXISTING:
            return result
        fields = self._differing_fields(request, result.timer)
        if not fields:
            return result
        if request.on_existing is OnExisting.REPLACE:
            raise TimerNotPending("replace", result.timer.status)
        raise TimerDiffers(fields)

    def _checked_or_error(
        self, result: CreateResult | DuetimeError, request: CreateRequest
    ) -> CreateResult | DuetimeError:
        if not isinstance(result, CreateResult):
            return result
        try:
            return self._checked(result, request)
        except (TimerDiffers, TimerNotPending, TimerUnreadable) as error:
            return error

    def _differing_fields(self, request: CreateRequest, existing: Timer) -> list[str]:
        timer = request.timer
        namespace = self._namespaces.known(timer.key.namespace)
        if namespace is not None and timer.retry_policy == namespace.options.retry_policy:
            # The policy came from the namespace, whose policy may have been another one when the
            # existing timer was created.
            timer = replace(timer, retry_policy=existing.retry_policy)
        return differing_fields(timer, existing, self._rules.callback_timeout_ms)
