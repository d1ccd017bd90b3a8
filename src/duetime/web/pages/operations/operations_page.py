"""The pages of bulk operations: the newest, and the progress of one."""

from msgspec import Struct

from duetime.api.v1.bulk_operations import format_move
from duetime.domain.bulk import BulkAction, BulkOperation
from duetime.domain.errors import OperationNotFound, OperationNotRunning
from duetime.service.bulk.operations import BulkOperations
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.pages.operations.selection import Condition, conditions_of, timers_path
from duetime.web.pages.operations.wording import TITLES
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Request

NEWEST = 50
"""Operations on the page."""

_BADGES = {"running": "info", "completed": "ok", "aborted": "warn", "failed": "bad"}


class Shown(Struct, frozen=True, kw_only=True):
    """An operation with the words for it."""

    operation: BulkOperation
    title: str
    badge: str
    conditions: tuple[Condition, ...]
    timers_path: str | None

    @property
    def done(self) -> int:
        """Timers that the operation is through with."""
        return self.operation.changed + self.operation.skipped

    @property
    def total(self) -> int:
        """The number was counted before the start, and may have become more."""
        return max(self.operation.matched, self.done + self.operation.executing)

    @property
    def share(self) -> float:
        if self.operation.status.value == "completed":
            return 1.0
        return self.done / self.total if self.total else 0.0


class OperationsPage:
    def __init__(self, operations: BulkOperations) -> None:
        self._operations = operations

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        one = "/ui/operations/{operation_id}"
        return (
            page("uiOperations", "/ui/operations", self.newest, may_be_live=True),
            page("uiOperation", one, self.show, may_be_live=True),
            action("uiAbortOperation", f"{one}/abort", self.abort, audit="operation.abort"),
        )

    async def newest(self, request: Request) -> View:
        newest = await self._operations.newest(NEWEST, request.access.namespaces)
        return View(
            template="pages/operations/list.html",
            title="Operations",
            values={"operations": [_shown(each) for each in newest], "most": NEWEST},
            live=("operations",),
        )

    async def show(self, request: Request) -> View:
        shown = _shown(await self._visible(request))
        return View(
            template="pages/operations/operation.html",
            title=shown.title,
            values={"shown": shown, "operation": shown.operation},
            live=("state", "progress"),
        )

    async def abort(self, request: Request) -> Redirect:
        operation = await self._visible(request)
        try:
            aborted = await self._operations.abort(operation.id)
        except OperationNotRunning:
            return Redirect(_path_of(operation), "The operation had ended before.")
        request.caller.note({"action": aborted.action.value, "changed": aborted.changed})
        message = "The operation was aborted. Timers that it has changed stay changed."
        return Redirect(_path_of(operation), message)

    async def _visible(self, request: Request) -> BulkOperation:
        """The operation of the path. Raises `OperationNotFound`, also if its namespace is out of
        the caller's sight."""
        operation = await self._operations.get(request.part("operation_id"))
        if not request.access.sees(operation.namespace):
            raise OperationNotFound
        request.caller.reach(operation.namespace, operation.id)
        return operation


def _path_of(operation: BulkOperation) -> str:
    return f"/ui/operations/{operation.id}"


def _shown(operation: BulkOperation) -> Shown:
    conditions = list(conditions_of(operation.filter))
    if operation.move_by_ms is not None:
        conditions.append(Condition("Moved by", format_move(operation.move_by_ms)))
    if operation.execute_at is not None:
        conditions.append(Condition("Moved to", at=operation.execute_at))
    is_deletion = operation.action is BulkAction.DELETE_NAMESPACE
    return Shown(
        operation=operation,
        title=TITLES[operation.action],
        badge=_BADGES[operation.status.value],
        conditions=tuple(conditions),
        timers_path=None if is_deletion else timers_path(operation),
    )
