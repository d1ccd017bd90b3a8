"""The bulk operations of the process."""

from collections.abc import Collection, Sequence
from heapq import nlargest

from duetime.domain.bulk import BulkOperation
from duetime.domain.instants import Instant


class OperationTable:
    """Implements `BulkStore`."""

    def __init__(self) -> None:
        self._operations: dict[str, BulkOperation] = {}

    async def add_operation(self, operation: BulkOperation) -> None:
        self._operations.setdefault(operation.id, operation)

    async def operation(self, operation_id: str) -> BulkOperation | None:
        return self._operations.get(operation_id)

    async def operations(
        self, *, running: bool, limit: int, namespaces: Collection[str] | None = None
    ) -> Sequence[BulkOperation]:
        found = [
            each
            for each in self._operations.values()
            if (each.is_running or not running)
            and (namespaces is None or each.namespace in namespaces)
        ]
        return nlargest(limit, found, key=lambda each: (each.created_at, each.id))

    async def replace_operation(self, operation: BulkOperation) -> bool:
        held = self._operations.get(operation.id)
        if held is None or held.version != operation.version - 1:
            return False
        self._operations[operation.id] = operation
        return True

    async def forget_operations(self, *, ended_before: Instant, limit: int) -> int:
        ended = [
            each.id
            for each in self._operations.values()
            if not each.is_running and each.updated_at < ended_before
        ][:limit]
        for operation_id in ended:
            del self._operations[operation_id]
        return len(ended)
