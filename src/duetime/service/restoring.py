"""Restoring timers of a copy, with the state that they had where the copy was made."""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from duetime.domain.errors import (
    CallbackRefused,
    DuetimeError,
    InvalidInput,
    NamespaceDeleting,
    NamespaceNotFound,
    TimerDiffers,
    TimerUnreadable,
)
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.limits import (
    MAX_ATTEMPTS_REMEMBERED,
    MAX_CORRELATION_CHARACTERS,
    MAX_PAYLOAD_BYTES,
)
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import restored
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.store import CreateRequest, CreateResult, Existence, OnExisting, TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.create_comparison import differing_fields
from duetime.service.namespaces import Namespaces
from duetime.service.pending_limits import LimitedCreates
from duetime.service.stored_secrets import StoredSecrets
from duetime.service.turns import Turns
from duetime.service.validation import (
    TimerChecks,
    TimerRules,
    check_key_text,
    check_storable_text,
)

BATCH_SIZE = 250
"""Timers in one write. Each takes several statements, and claims wait for the write to end."""

MAX_COUNT = 1_000_000_000
"""Attempts, failures and claims that a restored timer may have counted."""

FINGERPRINT_BYTES = 16

_DELIVERY_ID = re.compile(r"[!-~]{1,255}")
_MAX_COMMAND_ORDER = 2**63 - 1

_Outcome = CreateResult | DuetimeError


class Restoring:
    """Writes timers as they were. It is for copies of a store, not for new timers: those have to
    be created, and start without a history."""

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
        turns: Turns,
    ) -> None:
        """The rules accept instants that have passed."""
        self._store = store
        self._clock = clock
        self._wakeups = wakeups
        self._namespaces = namespaces
        self._rules = rules
        self._checks = TimerChecks(destination, rules)
        self._limits = (creates or LimitedCreates(store, clock, wakeups, namespaces)).limits
        self._secrets = StoredSecrets(store)
        self.turns = turns

    async def restore(
        self, timers: Sequence[Timer | DuetimeError], *, may_move_secrets: bool = False
    ) -> list[_Outcome]:
        """One outcome for each timer, in order. Entries that are already errors pass through
        unchanged.

        A timer whose key exists is left alone. It counts as existing if it is the same timer,
        whatever has become of it since; otherwise the outcome is `TimerDiffers`. An executing timer
        becomes pending, so its attempt may be made twice. A timer that is not finished is refused
        with `TooManyTimers` if its namespace has no room. Raises `StoreUnavailable`; then some may
        have been restored, and the same call may be made again. Secrets that are given as they are
        shown stand for those of the existing timer, whose place has to be the same unless
        `may_move_secrets`.
        """
        timers = await self._secrets.put_into_all(timers, may_move=may_move_secrets)
        checked: list[Timer | DuetimeError] = await self.turns.map(self._checked, timers)
        outcomes: list[_Outcome | None] = [
            None if isinstance(each, Timer) else each for each in checked
        ]
        waiting = [index for index, each in enumerate(checked) if isinstance(each, Timer)]
        while waiting:
            batch = _distinct(checked, waiting)
            for index, result in await self._restore_batch(batch):
                outcomes[index] = result
            waiting = [index for index in waiting if outcomes[index] is None]
        return [each for each in outcomes if each is not None]

    async def _restore_batch(self, batch: dict[int, Timer]) -> Iterable[tuple[int, _Outcome]]:
        requests = [CreateRequest(timer, OnExisting.KEEP) for timer in batch.values()]
        async with self._limits.admission(requests) as admission:
            refused = admission.refused
            admitted = [each.timer for index, each in enumerate(requests) if index not in refused]
            results = await self._store.restore(admitted)
            admission.settle(results)
        self._announce(results)
        outcomes = await self.turns.map(self._compared, admitted, results)
        return zip(batch, admission.with_refused(outcomes), strict=True)

    def _announce(self, results: Iterable[CreateResult]) -> None:
        earliest: dict[ShardNumber, Instant] = {}
        for existence, timer in ((each.existence, each.timer) for each in results):
            if existence is Existence.CREATED and timer.status is TimerStatus.PENDING:
                due_at = earliest.get(timer.shard, timer.due_at)
                earliest[timer.shard] = min(due_at, timer.due_at)
        for shard, due_at in earliest.items():
            self._wakeups.announce(shard, due_at)

    def _compared(self, copy: Timer, result: CreateResult) -> _Outcome:
        if result.existence is Existence.UNREADABLE:
            return TimerUnreadable(copy.key)
        if result.existence is not Existence.EXISTING:
            return result
        existing = result.timer
        fields = ["created_at"] if copy.created_at != existing.created_at else []
        asked = replace(copy, fingerprint=None)
        fields += differing_fields(asked, existing, self._rules.callback_timeout_ms)
        return TimerDiffers(fields) if fields else result

    def _checked(self, timer: Timer | DuetimeError) -> Timer | DuetimeError:
        if not isinstance(timer, Timer):
            return timer
        try:
            self._check_namespace(timer.key)
            self._check_content(timer)
            _check_state(timer)
            return restored(timer)
        except (InvalidInput, NamespaceNotFound) as error:
            return error

    def _check_namespace(self, key: TimerKey) -> None:
        namespace = self._namespaces.known(key.namespace)
        if namespace is None:
            raise NamespaceNotFound(key.namespace)
        if namespace.options.deleting:
            raise NamespaceDeleting(key.namespace)

    def _check_content(self, timer: Timer) -> None:
        check_key_text("id", timer.key.id)
        # The name of the firing is sent as a header.
        if not _DELIVERY_ID.fullmatch(timer.delivery_id):
            raise InvalidInput("delivery_id", "must have 1 to 255 printable ASCII characters")
        try:
            # The timer was accepted under the limit of its time.
            self._checks.check_callback(timer.callback, MAX_PAYLOAD_BYTES)
        except InvalidInput as error:
            if not _may_be_kept(timer.status, error):
                raise
        self._checks.check_policy(timer.retry_policy)
        self._checks.check_metadata(timer.metadata)
        if timer.correlation_id is not None:
            check_storable_text("correlation_id", timer.correlation_id)
            if len(timer.correlation_id) > MAX_CORRELATION_CHARACTERS:
                problem = f"must have at most {MAX_CORRELATION_CHARACTERS} characters"
                raise InvalidInput("correlation_id", problem)
        if timer.fingerprint is not None and len(timer.fingerprint) != FINGERPRINT_BYTES:
            raise InvalidInput("fingerprint", f"must have {FINGERPRINT_BYTES} bytes")
        self._checks.check_instant(timer.execute_at, self._clock.now())


