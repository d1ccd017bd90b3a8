"""Counts of attempts in time and late, in a table of the file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec

from duetime.domain.lateness.objective import InTimeOrLate, LatenessCount
from duetime.stores.sqlite.connections import Reader, Statements, Transaction
from duetime.stores.sqlite.writer import Writer

_ADD = """
    INSERT INTO lateness_counts (namespace, hour, in_time, late)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1) WHERE true
    ON CONFLICT DO UPDATE SET in_time = in_time + excluded.in_time, late = late + excluded.late
"""
# One row, so that the sums of all namespaces are a single step.
_SUM = """
    SELECT json_group_array(json(sums)) FROM (
        SELECT (
            SELECT json_array(namespace, sum(in_time), sum(late)) FROM lateness_counts
            WHERE namespace = wanted.value ->> 0 AND hour >= wanted.value ->> 1 AND hour < ?2
            HAVING count(*) > 0
        ) AS sums FROM json_each(?1) AS wanted)
    WHERE sums IS NOT NULL
"""
_FORGET = """
    DELETE FROM lateness_counts WHERE (namespace, hour) IN (
        SELECT namespace, hour FROM lateness_counts INDEXED BY lateness_counts_hour
        WHERE hour < ?1 LIMIT ?2)
"""
_SUMS = msgspec.json.Decoder(list[tuple[str, int, int]])


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
            rows = [(each.namespace, each.hour, each.in_time, each.late) for each in counts]
            await self._opened().writer.submit(partial(_add, rows=_json(rows)))

    async def sum_lateness(
        self, since: Mapping[str, int], *, until_exclusive: int
    ) -> Mapping[str, InTimeOrLate]:
        sums = await self._opened().list_reader.run(
            partial(_sum, wanted=_json(since.items()), until_exclusive=until_exclusive)
        )
        return {name: InTimeOrLate(*both) for name, *both in _SUMS.decode(sums)}

    async def forget_lateness(self, before_hour: int, *, limit: int) -> int:
        return await self._opened().writer.submit(
            partial(_forget, before_hour=before_hour, limit=limit)
        )


def _json(rows: Iterable[tuple[str | int, ...]]) -> str:
    return msgspec.json.encode(list(rows)).decode()


def _add(statements: Statements, *, rows: str) -> None:
    statements.execute(_ADD, rows)


def _sum(statements: Statements, *, wanted: str, until_exclusive: int) -> str:
    (sums,) = statements.first(_SUM, wanted, until_exclusive)
    return str(sums)


def _forget(transaction: Transaction, *, before_hour: int, limit: int) -> int:
    before = transaction.total_changes
    transaction.execute(_FORGET, before_hour, limit)
    return transaction.total_changes - before
