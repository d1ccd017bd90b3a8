"""The store of bulk operations."""

from collections.abc import Collection, Sequence
from typing import Protocol

from duetime.domain.bulk import BulkOperation
from duetime.domain.instants import Instant


class BulkStore(Protocol):
    """Bulk operations, kept durably. Every method is atomic and raises `StoreUnavailable` as the
    timer store does."""

    async def add_operation(self, operation: BulkOperation) -> None:
        """Keep a new operation. If there is one of the same id, that one stays as it is."""
        ...

    async def operation(self, operation_id: str) -> BulkOperation | None: ...

    async def operations(
        self, *, running: bool, limit: int, namespaces: Collection[str] | None = None
    ) -> Sequence[BulkOperation]:
        """The newest operations, by creation: all of them, or the running ones only. With
        `namespaces` only operations on timers of these, each of which costs a page; the number of
        others does not matter."""
        ...

    async def replace_operation(self, operation: BulkOperation) -> bool:
        """Replace the operation of the same id if its version is one less than this one's.

        Returns whether it was: otherwise another process was faster, and nothing changed.
        """
        ...

    async def forget_operations(self, *, ended_before: Instant, limit: int) -> int:
        """Forget up to `limit` operations that are not running and were last updated before the
        instant; returns their number."""
        ...
