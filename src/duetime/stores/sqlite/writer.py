"""The one thread that writes: natural group commit."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, TypeVar

import apsw
import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.stores.sqlite.connections import store_error
from duetime.stores.sqlite.creating import create_large, create_timers, is_one_statement
from duetime.stores.sqlite.filing import file_slice
from duetime.stores.sqlite.finding import find_timers
from duetime.stores.sqlite.transaction import Transaction
from duetime.stores.sqlite.unfiled import Unfiled

Item = TypeVar("Item")
Result = TypeVar("Result")
Batch = Callable[[Transaction, Sequence[Item]], Sequence[Result]]
"""Works on many items at once; one result per item, in order. Items are independent: it makes
no difference to them which others they share a call with."""

_Answer = tuple[asyncio.Future[Any], Any]

MAX_SUBMISSIONS_PER_COMMIT = 256
ENOUGH_TIMERS_FOR_COMMIT = 1_000
"""More would hardly make a commit cheaper. While these are written, the event loop can work on
what comes next; if it all went into one commit, one of the two would always wait for the other."""

_CREATES: frozenset[Batch[Any, Any]] = frozenset({create_timers, create_large})

_log = structlog.get_logger()


class _Submission:
    __slots__ = ("batch", "future", "items", "weight")

    def __init__(
        self,
        batch: Batch[Any, Any],
        items: Sequence[Any],
        weight: int,
        future: asyncio.Future[Any],
    ) -> None:
        self.batch = batch
        self.items = items
        self.weight = weight
        self.future = future


class Writer:
    """Runs what is submitted in order, as much as is waiting in one transaction.

    While one transaction commits, the next submissions gather; nobody waits for a batch to
    fill. Neighbours that are worked on by the same function become one call of it. A future
    gets its result only after the commit is on disk. If anything goes wrong in a shared
    transaction it is rolled back and each submission is run again alone, so that only the one
    at fault fails: they must therefore be repeatable.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        unfiled: Unfiled,
        between_commits: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._unfiled = unfiled
        self._between_commits = between_commits
        self._queue: SimpleQueue[_Submission | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._idle_slice = unfiled.options.idle_slice
        self._worked_at = perf_counter()
        self._filed_at = self._worked_at
        self._thread = threading.Thread(target=self._run, name="duetime-sqlite-writer")
        self._thread.daemon = True
        self._thread.start()

    async def submit(self, operation: Callable[[Transaction], Result]) -> Result:
        """Run an operation that is its own batch."""

        def alone(transaction: Transaction, items: Sequence[None]) -> Sequence[Result]:
            return [operation(transaction)]

        (result,) = await self.submit_batch(alone, [None])
        return result

    async def submit_batch(
        self, batch: Batch[Item, Result], items: Sequence[Item], weight: int | None = None
    ) -> Sequence[Result]:
        """`weight` tells how many timers the items are; one each unless given."""
        if self._closed:
            raise StoreUnavailable("the store is closed")
        future: asyncio.Future[Sequence[Result]] = self._loop.create_future()
        weight = len(items) if weight is None else weight
        self._queue.put(_Submission(batch, items, weight, future))
        return await future

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
            self._unfiled.forget_filed()
            if any(submission.batch is not find_timers for submission in submissions):
                self._worked_at = perf_counter()
            elif open_for_business and self._patience() == 0:
                self._file_idly()
            self._between_commits()

    def _patience(self) -> float | None:
        """How many seconds to wait for work before timers are filed.

        Lists are work too, though of another thread: filing would take the interpreter from them.
        But however many there are, filing gets on.
        """
        if not self._unfiled.count:
            return None
        options = self._unfiled.options
        listed_at = min(self._unfiled.listed_at, self._filed_at + options.longest_pause_seconds)
        idle_at = max(self._worked_at, listed_at) + options.idle_seconds
        return max(0.0, idle_at - perf_counter())

    def _take_waiting(self) -> list[_Submission | None]:
        """What is waiting, in order: at least one, or none if it is time to file timers."""
        try:
            waiting = [self._queue.get(timeout=self._patience())]
        except Empty:
            return []
        weight = 0
        while (last := waiting[-1]) is not None and len(waiting) < MAX_SUBMISSIONS_PER_COMMIT:
            weight += last.weight
            if weight >= ENOUGH_TIMERS_FOR_COMMIT:
                break
            try:
                waiting.append(self._queue.get_nowait())
            except Empty:
                break
        return waiting

    def _write(self, submissions: Sequence[_Submission]) -> list[_Answer]:
        try:
            return self._write_in_one_transaction(submissions)
        except Exception as error:
            if len(submissions) == 1:
                return [(submissions[0].future, store_error(error))]
            return [answer for alone in submissions for answer in self._write([alone])]

    def _file_idly(self) -> None:
        """What fails is tried again with the next work or the next idle moment.

        The next slice is the larger, the less time this one took: how long a timer takes to file
        depends on how many there are and on the disk. Slices that are too small would spend most
        of it on their commits.
        """
        options = self._unfiled.options
        began_at = perf_counter()
        try:
            self._write_in_one_transaction([])
        except Exception as error:
            # Whatever it is, those who ask for something should not suffer for it.
            _log.warning("sqlite.filing_failed", error=str(error))
            self._worked_at = perf_counter()
        self._filed_at = perf_counter()
        took_seconds = self._filed_at - began_at
        fitting = int(self._idle_slice * min(2.0, options.slice_seconds / took_seconds))
        self._idle_slice = max(options.idle_slice, min(fitting, options.max_idle_slice))

    def _write_creates_alone(self, submissions: Sequence[_Submission]) -> list[_Answer] | None:
        """Creates and nothing else, few enough for one statement: it is its own transaction.

        Beginning and committing separately would mean more trips through the interpreter, which
        a busy event loop makes dear.
        """
        if any(each.batch is not create_timers for each in submissions):
            return None
        requests = [request for each in submissions for request in each.items]
        transaction = Transaction(self._connection, self._unfiled)
        if not is_one_statement(transaction, requests):
            return None
        return _shared_out(create_timers(transaction, requests), submissions)

    def _write_in_one_transaction(self, submissions: Sequence[_Submission]) -> list[_Answer]:
        if submissions and (alone := self._write_creates_alone(submissions)) is not None:
            return alone
        transaction = Transaction(self._connection, self._unfiled)
        answers: list[_Answer] = []
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for batch, neighbours in groupby(submissions, key=lambda each: each.batch):
                group = list(neighbours)
                results = batch(transaction, [item for each in group for item in each.items])
                answers += _shared_out(results, group)
            self._file_along(transaction, submissions)
            transaction.write_counts()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            transaction.rolled_back()
            raise
        transaction.committed()
        return answers

    def _file_along(self, transaction: Transaction, submissions: Sequence[_Submission]) -> None:
        """Creates file what they have to; what only reads should not wait for the disk."""
        batches = {submission.batch for submission in submissions}
        if not transaction.unfiled_count or batches & _CREATES or batches == {find_timers}:
            return
        options = self._unfiled.options
        file_slice(transaction, options.side_slice if submissions else self._idle_slice)


def _shared_out(results: Sequence[Any], submissions: Sequence[_Submission]) -> list[_Answer]:
    rest = iter(results)
    return [(each.future, list(islice(rest, len(each.items)))) for each in submissions]


def _deliver(answers: Sequence[_Answer]) -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
