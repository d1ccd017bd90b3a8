"""The thread that reads lists, and keeps up with what is unfiled when it has no list to read."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import apsw
import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.stores.sqlite.connections import store_error
from duetime.stores.sqlite.unfiled import Unfiled
from duetime.stores.sqlite.unfiled_order import ListStatements

Result = TypeVar("Result")

_log = structlog.get_logger()


class ListReader:
    """One thread. Each list sees one consistent state of the file."""

    def __init__(self, path: Path, unfiled: Unfiled) -> None:
        self._unfiled = unfiled
        self._followed = 0
        self._is_following = False
        self._closed = False
        self._statements = ListStatements(path, unfiled.options.run_timers)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="duetime-sqlite-lists")
        self.follow()

    async def run(self, read: Callable[[ListStatements], Result]) -> Result:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        self._unfiled.listed_at = perf_counter()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._read, read)

    def follow(self) -> None:
        """Called by the writer's thread after commits: note what was put away, by and by."""
        unfiled = self._unfiled
        behind = unfiled.moves - self._followed
        if self._is_following or not behind:
            return
        if behind >= unfiled.may_wait_for_notes(perf_counter()) or not unfiled.count:
            self._is_following = True
            self._executor.submit(self._follow)

    def close(self) -> None:
        """Called after the writer has ended."""
        self._closed = True
        self._executor.shutdown()
        self._statements.close()

    def _read(self, read: Callable[[ListStatements], Result]) -> Result:
        try:
            return self._statements.read(read)
        except apsw.Error as error:
            raise store_error(error) from error

    def _follow(self) -> None:
        """Lists that were asked for meanwhile come before the next stretch."""
        moves = self._unfiled.moves
        try:
            is_behind = self._statements.follow()
        except Exception as error:
            # Lists try again, and say so if they cannot be read.
            _log.warning("sqlite.noting_failed", error=str(error))
            is_behind = False
        if is_behind and not self._closed:
            self._executor.submit(self._follow)
            return
        self._followed = moves
        self._is_following = False
