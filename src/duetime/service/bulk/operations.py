"""Bulk operations: start, look at and abort them. The runner does their work."""

import asyncio
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from duetime.domain.bulk import (
    BulkAction,
    BulkOperation,
    BulkStatus,
    TimerFilter,
)
from duetime.domain.errors import (
    InvalidInput,
    NamespaceNotEmpty,
    OperationNotFound,
    OperationNotRunning,
    StoreUnavailable,
    TooManyOperations,
)
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.limits import (
    MAX_DELAY_MICROSECONDS,
    MAX_DELAY_YEARS,
    MAX_KEY_CHARACTERS,
    MAX_RUNNING_OPERATIONS,
)
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.timer import unfinished_of
from duetime.ports.bulk import BulkStore
from duetime.ports.clock import Clock
from duetime.ports.leases import OwnedShards
from duetime.ports.store import TimerStore
from duetime.service.bulk.matching import Matched, count_matching, scan_of
from duetime.service.bulk.progress import MAX_TRIES
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import new_uuid7
from duetime.service.turns import Turns
from duetime.service.validation import check_endpoint_filter, check_filter_text


class NewOperation(Struct, frozen=True, kw_only=True):
    """A bulk operation to start. A reschedule needs either `execute_at` or `move_by_ms`. One that
    has an `id` may be started again: the repeat answers with the operation of the first time."""

    id: str | None = None
    namespace: str
    action: BulkAction
    filter: TimerFilter
    execute_at: Instant | None = None
    move_by_ms: int | None = None
    force: bool = False
    started_by: str | None = None