def _may_be_kept(status: TimerStatus, error: InvalidInput) -> bool:
    """Whether a timer whose callback cannot be made here is restored all the same. A failed timer
    whose address is refused is judged again when it is redriven."""
    if isinstance(error, CallbackRefused):
        return status.is_finished
    return error.field == "callback.type" and status in (
        TimerStatus.COMPLETED,
        TimerStatus.CANCELED,
    )


def _distinct(timers: Sequence[Timer | DuetimeError], indexes: Iterable[int]) -> dict[int, Timer]:
    """The next batch, by index: the first timers that have different keys."""
    batch: dict[int, Timer] = {}
    keys: set[TimerKey] = set()
    for index in indexes:
        timer = timers[index]
        assert isinstance(timer, Timer)
        if timer.key not in keys:
            keys.add(timer.key)
            batch[index] = timer
            if len(batch) == BATCH_SIZE:
                break
    return batch


def _check_state(timer: Timer) -> None:
    for name in ("attempt", "failures", "claim_number"):
        _check_count(name, getattr(timer, name), MAX_COUNT)
    _check_count("command_order", timer.command_order, _MAX_COMMAND_ORDER)
    for name in ("due_at", "created_at", "updated_at", "executed_at", "claimed_at"):
        if (getattr(timer, name) or 0) < 0:
            raise InvalidInput(name, "must not be before 1970")
    if not timer.status.is_finished and timer.due_at < timer.execute_at:
        raise InvalidInput("due_at", "must not be before execute_at")
    is_executing = timer.status is TimerStatus.EXECUTING
    if is_executing != (timer.claimed_at is not None):
        problem = "is required" if is_executing else "must be absent"
        raise InvalidInput("claimed_at", f"{problem} while the status is {timer.status.label}")
    if timer.executed_at is not None and not timer.status.is_finished:
        problem = f"must be absent while the status is {timer.status.label}"
        raise InvalidInput("executed_at", problem)
    if len(timer.attempts) > MAX_ATTEMPTS_REMEMBERED:
        raise InvalidInput("attempts", f"must have at most {MAX_ATTEMPTS_REMEMBERED} entries")
    for attempt in timer.attempts:
        _check_count("attempts.number", attempt.number, MAX_COUNT)


def _check_count(field: str, count: int, most: int) -> None:
    if not 0 <= count <= most:
        raise InvalidInput(field, f"must be from 0 to {most}")
