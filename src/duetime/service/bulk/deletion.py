"""The deletion of a namespace: its timers are forgotten first, then the namespace itself."""

from collections.abc import Awaitable, Callable, Collection

from msgspec.structs import replace

from duetime.domain.bulk import BulkAction, BulkOperation, BulkStatus
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.clock import Clock
from duetime.ports.store import ScanQuery, TimerStore
from duetime.service.bulk.matching import BATCH_SIZE
from duetime.service.bulk.progress import OperationProgress
from duetime.service.namespaces import REFRESH_SECONDS, Namespaces

_END_OF_TIME = Instant(2**62)

ForgetSecrets = Callable[[str, Instant], Awaitable[None]]
"""Forgets the secrets of the namespace that were created until that instant. May be repeated."""


async def no_secrets(namespace: str, created_until_inclusive: Instant) -> None:
    pass


class NamespaceDeletion:
    """Marks the namespace, waits until every node refuses new timers, and forgets the timers.

    The operation is written before the mark, so that a mark never outlives its operation for long:
    the runner sets a mark that is missing, and clears one that has no running operation. Timers and
    the namespace are forgotten only while the store holds the mark. So a timer that is created
    after an abort stays, whatever was under way. The secrets go last, because they sign until the
    last callback was made.
    """

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        namespaces: Namespaces,
        progress: OperationProgress,
        forget_secrets: ForgetSecrets = no_secrets,
    ) -> None:
        self._store = store
        self._clock = clock
        self._namespaces = namespaces
        self._progress = progress
        self._forget_secrets = forget_secrets

    async def advance(self, operation: BulkOperation) -> bool:
        """Take one batch. Returns whether the operation went on or ended."""
        name = operation.namespace
        if operation.marked_at is None:
            await self._namespaces.mark_deleting(name, deleting=True)
            marked = replace(operation, marked_at=self._clock.now())
            await self._progress.write(operation, marked)
            return True
        waited_seconds = (self._clock.now() - operation.marked_at) / MICROSECONDS_PER_SECOND
        if self._store.capabilities.shared_by_nodes and waited_seconds < 2 * REFRESH_SECONDS:
            # Other nodes do not know yet that the namespace takes no more timers.
            return False
        found = await self._store.find_namespaces([name])
        if not found:
            return await self._complete(operation)
        if not found[0].options.deleting:
            return await self.fail(operation, "the namespace takes timers again")
        removed = 0
        if operation.force:
            removed = await self._store.remove_pending(name, limit=BATCH_SIZE)
        elif (await self._store.counts(name))[TimerStatus.PENDING]:
            return await self.fail(operation, "timers were created while the deletion began")
        removed += await self._store.prune(
            finished_before=_END_OF_TIME, limit=BATCH_SIZE, namespace=name
        )
        if removed:
            forgotten = operation.changed + removed
            after = replace(operation, scanned=forgotten, changed=forgotten)
            await self._progress.write(operation, after)
            return True
        # Timers that are executing come to an end first.
        if await self._store.remove_namespace(name):
            await self._namespaces.refresh()
            return await self._complete(operation)
        if await self._is_held_up(name):
            return await self.fail(
                operation,
                "timers that this release cannot read are executing: `duetime audit` names them",
            )
        return False

    async def fail(self, operation: BulkOperation, error: str) -> bool:
        """End the operation, and let the namespace take timers again."""
        await self._namespaces.mark_deleting(operation.namespace, deleting=False)
        failed = replace(operation, status=BulkStatus.FAILED, error=error)
        await self._progress.write(operation, failed)
        return True

    async def clear_marks(
        self, running: Collection[BulkOperation], marked: Collection[str]
    ) -> None:
        """Let namespaces take timers again whose mark has no running operation. The operations
        were read after the marks, so none of them is too new to be among them."""
        doomed = {each.namespace for each in running if each.action is BulkAction.DELETE_NAMESPACE}
        for name in marked:
            if name not in doomed:
                await self._namespaces.mark_deleting(name, deleting=False)

    async def _complete(self, operation: BulkOperation) -> bool:
        assert operation.marked_at is not None
        await self._forget_secrets(operation.namespace, operation.marked_at)
        await self._progress.write(operation, replace(operation, status=BulkStatus.COMPLETED))
        return True

    async def _is_held_up(self, name: str) -> bool:
        """Whether the timers that are left are executing and unreadable: nobody delivers these."""
        if not await self._executing(name):
            return False
        query = ScanQuery(namespace=name, limit=1)
        return not await self._store.scan(query) and await self._executing(name)

    async def _executing(self, name: str) -> bool:
        return (await self._store.counts(name))[TimerStatus.EXECUTING] > 0
