"""The one thread that writes: natural group commit."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import apsw

from duetime.domain.errors import StorageFull, StoreUnavailable
from duetime.stores.sqlite.connections import Transaction, store_error
from duetime.stores.sqlite.disk.failure import OnFailure, is_out_of_room, leaves_doubt
from duetime.telemetry.metrics.catalogue.store import COMMIT_SIZE
from duetime.telemetry.metrics.recording import Series

Item = TypeVar("Item")
Result = TypeVar("Result")

_Answer = tuple[asyncio.Future[Any], Any]

MAX_SUBMISSIONS_PER_COMMIT = 256
ENOUGH_TIMERS_FOR_COMMIT = 2_000
"""Timers after which a commit takes no more submissions. Imports are a tenth faster than with half
as many; with more, claims would wait longer behind an import."""


class BatchOperation(Generic[Item, Result]):
    """Works on many items at once; one result per item, in order.

    Items are independent: the result for an item does not depend on the items that share its
    call. `is_one_statement` tells whether these items take a single statement, which SQLite runs
    as a transaction of its own.
    """

    def __init__(
        self,
        run: Callable[[Transaction, Sequence[Item]], Sequence[Result]],
        is_one_statement: Callable[[Sequence[Item]], bool] = lambda items: False,
    ) -> None:
        self.run = run
        self.is_one_statement = is_one_statement


class _StorageFailure(BaseException):
    """Not an `Exception`, so that nothing handles it on the way out of the thread."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class _Submission:
    __slots__ = ("future", "items", "operation")

    def __init__(
        self,
        operation: BatchOperation[Any, Any],
        items: Sequence[Any],
        future: asyncio.Future[Any],
    ) -> None:
        self.operation = operation
        self.items = items
        self.future = future


