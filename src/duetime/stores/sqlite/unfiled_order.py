"""Unfiled timers in the order of their instants: notes of the connection that lists are read from.

The rows are noted in runs. A run is a share of the rows, in order; it is filled while the rows are
appended and is gone when the last of them is filed. One order of all would be written at random
all over, for each timer twice. Reading merges the runs, which are few.
"""

from pathlib import Path

from msgspec import Struct

from duetime.stores.sqlite.connections import READER_CACHE_KIB, connect
from duetime.stores.sqlite.notes import attach_notes
from duetime.stores.sqlite.statements import Statements

_CACHE_KIB = 8_192

_CREATE_ORDER = """
    CREATE TABLE notes.unfiled_order (
        run            INTEGER NOT NULL,
        namespace      TEXT NOT NULL,
        execute_at     INTEGER NOT NULL,
        timer_uuid     BLOB NOT NULL,
        row_id         INTEGER NOT NULL,
        PRIMARY KEY (run, namespace, execute_at, timer_uuid, row_id)
    ) STRICT, WITHOUT ROWID
"""

_RANGE = "SELECT first_row, last_row FROM unfiled"

_NOTE = """
    INSERT OR FAIL INTO unfiled_order
    SELECT ?1, namespace, execute_at, timer_uuid, row_id FROM live_timers NOT INDEXED
    WHERE row_id BETWEEN ?2 AND ?3 AND filed = 0
    ORDER BY namespace, execute_at, timer_uuid
"""

_FORGET = "DELETE FROM unfiled_order WHERE run <= ?1"
_FORGET_ALL = "DELETE FROM unfiled_order"

# What was noted may be filed, changed or gone by now. No row is appended twice, so it is still
# the same timer when it is still unfiled.
_STILL_UNFILED = """
    row_id >= (SELECT first_row FROM unfiled) AND EXISTS (
        SELECT 1 FROM live_timers AS live
        WHERE live.row_id = unfiled_order.row_id AND live.filed = 0
          AND live.timer_uuid = unfiled_order.timer_uuid)
"""


class _Run(Struct, frozen=True):
    number: int
    last_row: int
    timers: int


class Source(Struct, frozen=True):
    """Something to select places of timers from, and the condition that picks them.

    What `is_ordered` delivers each namespace in order, and need not be read to its end.
    """

    table: str
    condition: str
    finished: int = 0
    is_ordered: bool = False


class ListStatements(Statements):
    """Statements of the connection that lists are read from."""

    def __init__(self, path: Path, run_timers: int) -> None:
        super().__init__(connect(path, READER_CACHE_KIB))
        attach_notes(self._connection, _CACHE_KIB)
        self.execute(_CREATE_ORDER)
        self._run_timers = run_timers
        self._runs: list[_Run] = []
        self._noted_until = 0

    def noted_sources(self) -> list[Source]:
        """Where the unfiled timers are that have been noted."""
        return [
            Source("unfiled_order", f"run = {run.number} AND {_STILL_UNFILED}", is_ordered=True)
            for run in self._runs
        ]

    def unnoted_source(self) -> Source:
        """Where those are that have not: their rows are read one by one."""
        return self._rows_from(self._noted_until + 1)

    def all_unfiled_source(self) -> Source:
        """All of them, noted or not, row by row."""
        return self._rows_from(0)

    def note_unfiled(self, max_rows: int) -> bool:
        """Note rows that were appended, and forget runs that are filed; whether there is more."""
        self.execute("BEGIN")
        try:
            first_row, last_row = self.first(_RANGE)
            runs, until = self._runs_of(first_row, last_row, max_rows)
            self.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self.execute("ROLLBACK")
            raise
        self._runs, self._noted_until = runs, until
        return first_row is not None and until < last_row

    def _runs_of(
        self, first_row: int | None, last_row: int, max_rows: int
    ) -> tuple[list[_Run], int]:
        """The runs of this range, filled up to the row that comes with them."""
        if first_row is None:
            self.execute(_FORGET_ALL)
            return [], self._noted_until
        runs = self._forget_filed(first_row)
        since = max(first_row, self._noted_until + 1)
        until = max(self._noted_until, min(last_row, since + max_rows - 1))
        return self._note(runs, since, until), until

    def _forget_filed(self, first_row: int) -> list[_Run]:
        filed = [run for run in self._runs if run.last_row < first_row]
        if filed:
            self.execute(_FORGET, filed[-1].number)
        return self._runs[len(filed) :]

    def _note(self, runs: list[_Run], since_row: int, until_row: int) -> list[_Run]:
        if until_row < since_row:
            return runs
        if runs and runs[-1].timers < self._run_timers:
            *before, last = runs
        else:
            number = self._runs[-1].number + 1 if self._runs else 1
            before, last = runs, _Run(number, 0, 0)
        self.execute(_NOTE, last.number, since_row, until_row)
        timers = last.timers + self._connection.changes()
        return [*before, _Run(last.number, until_row, timers)]

    def _rows_from(self, row: int) -> Source:
        rows = f"max({row}, (SELECT first_row FROM unfiled)) AND (SELECT last_row FROM unfiled)"
        return Source("live_timers NOT INDEXED", f"filed = 0 AND row_id BETWEEN {rows}")