class BulkOperations:
    """Starts operations and answers for them. `started` is called after each start."""

    def __init__(
        self,
        store: TimerStore,
        operations: BulkStore,
        clock: Clock,
        namespaces: Namespaces,
        owned: OwnedShards,
        started: Callable[[], None],
        *,
        turns: Turns | None = None,
        new_uuid: Callable[[], str] = new_uuid7,
    ) -> None:
        self._store = store
        self._operations = operations
        self._clock = clock
        self._namespaces = namespaces
        self._owned = owned
        self._started = started
        self._turns = Turns(clock) if turns is None else turns
        self._new_uuid = new_uuid
        self._deleting = asyncio.Lock()

    async def count(self, new: NewOperation) -> Matched:
        """Raises `InvalidInput`, `NamespaceNotFound`."""
        self._check(new)
        await self._namespaces.named(new.namespace)
        query = scan_of(new.namespace, new.action, new.filter)
        return await count_matching(self._store, self._clock, self._turns, query, new.filter)

    async def start(self, new: NewOperation, matched: Matched | None = None) -> BulkOperation:
        """`matched` was counted just before, if it is given. Raises `InvalidInput`,
        `NamespaceNotFound`, `TooManyOperations`."""
        if new.id is None:
            return await self._start(new, matched or await self.count(new))
        first = await self._operations.operation(new.id)
        if first is None:
            await self._start(new, matched or await self.count(new))
            # Another process may have been faster with the same id.
            first = await self.get(new.id)
        if first.namespace != new.namespace or first.started_by != new.started_by:
            raise InvalidInput("id", "is that of another operation")
        return first

    async def delete_namespace(
        self, name: str, *, force: bool, started_by: str | None = None
    ) -> BulkOperation:
        """Refuse new timers of the namespace, and start to forget the others. With `force` pending
        timers are forgotten too; without it the operation fails if it finds one. Raises
        `NamespaceNotFound`, `NamespaceNotEmpty`, `TooManyOperations`."""
        if name == DEFAULT_NAMESPACE:
            raise InvalidInput("namespace", f"{DEFAULT_NAMESPACE!r} cannot be deleted")
        await self._namespaces.named(name)
        async with self._deleting:
            deletion = await self._deletion_of(name)
            if deletion is None:
                new = NewOperation(
                    namespace=name,
                    action=BulkAction.DELETE_NAMESPACE,
                    filter=TimerFilter(),
                    force=force,
                    started_by=started_by,
                )
                deletion = await self._start(new, await self._count_all(name, force=force))
            # If this fails, the runner does it.
            await self._namespaces.mark_deleting(name, deleting=True)
            return deletion

    async def _count_all(self, name: str, *, force: bool) -> Matched:
        counts = await self._store.counts(name)
        live = unfinished_of(counts)
        if live and not force:
            raise NamespaceNotEmpty(name, live)
        return Matched(sum(counts.values()), is_minimum=False)

    async def get(self, operation_id: str) -> BulkOperation:
        """Raises `OperationNotFound`."""
        operation = None
        if len(operation_id) <= MAX_KEY_CHARACTERS and "\0" not in operation_id:
            operation = await self._operations.operation(operation_id)
        if operation is None:
            raise OperationNotFound
        return operation

    async def newest(
        self, limit: int, namespaces: Collection[str] | None
    ) -> Sequence[BulkOperation]:
        """The newest operations, on timers of these namespaces if some are given."""
        return await self._operations.operations(running=False, limit=limit, namespaces=namespaces)

    async def abort(self, operation_id: str) -> BulkOperation:
        """Stop a running operation; timers that were changed stay changed. Raises
        `OperationNotFound`, `OperationNotRunning`."""
        for _ in range(MAX_TRIES):
            operation = await self.get(operation_id)
            if operation.status is BulkStatus.ABORTED:
                # The process may have ended before the namespace was open again.
                await self._reopen(operation)
                return operation
            if not operation.is_running:
                raise OperationNotRunning(operation.status)
            aborted = replace(
                operation,
                version=operation.version + 1,
                status=BulkStatus.ABORTED,
                updated_at=self._clock.now(),
            )
            if await self._operations.replace_operation(aborted):
                await self._reopen(aborted)
                return aborted
        raise StoreUnavailable("the operation changes too fast to be aborted: try again")

    async def _reopen(self, aborted: BulkOperation) -> None:
        """Accept timers of a namespace again whose deletion was aborted."""
        if aborted.action is BulkAction.DELETE_NAMESPACE:
            async with self._deleting:
                if await self._deletion_of(aborted.namespace) is None:
                    await self._namespaces.mark_deleting(aborted.namespace, deleting=False)

    async def _deletion_of(self, name: str) -> BulkOperation | None:
        """The running deletion of the namespace."""
        for operation in await self._running():
            if operation.action is BulkAction.DELETE_NAMESPACE and operation.namespace == name:
                return operation
        return None

    async def _start(self, new: NewOperation, matched: Matched) -> BulkOperation:
        if len(await self._running()) >= MAX_RUNNING_OPERATIONS:
            raise TooManyOperations(MAX_RUNNING_OPERATIONS)
        now = self._clock.now()
        operation = BulkOperation(
            id=self._new_uuid() if new.id is None else new.id,
            namespace=new.namespace,
            action=new.action,
            # A shard of this node, so that the operation starts at once.
            shard=min(self._owned.owned_shards(), default=ShardNumber(0)),
            created_at=now,
            updated_at=now,
            started_by=new.started_by,
            filter=new.filter,
            execute_at=new.execute_at,
            move_by_ms=new.move_by_ms,
            force=new.force,
            matched=matched.timers,
            matched_is_minimum=matched.is_minimum,
        )
        await self._operations.add_operation(operation)
        self._started()
        return operation

    async def _running(self) -> Sequence[BulkOperation]:
        return await self._operations.operations(running=True, limit=MAX_RUNNING_OPERATIONS)

    def _check(self, new: NewOperation) -> None:
        matching = new.filter
        check_filter_text("filter.id_prefix", matching.id_prefix)
        check_endpoint_filter("filter.endpoint", matching.endpoint)
        check_filter_text("filter.error_contains", matching.error_contains)
        check_filter_text("filter.metadata.key", matching.metadata_key)
        check_filter_text("filter.metadata.value", matching.metadata_value, least=0)
        is_reschedule = new.action is BulkAction.RESCHEDULE
        given = [each is not None for each in (new.execute_at, new.move_by_ms)]
        if is_reschedule and sum(given) != 1:
            raise InvalidInput("execute_at", "or move_by is needed to reschedule: give one of them")
        if not is_reschedule and any(given):
            field = "execute_at" if given[0] else "move_by"
            raise InvalidInput(field, "is for the action reschedule only")
        if new.execute_at is not None:
            delay = new.execute_at - self._clock.now()
            if delay <= 0:
                raise InvalidInput("execute_at", "must be in the future")
            if delay > MAX_DELAY_MICROSECONDS:
                problem = f"is too far in the future: at most {MAX_DELAY_YEARS} years"
                raise InvalidInput("execute_at", problem)
        if new.move_by_ms is not None:
            check_move(new.move_by_ms)


def check_move(move_by_ms: int) -> None:
    """Raises `InvalidInput`."""
    if move_by_ms == 0:
        raise InvalidInput("move_by", "must not be zero")
    if abs(move_by_ms) * MICROSECONDS_PER_MS > MAX_DELAY_MICROSECONDS:
        raise InvalidInput("move_by", f"is too long: at most {MAX_DELAY_YEARS} years")
