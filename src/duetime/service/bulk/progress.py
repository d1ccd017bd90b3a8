"""The progress of bulk operations, written on top of the progress that was read."""

import structlog
from msgspec.structs import replace

from duetime.domain.bulk import BulkOperation, BulkStatus
from duetime.ports.bulk import BulkStore
from duetime.ports.clock import Clock

_log = structlog.get_logger()

MAX_TRIES = 20
"""Attempts to write to an operation that others keep writing to."""


class OperationProgress:
    """Each write needs the version that was read. So one of two runners finds out about the other,
    and nobody goes on with an operation that was aborted."""

    def __init__(self, operations: BulkStore, clock: Clock) -> None:
        self._operations = operations
        self._clock = clock

    async def is_current(self, operation: BulkOperation) -> bool:
        """Whether nobody has written to the operation since it was read."""
        held = await self._operations.operation(operation.id)
        return held is not None and held.version == operation.version

    async def write(self, read: BulkOperation, after: BulkOperation) -> BulkOperation | None:
        """Replace the operation that was read; returns what was written.

        None if others wrote to the operation meanwhile. The timers that were changed are then still
        added to an aborted operation. A runner that went on with it repeats the batch instead.
        """
        written = replace(after, version=read.version + 1, updated_at=self._clock.now())
        if not await self._operations.replace_operation(written):
            await self._add_to_aborted(read, after)
            return None
        if not written.is_running:
            _log.info(
                "operation.ended",
                operation=written.id,
                action=written.action.value,
                namespace=written.namespace,
                status=written.status.value,
                changed=written.changed,
                skipped=written.skipped,
            )
        return written

    async def _add_to_aborted(self, read: BulkOperation, after: BulkOperation) -> None:
        for _ in range(MAX_TRIES):
            held = await self._operations.operation(read.id)
            if held is None or held.status is not BulkStatus.ABORTED:
                return
            counted = replace(
                held,
                version=held.version + 1,
                scanned=held.scanned + after.scanned - read.scanned,
                changed=held.changed + after.changed - read.changed,
                skipped=held.skipped + after.skipped - read.skipped,
            )
            if await self._operations.replace_operation(counted):
                return
