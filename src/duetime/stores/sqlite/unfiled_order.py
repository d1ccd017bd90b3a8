"""Unfiled timers in order: notes of the connection that lists are read from.

Timers are noted by their instants, in runs. A run is a share of the blocks, in order; it is filled
while blocks are written and is gone when the last of them is filed. One order of all would be
written at random all over. Reading merges the runs, which are few.

The timers of a block were all created at one instant, so by that only blocks are noted. Those of
one instant are hardly ever more than a batch: its timers are sorted when they are read.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Self, TypeVar

import apsw
from msgspec import Struct

from duetime.ports.store import SortField
from duetime.stores.sqlite.blocks import BLOCK_TIMERS, UUID_BYTES, instants_in, number_of
from duetime.stores.sqlite.connections import READER_CACHE_KIB, connect
from duetime.stores.sqlite.notes import attach_notes
from duetime.stores.sqlite.statements import Statements

_CACHE_KIB = 8_192

MAX_BLOCKS_AT_ONCE = 256
"""Noted at once: some 8,000 timers. A list that is asked for meanwhile waits for no more."""

Result = TypeVar("Result")

_CREATE = (
    """
    CREATE TABLE notes.unfiled_by_execute_at (
        run            INTEGER NOT NULL,
        namespace      TEXT NOT NULL,
        execute_at     INTEGER NOT NULL,
        timer_uuid     BLOB NOT NULL,
        number         INTEGER NOT NULL,
        PRIMARY KEY (run, namespace, execute_at, timer_uuid, number)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE notes.blocks_by_created_at (
        namespace      TEXT NOT NULL,
        created_at     INTEGER NOT NULL,
        block_id       INTEGER NOT NULL,
        PRIMARY KEY (namespace, created_at, block_id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE notes.positions (position INTEGER PRIMARY KEY) STRICT",
    f"""
    CREATE TEMP VIEW unfiled_by_created_at AS
    SELECT noted.namespace, noted.created_at,
           substr(block.uuids, position * {UUID_BYTES} + 1, {UUID_BYTES}) AS timer_uuid,
           noted.block_id * {BLOCK_TIMERS} + position AS number
    FROM notes.blocks_by_created_at AS noted
    CROSS JOIN main.unfiled_blocks AS block ON block.block_id = noted.block_id
    CROSS JOIN notes.positions ON position < length(block.uuids) / {UUID_BYTES}
    """,
    # What is to be noted, in no order yet.
    "CREATE TABLE notes.new_timers_of_run (namespace, execute_at, timer_uuid, number)",
)
_ADD_POSITION = "INSERT INTO positions VALUES (?)"

# One statement with both would read all of them.
_RANGE = """
    SELECT (SELECT min(block_id) FROM unfiled_blocks), (SELECT max(block_id) FROM unfiled_blocks)
"""
_BLOCKS = """
    SELECT block_id, namespace, instants, uuids FROM unfiled_blocks
    WHERE block_id BETWEEN ?1 AND ?2 ORDER BY block_id
"""
_NOTE_BLOCKS = """
    INSERT INTO blocks_by_created_at
    SELECT namespace, created_at, block_id FROM unfiled_blocks WHERE block_id BETWEEN ?1 AND ?2
"""

# The timers of blocks that follow each other, straight from their bytes.
_COLLECT = f"""
    INSERT INTO new_timers_of_run
    SELECT ?1, value, substr(?3, (rowid - 1) * {UUID_BYTES} + 1, {UUID_BYTES}), ?4 + rowid - 1
    FROM carray(?2)
"""
_NOTE = """
    INSERT OR FAIL INTO unfiled_by_execute_at
    SELECT ?1, namespace, execute_at, timer_uuid, number FROM new_timers_of_run
    ORDER BY namespace, execute_at, timer_uuid
"""
_COUNT_NEW = "SELECT count(*) FROM new_timers_of_run"
_FORGET_NEW = "DELETE FROM new_timers_of_run"
_FORGET_RUNS = "DELETE FROM unfiled_by_execute_at WHERE run <= ?1"
_FORGET_BLOCKS = "DELETE FROM blocks_by_created_at WHERE block_id <= ?1"
_FORGET_ALL = ("DELETE FROM unfiled_by_execute_at", "DELETE FROM blocks_by_created_at")

# What was noted may be filed by now, with all of its block.
_STILL_UNFILED = f"""
    EXISTS (SELECT 1 FROM unfiled_blocks AS block
            WHERE block.block_id = number / {BLOCK_TIMERS})
"""

_UNFILED_BLOCKS = "SELECT block_id FROM unfiled_blocks INDEXED BY unfiled_blocks_due"


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


_BY_CREATED_AT = Source(
    "unfiled_by_created_at", "true", kind=Kind.UNFILED, column="number", is_ordered=True
)


class _Stretch(Struct):
    """Blocks that follow each other, all but the last of them full: of one batch, as a rule."""

    namespace: str
    first_number: int
    end_number: int
    instants: list[bytes]
    uuids: list[bytes]


def _stretches(blocks: Iterable[tuple[int, str, bytes, bytes]]) -> Iterator[_Stretch]:
    stretch: _Stretch | None = None
    for block_id, namespace, instants, uuids in blocks:
        first = number_of(block_id)
        if stretch is None or (namespace, first) != (stretch.namespace, stretch.end_number):
            if stretch is not None:
                yield stretch
            stretch = _Stretch(namespace, first, first, [], [])
        stretch.end_number = first + len(uuids) // UUID_BYTES
        stretch.instants.append(instants)
        stretch.uuids.append(uuids)
    if stretch is not None:
        yield stretch


class _Run(Struct, frozen=True):
    number: int
    first_block: int
    last_block: int
    timers: int


class ListStatements(Statements):
    """Statements of the connection that lists are read from."""

    def __init__(self, path: Path, run_timers: int) -> None:
        super().__init__(connect(path, READER_CACHE_KIB))
        attach_notes(self._connection, _CACHE_KIB)
        for statement in _CREATE:
            self.execute(statement)
        for position in range(BLOCK_TIMERS):
            self.execute(_ADD_POSITION, position)
        self._run_timers = run_timers
        self._runs: list[_Run] = []
        self._noted_until = 0

    def unfiled_sources(self, sort: SortField) -> list[Source]:
        """Where the unfiled timers are: by their instants, in each run."""
        if sort is SortField.CREATED_AT:
            return [_BY_CREATED_AT]
        return [_source(run, _STILL_UNFILED) for run in self._runs]

    def counted_sources(self) -> list[Source]:
        """The same for counting, when all of a range is read and looking up each timer's block
        would take most of the time."""
        unfiled = {block_id for (block_id,) in self.execute(_UNFILED_BLOCKS)}
        sources = []
        for run in self._runs:
            filed = sorted(set(range(run.first_block, run.last_block + 1)) - unfiled)
            condition = f"number / {BLOCK_TIMERS} NOT IN ({', '.join(map(str, filed))})"
            sources.append(_source(run, condition))
        return sources

    def read(self, read: Callable[[Self], Result]) -> Result:
        """All statements of the read see the same state of the file, and have it noted."""
        with self._in_one_view():
            while self._note_some():
                pass
            return read(self)

    def follow(self) -> bool:
        """Note some of what was put away, and forget what is filed; whether there is more."""
        with self._in_one_view():
            return self._note_some()

    @contextmanager
    def _in_one_view(self) -> Iterator[None]:
        before = self._runs, self._noted_until
        self.execute("BEGIN")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self._runs, self._noted_until = before
            if self._connection.in_transaction:
                self.execute("ROLLBACK")
            raise

    def _note_some(self) -> bool:
        first_block, last_block = self.first(_RANGE)
        self._runs, self._noted_until = self._runs_of(first_block, last_block)
        return first_block is not None and self._noted_until < last_block

    def _runs_of(self, first_block: int | None, last_block: int) -> tuple[list[_Run], int]:
        """The runs of these blocks, filled up to the block that comes with them."""
        if first_block is None:
            for statement in _FORGET_ALL:
                self.execute(statement)
            return [], self._noted_until
        runs = self._forget_filed(first_block)
        since = max(first_block, self._noted_until + 1)
        until = max(self._noted_until, min(last_block, since + MAX_BLOCKS_AT_ONCE - 1))
        return self._note(runs, since, until), until

    def _forget_filed(self, first_block: int) -> list[_Run]:
        filed = [run for run in self._runs if run.last_block < first_block]
        if filed:
            self.execute(_FORGET_RUNS, filed[-1].number)
            self.execute(_FORGET_BLOCKS, filed[-1].last_block)
        return self._runs[len(filed) :]

    def _note(self, runs: list[_Run], since_block: int, until_block: int) -> list[_Run]:
        if until_block < since_block:
            return runs
        if runs and runs[-1].timers < self._run_timers:
            *before, last = runs
        else:
            number = self._runs[-1].number + 1 if self._runs else 1
            before, last = runs, _Run(number, since_block, 0, 0)
        for stretch in _stretches(self.execute(_BLOCKS, since_block, until_block)):
            self.execute(
                _COLLECT,
                stretch.namespace,
                apsw.carray(instants_in(b"".join(stretch.instants))),
                b"".join(stretch.uuids),
                stretch.first_number,
            )
        self.execute(_NOTE, last.number)
        self.execute(_NOTE_BLOCKS, since_block, until_block)
        (timers,) = self.first(_COUNT_NEW)
        self.execute(_FORGET_NEW)
        return [*before, _Run(last.number, last.first_block, until_block, last.timers + timers)]


def _source(run: _Run, condition: str) -> Source:
    return Source(
        "unfiled_by_execute_at",
        f"run = {run.number} AND {condition}",
        kind=Kind.UNFILED,
        column="number",
        is_ordered=True,
    )
