"""Runs the bulk operations of the shards that this process owns."""

from collections.abc import Sequence

import structlog
from msgspec.structs import replace

from duetime.background import BackgroundLoop
from duetime.domain.bulk import BulkAction, BulkOperation, BulkStatus
from duetime.domain.errors import Unavailable
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.limits import MAX_RUNNING_OPERATIONS
from duetime.ports.bulk import BulkStore
from duetime.ports.clock import Clock
from duetime.ports.leases import OwnedShards
from duetime.ports.store import TimerStore
from duetime.ports.wakeups import WakeUps
from duetime.service.bulk.changes import BulkChanges
from duetime.service.bulk.deletion import ForgetSecrets, NamespaceDeletion, no_secrets
from duetime.service.bulk.matching import BATCH_SIZE
from duetime.service.bulk.passes import BulkPasses
from duetime.service.bulk.progress import OperationProgress
from duetime.service.namespaces import Namespaces
from duetime.service.turns import Turns

_log = structlog.get_logger()

LOOK_SECONDS = 2.0
"""Time after which an operation that another node started, or left behind, is noticed."""

WAITING_SECONDS = 0.5
"""Pause when no operation can go on, because timers that it waits for are executing."""

KEPT_SECONDS = 7 * 86_400
"""Time for which ended operations are kept."""

FORGET_SECONDS = 60.0
"""Time between two searches for ended operations to forget."""


class BulkRunner(BackgroundLoop):
    """Takes a batch of each operation in turn and writes the progress after each batch.

    A batch that is under way when the runner stops is finished and counted.

    A batch may be repeated: after a crash, or by a former owner of the shard that was paused. Every
    change is conditional, and a new firing has a name that follows from the operation and the
    timer, so a repeat changes no timer twice. A runner that finds its progress overtaken by
    another one starts over with what the other wrote.
    """

    name = "bulk-runner"

    def __init__(
        self,
        store: TimerStore,
        operations: BulkStore,
        clock: Clock,
        wakeups: WakeUps,
        namespaces: Namespaces,
        owned: OwnedShards,
        *,
        forget_secrets: ForgetSecrets = no_secrets,
        turns: Turns | None = None,
    ) -> None:
        super().__init__(clock)
        self._store = store
        self._operations = operations
        self._namespaces = namespaces
        self._owned = owned
        self._progress = OperationProgress(operations, clock)
        self._deletion = NamespaceDeletion(store, clock, namespaces, self._progress, forget_secrets)
        changes = BulkChanges(store, clock, wakeups)
        turns = Turns(clock) if turns is None else turns
        self._passes = BulkPasses(store, clock, changes, self._progress, turns)
        self._tidied_seconds = -LOOK_SECONDS
        self._forget_at_seconds = 0.0

    async def step(self) -> None:
        owned = self._owned.owned_shards()
        mine = [operation for operation in await self._running() if operation.shard in owned]
        self._passes.forget_others(mine)
        if not mine or self._clock.monotonic() >= self._tidied_seconds + LOOK_SECONDS:
            await self._tidy()
        if not mine:
            await self.wait(LOOK_SECONDS)
            return
        progressed = False
        unavailable: Unavailable | None = None
        for operation in mine:
            if self._stopping:
                return
            try:
                progressed |= await self._advance_or_fail(operation)
            except Unavailable as error:
                # Others may go on: a disk that is nearly full refuses some changes only.
                unavailable = error
        if unavailable is not None and not progressed:
            raise unavailable
        if not progressed:
            await self.wait(WAITING_SECONDS)

    async def _advance_or_fail(self, operation: BulkOperation) -> bool:
        """Take one batch. An operation that cannot go on ends, so that it does not hold up the
        others."""
        try:
            return await self._advance(operation)
        except Unavailable:
            raise
        except Exception:
            _log.exception("operation.failed", operation=operation.id)
            return await self._fail(operation, "internal error; the log of the service has more")

    async def _advance(self, operation: BulkOperation) -> bool:
        """Take one batch. Returns whether the operation went on or ended."""
        if operation.action is BulkAction.DELETE_NAMESPACE:
            return await self._deletion.advance(operation)
        return await self._passes.advance(operation)

    async def _fail(self, operation: BulkOperation, error: str) -> bool:
        if operation.action is BulkAction.DELETE_NAMESPACE:
            return await self._deletion.fail(operation, error)
        failed = replace(operation, status=BulkStatus.FAILED, error=error)
        await self._progress.write(operation, failed)
        return True

    async def _tidy(self) -> None:
        """Forget old operations, and clear marks that a crash may have left behind."""
        self._tidied_seconds = self._clock.monotonic()
        if self._tidied_seconds >= self._forget_at_seconds:
            self._forget_at_seconds = self._tidied_seconds + FORGET_SECONDS
            await self._forget_old()
        marked = self._namespaces.deleting
        if marked:
            await self._deletion.clear_marks(await self._running(), marked)

    async def _forget_old(self) -> None:
        """By the time that a node last believed: the clock may be ahead."""
        believed_at = await self._store.clock_believed_at()
        if believed_at is not None:
            kept_since = Instant(believed_at - KEPT_SECONDS * MICROSECONDS_PER_SECOND)
            await self._operations.forget_operations(ended_before=kept_since, limit=BATCH_SIZE)

    async def _running(self) -> Sequence[BulkOperation]:
        return await self._operations.operations(running=True, limit=MAX_RUNNING_OPERATIONS)
