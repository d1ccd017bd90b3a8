"""The columns of the list of timers."""

from msgspec import Struct

from duetime.domain.callback import Callback, HttpCallback, NatsCallback
from duetime.domain.instants import Instant
from duetime.domain.security.redaction import shown_callback
from duetime.service.searching.search import ListedTimer, Unshown
from duetime.web.pages.operations.selection import chosen_text
from duetime.web.pages.timer_paths import timer_path

COLUMNS = {
    "namespace": "Namespace",
    "status": "Status",
    "execute_at": "Due",
    "next_attempt": "Next attempt",
    "target": "Callback",
    "attempts": "Attempts",
    "error": "Last error",
    "metadata": "Metadata",
    "created_at": "Created",
    "updated_at": "Updated",
}
"""Columns that may be chosen, in their order. The id is always there."""

DEFAULT_COLUMNS = ("namespace", "status", "execute_at", "target", "attempts", "error")

SORTED_BY = {"execute_at": "execute_at", "created_at": "created_at"}
"""The columns by which the list can be sorted, with their order. The id is another one."""

MAX_CELL_CHARACTERS = 200
"""Length of a text in a cell. The page of the timer has the whole of it."""


class Row(Struct, frozen=True, kw_only=True):
    """A timer in the list. `key` names it for the script and for forms."""

    key: str
    path: str
    id: str
    namespace: str
    status: str
    execute_at: Instant
    next_attempt: Instant | None
    target: str
    attempts: int
    error: str | None
    metadata: str | None
    created_at: Instant
    updated_at: Instant
    unshown: str | None


def row_of(listed: ListedTimer) -> Row:
    timer = listed.timer
    key = chosen_text(timer.key)
    metadata = (
        None
        if timer.metadata is None
        else bytes(memoryview(timer.metadata)[: 4 * MAX_CELL_CHARACTERS])
    )
    return Row(
        key=key,
        path=timer_path(timer.key),
        id=timer.key.id,
        namespace=timer.key.namespace,
        status=timer.status.label,
        execute_at=timer.execute_at,
        next_attempt=None if timer.status.is_finished else timer.due_at,
        target="" if listed.unshown is Unshown.UNREADABLE else target_of(timer.callback),
        attempts=timer.attempt,
        error=None if timer.last_error is None else _cut(timer.last_error),
        metadata=None if metadata is None else _cut(metadata.decode(errors="ignore")),
        created_at=timer.created_at,
        updated_at=timer.updated_at,
        unshown=None if listed.unshown is None else listed.unshown.value,
    )


def target_of(callback: Callback) -> str:
    """The place that the callback goes to, without secrets."""
    shown = shown_callback(callback)
    if isinstance(shown, HttpCallback):
        return shown.url
    return f"nats:{shown.subject}" if isinstance(shown, NatsCallback) else "bus"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CELL_CHARACTERS else f"{text[:MAX_CELL_CHARACTERS]}…"
