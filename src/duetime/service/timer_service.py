"""What can be done with timers, the same for every front door."""

import asyncio
from collections.abc import Callable

import uuid_utils
from msgspec import UNSET, Raw, UnsetType

from duetime.domain.callback import BusCallback, Callback
from duetime.domain.errors import (
    InvalidInput,
    TimerConflict,
    TimerNotFound,
    TimerNotPending,
    TooLarge,
)
from duetime.domain.instants import MICROSECONDS_PER_MS, MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import MAX_KEY_CHARACTERS, TimerKey, shard_of, timer_uuid_of
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
    TimerStore,
)
from duetime.ports.wakeups import WakeUps
from duetime.service.create_batcher import CreateBatcher
from duetime.service.idempotency import fingerprint_of, id_of_idempotency_key
from duetime.service.namespaces import Namespaces
from duetime.service.new_timer import NewTimer
from duetime.service.retry_limits import check_retry_policy
from duetime.service.rules import TimerRules

LONGEST_DELAY = 36_525 * 86_400 * MICROSECONDS_PER_SECOND
"""A hundred years of 365.25 days, in microseconds."""


def new_uuid7() -> str:
    return str(uuid_utils.uuid7())


class TimerService:
    """Validates, writes, and wakes the engine. It keeps no timer: the store is the truth.

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
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._destination = destination
        self._namespaces = namespaces
        self._rules = rules
        self._new_uuid = new_uuid
        self._batcher = CreateBatcher(store, wakeups)
        self._min_delay = rules.min_delay_ms * MICROSECONDS_PER_MS

    async def create(self, new: NewTimer) -> CreateResult:
        """Create the timer, durably; the result tells whether it is a new one.

        Raises `InvalidInput`, `TooLarge`, `NamespaceNotFound`, `StoreUnavailable`, and
        `TimerConflict` when the idempotency key was used for a different timer.
        """
        if new.idempotency_key is not None:
            return await self._create_once(new, new.idempotency_key)
        return await self.begin_create(new)

    def begin_create(self, new: NewTimer) -> asyncio.Future[CreateResult]:
        """The same for a timer without an idempotency key, without a coroutine: what is wrong
        is raised at once, and the result is there when it is durable."""
        assert new.idempotency_key is None
        if new.id is None:
            request = self._request_of(new, self._new_uuid(), None, id_is_new=True)
            return self._batcher.create(request)
        _check_key_text("id", new.id)
        return self._batcher.create(self._request_of(new, new.id, None))

    async def get(self, key: TimerKey) -> Timer:
        self._namespaces.named(key.namespace)
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
        self._namespaces.named(key.namespace)
        now = self._clock.now()
        try:
            if execute_at is not UNSET:
                self._check_instant(execute_at, now)
            if callback is not UNSET:
                self._check_callback(callback)
            if metadata is not UNSET:
                self._check_metadata(metadata)
            if retry_policy is not UNSET and retry_policy is not None:
                check_retry_policy(retry_policy)
        except InvalidInput:
            timer = await self.get(key)
            if timer.status is not TimerStatus.PENDING:
                raise TimerNotPending("update", timer.status) from None
            raise
        change = Change(
            updated_at=now,
            delivery_id=self._new_uuid(),
            execute_at=execute_at,
            callback=callback,
            metadata=metadata,
            retry_policy=retry_policy,
        )
        result = await self._store.change_if_pending(key, change)
        if result is None:
            raise TimerNotFound(key)
        if not result.applied:
            raise TimerNotPending("update", result.timer.status)
        if execute_at is not UNSET:
            self._wakeups.announce(result.timer.shard, result.timer.due_at)
        return result.timer

    async def cancel(self, key: TimerKey) -> Timer:
        """Cancel the timer if it is pending; one that is canceled already stays so."""
        self._namespaces.named(key.namespace)
        result = await self._store.cancel_if_pending(key, self._clock.now())
        if result is None:
            raise TimerNotFound(key)
        if not result.applied and result.timer.status is not TimerStatus.CANCELED:
            raise TimerNotPending("cancel", result.timer.status)
        return result.timer

    async def page(self, query: PageQuery) -> Page:
        self._namespaces.named(query.namespace)
        return await self._store.page(query)

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        return await self._store.counts(namespace)

    async def _create_once(self, new: NewTimer, idempotency_key: str) -> CreateResult:
        if new.id is not None:
            raise InvalidInput("idempotency_key", "cannot be given together with id")
        _check_key_text("idempotency_key", idempotency_key)
        timer_id = id_of_idempotency_key(idempotency_key)
        fingerprint = fingerprint_of(new)
        try:
            request = self._request_of(new, timer_id, fingerprint)
        except InvalidInput:
            # A repeat of what was accepted once succeeds, however close its instant is by now.
            existing = await self._store.get(TimerKey(new.namespace, timer_id))
            if existing is None:
                raise
            result = CreateResult(Existence.EXISTING, existing)
        else:
            result = await self._batcher.create(request)
        if result.timer.fingerprint != fingerprint:
            raise TimerConflict("idempotency_key was used for a different timer")
        return result

    def _request_of(
        self, new: NewTimer, timer_id: str, fingerprint: bytes | None, *, id_is_new: bool = False
    ) -> CreateRequest:
        """The checked request. A timer with a fingerprint never replaces another."""
        namespace = self._namespaces.named(new.namespace)
        now = self._clock.now()
        self._check_instant(new.execute_at, now)
        self._check_callback(new.callback)
        self._check_metadata(new.metadata)
        if new.retry_policy is not None:
            check_retry_policy(new.retry_policy)
        key = TimerKey(namespace.name, timer_id)
        timer = Timer(
            key=key,
            shard=shard_of(timer_id, namespace.num_shards),
            timer_uuid=timer_uuid_of(key),
            delivery_id=self._new_uuid(),
            execute_at=new.execute_at,
            due_at=new.execute_at,
            callback=new.callback,
            created_at=now,
            updated_at=now,
            retry_policy=new.retry_policy,
            metadata=new.metadata,
            correlation_id=new.correlation_id,
            fingerprint=fingerprint,
        )
        on_existing = new.on_existing if fingerprint is None else OnExisting.KEEP
        return CreateRequest(timer, on_existing, id_is_new)

    def _check_instant(self, execute_at: Instant, now: Instant) -> None:
        delay = execute_at - now
        if delay <= 0:
            raise InvalidInput("execute_at", "must be in the future")
        if delay < self._min_delay:
            seconds = self._rules.min_delay_ms / 1_000
            raise InvalidInput("execute_at", f"must be at least {seconds:g} s in the future")
        if delay > LONGEST_DELAY:
            raise InvalidInput("execute_at", "is too far in the future: at most 100 years")

    def _check_callback(self, callback: Callback) -> None:
        self._destination.check(callback)
        if not isinstance(callback, BusCallback) and callback.payload is not UNSET:
            _check_size("callback.payload", callback.payload, self._rules.max_payload_bytes)

    def _check_metadata(self, metadata: Raw | None) -> None:
        if metadata is not None:
            _check_size("metadata", metadata, self._rules.max_metadata_bytes)


def _check_size(field: str, value: Raw, max_bytes: int) -> None:
    if memoryview(value).nbytes > max_bytes:
        raise TooLarge(field, f"must be at most {max_bytes} bytes of JSON")


def _check_key_text(field: str, text: str) -> None:
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        raise InvalidInput(field, f"must have 1 to {MAX_KEY_CHARACTERS} characters")
    if "\0" in text:
        raise InvalidInput(field, "must not contain the character NUL")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput(field, "must not contain half of a surrogate pair")
