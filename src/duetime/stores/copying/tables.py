"""The tables that a copy moves: their columns, and text that PostgreSQL cannot hold."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any

import msgspec

from duetime.domain.errors import CopyRefused
from duetime.domain.security.credentials import GRANT_PREFIX
from duetime.stores.security_rows import AUDIT_COLUMNS
from duetime.stores.stored_text import storable
from duetime.stores.timer_rows import COLUMNS

Row = tuple[Any, ...]
"""Values of a table's COLUMNS_OF: numbers, texts, bytes and None."""


class Table(StrEnum):
    NAMESPACES = "namespaces"
    SHARDS = "shards"
    CLOCK = "clock"
    CREDENTIALS = "credentials"
    OPERATIONS = "operations"
    AUDIT_LOG = "audit_log"
    LATENESS_COUNTS = "lateness_counts"
    PAUSED_ENDPOINTS = "paused_endpoints"
    TIMERS = "timers"


COLUMNS_OF: dict[Table, tuple[str, ...]] = {
    Table.NAMESPACES: ("name", "num_shards", "options"),
    # No owner: the copy belongs to nobody until a service starts on it.
    Table.SHARDS: ("shard", "epoch"),
    Table.CLOCK: ("believed_at",),
    Table.CREDENTIALS: ("id", "document", "last_used_at"),
    Table.OPERATIONS: ("id", "created_at", "updated_at", "version", "is_running", "document"),
    Table.AUDIT_LOG: AUDIT_COLUMNS,
    Table.LATENESS_COUNTS: ("hour", "namespace", "in_time", "late"),
    Table.PAUSED_ENDPOINTS: ("endpoint", "paused_at", "paused_by", "reason"),
    Table.TIMERS: COLUMNS,
}

SIGNED_IN = f"{GRANT_PREFIX}%"
"""Pattern of credentials that stay behind: people sign in again to the service on the copy."""

SHARED_TIMER_COLUMNS = COLUMNS[:-3]
"""Columns of a timer in every status: all but status, claimed_at and executed_at."""

NAMESPACE, ID, STATUS, CLAIMED_AT, EXECUTED_AT, UPDATED_AT = map(
    COLUMNS.index, ("namespace", "id", "status", "claimed_at", "executed_at", "updated_at")
)
"""Places of columns in the row of a timer."""

TEXT_COLUMNS = frozenset(
    (
        "name", "options", "id", "document", "actor", "action", "result", "key_id", "address",
        "namespace", "target", "details", "delivery_id", "callback", "retry_policy", "metadata",
        "correlation_id", "attempts", "last_error", "endpoint", "paused_by", "reason",
    )
)  # fmt: skip

_NAMING = frozenset(("name", "namespace", "id"))
_DECODED = frozenset(("options", "document", "callback", "retry_policy", "metadata", "attempts"))


def storable_rows(table: Table, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows with text that every store can hold. Raises `CopyRefused` for a name that it would
    have to change."""
    if not rows:
        return rows
    names = COLUMNS_OF[table]
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        if name in TEXT_COLUMNS and "\0" in "".join(filter(None, values)):
            return [_storable_row(names, row) for row in rows]
    return rows


def _storable_row(names: Sequence[str], row: Row) -> Row:
    return tuple(
        _storable_text(name, value) if isinstance(value, str) and "\0" in value else value
        for name, value in zip(names, row, strict=True)
    )


def _storable_text(name: str, text: str) -> str:
    if name in _NAMING:
        raise CopyRefused(f"PostgreSQL cannot hold a {name} with a NUL character: {text!r}")
    if name in _DECODED:
        return undecodable(text.encode())
    return storable(text)


def text_of(name: str, value: bytes) -> str:
    """The text of a column that may be damaged. Raises `CopyRefused` for a damaged name."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        if name in _NAMING:
            raise CopyRefused(
                f"the source is damaged: a {name} is not UTF-8 ({value!r}); run duetime audit"
            ) from None
        return undecodable(value)


def undecodable(damaged: bytes) -> str:
    """Text that holds the damaged bytes, and that no release takes for JSON: a timer that could not
    be read stays one, and never fires with a content that nobody asked for."""
    escaped = damaged.decode(errors="backslashreplace").replace("\0", "\\x00")
    return f"\N{REPLACEMENT CHARACTER}{escaped}"


def identity_of(kind: str, namespaces: Sequence[Row], shards: Sequence[Row], timers: int) -> str:
    """A source in one state. Every service that starts raises the epochs of its shards."""
    content = msgspec.msgpack.encode((list(namespaces), list(shards), timers))
    return f"{kind} {blake2b(content, digest_size=16).hexdigest()}"
