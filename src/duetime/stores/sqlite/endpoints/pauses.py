"""Pauses of endpoints, in a table of the file."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from duetime.domain.instants import Instant
from duetime.ports.endpoints import EndpointPause
from duetime.stores.sqlite.connections import Reader, Statements, Transaction
from duetime.stores.sqlite.writer import Writer
from duetime.stores.stored_text import storable

_ALL = "SELECT endpoint, paused_at, paused_by, reason FROM paused_endpoints ORDER BY endpoint"
_ADD = "INSERT INTO paused_endpoints VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING"
_REMOVE = "DELETE FROM paused_endpoints WHERE endpoint = ?1"


class OpenedFile(Protocol):
    writer: Writer
    quick_reader: Reader


class SqlitePauseStore:
    """Implements the store of pauses on the file of a store."""

    def __init__(self, opened: Callable[[], OpenedFile]) -> None:
        """`opened` raises `StoreUnavailable` while the store is closed."""
        self._opened = opened

    async def pauses(self) -> Sequence[EndpointPause]:
        return await self._opened().quick_reader.run(_all)

    async def add_pause(self, pause: EndpointPause) -> bool:
        row = (
            storable(pause.endpoint),
            pause.paused_at,
            storable(pause.paused_by),
            None if pause.reason is None else storable(pause.reason),
        )
        return await self._opened().writer.submit(partial(_changes, _ADD, row))

    async def remove_pause(self, endpoint: str) -> bool:
        return await self._opened().writer.submit(partial(_changes, _REMOVE, (storable(endpoint),)))


def _all(statements: Statements) -> list[EndpointPause]:
    return [
        EndpointPause(
            endpoint=endpoint, paused_at=Instant(paused_at), paused_by=paused_by, reason=reason
        )
        for endpoint, paused_at, paused_by, reason in statements.execute(_ALL)
    ]


def _changes(
    statement: str, values: tuple[str | int | None, ...], transaction: Transaction
) -> bool:
    before = transaction.total_changes
    transaction.execute(statement, *values)
    return transaction.total_changes > before
