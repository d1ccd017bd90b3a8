"""The one thread that writes: natural group commit."""

import asyncio
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from duetime.domain.errors import StoreUnavailable
from duetime.stores.sqlite.connections import store_error
from duetime.stores.sqlite.transaction import Transaction

Result = TypeVar("Result")
_Operation = Callable[[Transaction], Any]
_Submission = tuple[_Operation, asyncio.Future[Any]]

MAX_OPERATIONS_PER_COMMIT = 256


class Writer:
    """Runs submitted operations in order, as many as are waiting in one transaction.

    While one transaction commits, the next operations gather; nobody waits for a batch to
    fill. A future gets its result only after the commit is on disk. If anything goes wrong in
    a shared transaction it is rolled back and each operation is run again alone, so that only
    the one at fault fails: operations must therefore be repeatable.
    """

    def __init__(
        self, connection: apsw.Connection, between_commits: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._between_commits = between_commits
        self._queue: SimpleQueue[_Submission | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="duetime-sqlite-writer")
        self._thread.daemon = True
        self._thread.start()

    async def submit(self, operation: Callable[[Transaction], Result]) -> Result:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put((operation, future))
        result: Result = await future
        return result

    async def close(self) -> None:
        """Run what was submitted, then end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        open_for_business = True
        while open_for_business:
            waiting = self._take_waiting()
            submissions = [submission for submission in waiting if submission is not None]
            open_for_business = len(submissions) == len(waiting)
            if submissions:
                answers = self._write(submissions)
                self._loop.call_soon_threadsafe(_deliver, answers)
            self._between_commits()

    def _take_waiting(self) -> list[_Submission | None]:
        """What is waiting, at least one, in order."""
        waiting = [self._queue.get()]
        while waiting[-1] is not None and len(waiting) < MAX_OPERATIONS_PER_COMMIT:
            try:
                waiting.append(self._queue.get_nowait())
            except Empty:
                break
        return waiting

    def _write(self, submissions: list[_Submission]) -> list[tuple[asyncio.Future[Any], Any]]:
        try:
            results = self._run_in_one_transaction([operation for operation, _ in submissions])
        except Exception as error:
            if len(submissions) > 1:
                return [
                    answer for submission in submissions for answer in self._write([submission])
                ]
            return [(submissions[0][1], store_error(error))]
        return [(future, result) for (_, future), result in zip(submissions, results, strict=True)]

    def _run_in_one_transaction(self, operations: list[_Operation]) -> list[Any]:
        transaction = Transaction(self._connection)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            results = [operation(transaction) for operation in operations]
            transaction.write_counts()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return results


def _deliver(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
