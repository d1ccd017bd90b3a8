"""Unfiled timers in order: notes of the connection that lists are read from.

Timers are noted in runs. A run is a share of the blocks, in order; it is filled while blocks are
written and is gone when the last of them is filed. One order of all would be written at random
all over, for each timer twice. Reading merges the runs, which are few.
"""

from enum import IntEnum
from pathlib import Path

from msgspec import Struct

from duetime.ports.store import SortField
from duetime.stores.sqlite.blocks import BLOCK_TIMERS, number_of
from duetime.stores.sqlite.connections import READER_CACHE_KIB, connect
from duetime.stores.sqlite.notes import attach_notes
from duetime.stores.sqlite.statements import Statements

_CACHE_KIB = 8_192

_ORDERS = {sort: f"unfiled_by_{sort.value}" for sort in SortField}

_CREATE_ORDER = """
    CREATE TABLE notes.{order} (
        run            INTEGER NOT NULL,
        namespace      TEXT NOT NULL,
        {sort}         INTEGER NOT NULL,
        timer_uuid     BLOB NOT NULL,
        number         INTEGER NOT NULL,
        PRIMARY KEY (run, namespace, {sort}, timer_uuid, number)
    ) STRICT, WITHOUT ROWID
"""

# What is to be noted, taken out of its blocks once for all orders.
_CREATE_NEW = """
    CREATE TABLE notes.new_timers_of_run (
        namespace, created_at, execute_at, timer_uuid, number
    )
"""

_RANGE = "SELECT min(block_id), max(block_id) FROM unfiled_blocks"

_NUMBER = f"block_id * {BLOCK_TIMERS} + position AS number"
_COLLECT = f"""
    INSERT INTO new_timers_of_run
    SELECT namespace, created_at, execute_at, timer_uuid, {_NUMBER} FROM unfiled_timers
    WHERE block_id BETWEEN ?1 AND ?2
"""
_NOTE = """
    INSERT OR FAIL INTO {order}
    SELECT ?1, namespace, {sort}, timer_uuid, number FROM new_timers_of_run
    ORDER BY namespace, {sort}, timer_uuid
"""
_COUNT_NEW = "SELECT count(*) FROM new_timers_of_run"
_FORGET_NEW = "DELETE FROM new_timers_of_run"
_FORGET_RUNS = "DELETE FROM {order} WHERE run <= ?1"
_FORGET_ALL = "DELETE FROM {order}"

# What was noted may be filed by now, with all of its block.
_STILL_UNFILED = f"""
    EXISTS (SELECT 1 FROM unfiled_blocks AS block
            WHERE block.block_id = number / {BLOCK_TIMERS})
"""

_BLOCKS_UNTIL = """
    SELECT block_id FROM unfiled_blocks INDEXED BY unfiled_blocks_due WHERE block_id <= ?1
"""


class Kind(IntEnum):
    """Where the timers of a source are."""

    LIVE = 0
    FINISHED = 1
    UNFILED = 2


class Source(Struct, frozen=True):
    """Something to select places of timers from, and the condition that picks them. `column`
    tells one timer of the kind from the others.

    What `is_ordered` delivers each namespace in order, and need not be read to its end.
    """

    table: str
    condition: str
    kind: Kind = Kind.LIVE
    column: str = "row_id"
    is_ordered: bool = False


class _Run(Struct, frozen=True):
    number: int
    last_block: int
    timers: int


class ListStatements(Statements):
    """Statements of the connection that lists are read from."""

    def __init__(self, path: Path, run_timers: int) -> None:
        super().__init__(connect(path, READER_CACHE_KIB))
        attach_notes(self._connection, _CACHE_KIB)
        self.execute(_CREATE_NEW)
        self._of_each_order(_CREATE_ORDER)
        self._run_timers = run_timers
        self._runs: list[_Run] = []
        self._noted_until = 0

    def unfiled_sources(self, sort: SortField) -> list[Source]:
        """Where the unfiled timers are: each run, and what is not noted yet."""
        return [
            *(
                self._noted(sort, f"run = {run.number} AND {_STILL_UNFILED}", is_ordered=True)
                for run in self._runs
            ),
            self._unnoted,
        ]

    def counted_sources(self) -> list[Source]:
        """The same for counting, when all of a range is read and looking up each timer's block
        would take most of the time."""
        unfiled = {block_id for (block_id,) in self.execute(_BLOCKS_UNTIL, self._noted_until)}
        if not unfiled:
            return [self._unnoted]
        first, noted_until = min(unfiled), self._noted_until
        filed = sorted(set(range(first, noted_until + 1)) - unfiled)
        condition = (
            f"number >= {number_of(first)} AND number / {BLOCK_TIMERS} NOT IN"
            f" ({', '.join(map(str, filed))})"
        )
        return [
            *(
                self._noted(SortField.EXECUTE_AT, f"run = {run.number} AND {condition}")
                for run in self._runs
            ),
            self._unnoted,
        ]

    def note_unfiled(self, max_blocks: int) -> bool:
        """Note blocks that were written, and forget runs that are filed; whether there is more."""
        self.execute("BEGIN")
        try:
            first_block, last_block = self.first(_RANGE)
            runs, until = self._runs_of(first_block, last_block, max_blocks)
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self.execute("ROLLBACK")
            raise
        self._runs, self._noted_until = runs, until
        return first_block is not None and until < last_block

    @property
    def _unnoted(self) -> Source:
        """What has not been noted is taken out of its blocks on the spot."""
        table = f"(SELECT *, {_NUMBER} FROM unfiled_timers WHERE block_id > {self._noted_until})"
        return Source(table, "true", kind=Kind.UNFILED, column="number")

    def _noted(self, sort: SortField, condition: str, *, is_ordered: bool = False) -> Source:
        return Source(
            _ORDERS[sort], condition, kind=Kind.UNFILED, column="number", is_ordered=is_ordered
        )

    def _of_each_order(self, statement: str, *values: int) -> None:
        for sort, order in _ORDERS.items():
            self.execute(statement.format(order=order, sort=sort.value), *values)

    def _runs_of(
        self, first_block: int | None, last_block: int, max_blocks: int
    ) -> tuple[list[_Run], int]:
        """The runs of these blocks, filled up to the block that comes with them."""
        if first_block is None:
            self._of_each_order(_FORGET_ALL)
            return [], self._noted_until
        runs = self._forget_filed(first_block)
        since = max(first_block, self._noted_until + 1)
        until = max(self._noted_until, min(last_block, since + max_blocks - 1))
        return self._note(runs, since, until), until

    def _forget_filed(self, first_block: int) -> list[_Run]:
        filed = [run for run in self._runs if run.last_block < first_block]
        if filed:
            self._of_each_order(_FORGET_RUNS, filed[-1].number)
        return self._runs[len(filed) :]

    def _note(self, runs: list[_Run], since_block: int, until_block: int) -> list[_Run]:
        if until_block < since_block:
            return runs
        if runs and runs[-1].timers < self._run_timers:
            *before, last = runs
        else:
            number = self._runs[-1].number + 1 if self._runs else 1
            before, last = runs, _Run(number, 0, 0)
        self.execute(_COLLECT, since_block, until_block)
        self._of_each_order(_NOTE, last.number)
        (timers,) = self.first(_COUNT_NEW)
        self.execute(_FORGET_NEW)
        return [*before, _Run(last.number, until_block, last.timers + timers)]
