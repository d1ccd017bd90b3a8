"""Counts of attempts in time and late, in a table of the file."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from duetime.domain.lateness.objective import LatenessCount
from duetime.stores.sqlite.connections import Reader, Statements
from duetime.stores.sqlite.writer import Writer

_ADD = """
    INSERT INTO lateness_counts (namespace, hour, in_time, late) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET in_time = in_time + excluded.in_time, late = late + excluded.late
"""
_SINCE = "SELECT namespace, hour, in_time, late FROM lateness_counts WHERE hour >= ?1"
_FORGET = "DELETE FROM lateness_counts WHERE hour < ?1"


class OpenedFile(Protocol):
    writer: Writer
    list_reader: Reader


class SqliteLatenessLedger:
    """Implements the lateness ledger on the file of a store."""

    def __init__(self, opened: Callable[[], OpenedFile]) -> None:
        """`opened` raises `StoreUnavailable` while the store is closed."""
        self._opened = opened

    async def add_lateness(self, counts: Sequence[LatenessCount]) -> None:
        if counts:
            await self._opened().writer.submit(partial(_add, counts=counts))

    async def lateness_since(self, hour: int) -> Sequence[LatenessCount]:
        return await self._opened().list_reader.run(partial(_read, hour=hour))

    async def forget_lateness(self, before_hour: int) -> None:
        await self._opened().writer.submit(partial(_forget, before_hour=before_hour))


def _add(statements: Statements, *, counts: Sequence[LatenessCount]) -> None:
    for each in counts:
        statements.execute(_ADD, each.namespace, each.hour, each.in_time, each.late)


def _read(statements: Statements, *, hour: int) -> list[LatenessCount]:
    return [LatenessCount(*row) for row in statements.execute(_SINCE, hour)]


def _forget(statements: Statements, *, before_hour: int) -> None:
    statements.execute(_FORGET, before_hour)