class Writer:
    """Runs submissions in order, all that are waiting in one transaction.

    While one transaction commits, the next submissions gather; no submission waits for a batch to
    fill. Neighbours with the same operation become one call of it. A future gets its result only
    after the commit is on disk. When anything fails in a shared transaction, the transaction is
    rolled back and each submission runs again alone, so that only the submission at fault fails:
    operations must therefore be repeatable.

    `on_failure` ends the process. It is called after a storage error that leaves open what is on
    disk, and when the thread ends: by an error outside a transaction, a transaction that cannot be
    rolled back, or an error that is no `Exception`. Submissions then get no answer.

    `commit_sizes` records the items of each commit.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        on_failure: OnFailure,
        between_commits: Callable[[], None] = lambda: None,
        commit_sizes: Series | None = None,
    ) -> None:
        self._connection = connection
        self._on_failure = on_failure
        self._between_commits = between_commits
        self._commit_sizes = Series(COMMIT_SIZE.buckets) if commit_sizes is None else commit_sizes
        self._queue: SimpleQueue[_Submission | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._refusal: str | None = None
        self.found_no_room = False
        """Whether the last write did not fit on the disk."""
        self._unanswered = 0
        self._progress: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._run, name="duetime-sqlite-writer")
        self._thread.daemon = True
        self._thread.start()

    async def submit(self, operation: Callable[[Transaction], Result]) -> Result:
        """Run an operation that is its own batch."""

        def alone(transaction: Transaction, items: Sequence[None]) -> Sequence[Result]:
            return [operation(transaction)]

        (result,) = await self.submit_batch(BatchOperation(alone), [None])
        return result

    async def submit_batch(
        self, operation: BatchOperation[Item, Result], items: Sequence[Item]
    ) -> Sequence[Result]:
        if self._refusal is not None:
            raise StoreUnavailable(self._refusal)
        future: asyncio.Future[Sequence[Result]] = self._loop.create_future()
        self._queue.put(_Submission(operation, items, future))
        self._unanswered += 1
        return await future

    async def progress(self) -> None:
        """Return once the thread has finished a commit, or at once if it has nothing to do."""
        if self._unanswered:
            if self._progress is None:
                self._progress = self._loop.create_future()
            await asyncio.shield(self._progress)

    async def close(self) -> None:
        """Finish the submissions that are waiting, then end the thread."""
        if self._refusal is None:
            self._refusal = "the store is closed"
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            while self._write_waiting():
                self._between_commits()
        except _StorageFailure as failure:
            self._on_failure("sqlite.storage_failed", failure.error)
        except BaseException as error:
            self._on_failure("sqlite.writer_stopped", error)

    def _write_waiting(self) -> bool:
        """Wait for submissions and write them; False after the last one."""
        waiting = self._take_waiting()
        submissions = [submission for submission in waiting if submission is not None]
        if submissions:
            answers = self._write(submissions)
            try:
                self._loop.call_soon_threadsafe(self._deliver, answers)
            except RuntimeError:
                # A closed loop has nobody left to tell.
                return False
        return len(submissions) == len(waiting)

    def _take_waiting(self) -> list[_Submission | None]:
        """At least one submission, in order; None stands for the end."""
        waiting = [self._queue.get()]
        timers = 0
        while (last := waiting[-1]) is not None and len(waiting) < MAX_SUBMISSIONS_PER_COMMIT:
            timers += len(last.items)
            if timers >= ENOUGH_TIMERS_FOR_COMMIT:
                break
            try:
                waiting.append(self._queue.get_nowait())
            except Empty:
                break
        return waiting

    def _write(self, submissions: Sequence[_Submission]) -> list[_Answer]:
        if self._connection.in_transaction:
            # Writes of this transaction would be answered without a commit.
            raise RuntimeError("a transaction could not be rolled back")
        changes_before = self._connection.total_changes()
        try:
            answers = self._write_together(submissions)
        except Exception as error:
            self._check_storage(error)
            if len(submissions) == 1:
                return [(submissions[0].future, self._error_of(error))]
            return [answer for alone in submissions for answer in self._write([alone])]
        self._commit_sizes.observe(sum(len(each.items) for each in submissions))
        if self.found_no_room:
            has_written = self._connection.total_changes() != changes_before
            self.found_no_room = not (has_written or self._finds_room())
        return answers

    def _finds_room(self) -> bool:
        """Write one page, because a transaction that changes nothing says nothing of the disk."""
        try:
            self._connection.pragma("user_version", self._connection.pragma("user_version"))
        except apsw.Error as error:
            self._check_storage(error)
            return False
        return True

    def _error_of(self, error: Exception) -> Exception:
        if is_out_of_room(error, self._connection):
            self.found_no_room = True
            return StorageFull(
                "the disk is full: the database could not be written; make room on it"
            )
        return store_error(error)

    def _write_together(self, submissions: Sequence[_Submission]) -> list[_Answer]:
        groups = [
            (operation, list(neighbours))
            for operation, neighbours in groupby(submissions, key=lambda each: each.operation)
        ]
        transaction = Transaction(self._connection)
        if len(groups) == 1:
            ((operation, group),) = groups
            items = _items_of(group)
            if operation.is_one_statement(items):
                # Separate steps to begin and to commit would wait for the interpreter lock, which
                # a busy event loop makes slow.
                return _shared_out(operation.run(transaction, items), group)
        answers: list[_Answer] = []
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for operation, group in groups:
                answers += _shared_out(operation.run(transaction, _items_of(group)), group)
            transaction.write_counts()
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._check_storage(error)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return answers

    def _deliver(self, answers: Sequence[_Answer]) -> None:
        self._unanswered -= len(answers)
        for future, answer in answers:
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None

    def _check_storage(self, error: BaseException) -> None:
        """Nothing is rolled back or tried again if the error leaves open what is on disk."""
        if leaves_doubt(error, self._connection):
            raise _StorageFailure(error)


def _items_of(submissions: Sequence[_Submission]) -> Sequence[Any]:
    if len(submissions) == 1:
        return submissions[0].items
    return [item for each in submissions for item in each.items]


def _shared_out(results: Sequence[Any], submissions: Sequence[_Submission]) -> list[_Answer]:
    rest = iter(results)
    return [(each.future, list(islice(rest, len(each.items)))) for each in submissions]
