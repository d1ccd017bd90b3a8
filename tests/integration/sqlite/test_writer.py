"""The writer thread: group commit, and callers that are never left waiting."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.store import Existence
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.connections import Transaction, connect
from duetime.stores.sqlite.writer import BatchOperation, Writer
from duetime.testing.store_contract.steps import at, create
from duetime.testing.timers import make_timer
from tests.polling import PATIENCE_SECONDS

INSERT = "INSERT INTO written VALUES (?)"


class Hook:
    """Runs between commits; raises once if it is told to."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __call__(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def connection(path: Path) -> Iterator[apsw.Connection]:
    with closing(connect(path, cache_kib=1_024)) as connection:
        connection.execute("CREATE TABLE written (value INTEGER UNIQUE); CREATE TABLE counts (a)")
        yield connection


class Failures:
    """Stands for the end of the process: keeps the event and the error that would end it."""

    def __init__(self) -> None:
        self.reported: asyncio.Future[tuple[str, BaseException]] = asyncio.Future()
        self._loop = asyncio.get_running_loop()

    def __call__(self, event: str, error: BaseException) -> None:
        self._loop.call_soon_threadsafe(self.reported.set_result, (event, error))


@pytest.fixture
async def failures() -> Failures:
    return Failures()


@pytest.fixture
async def writer(
    connection: apsw.Connection, hook: Hook, failures: Failures
) -> AsyncIterator[Writer]:
    writer = Writer(connection, failures, hook)
    yield writer
    await writer.close()


def written(path: Path) -> list[int]:
    with closing(apsw.Connection(str(path))) as connection:
        return [value for (value,) in connection.execute("SELECT value FROM written ORDER BY 1")]


def insert_all(transaction: Transaction, values: Sequence[int]) -> Sequence[int]:
    for value in values:
        transaction.execute(INSERT, value)
    return values


INSERTS = BatchOperation(insert_all)
SINGLE_INSERTS = BatchOperation(insert_all, lambda values: len(values) == 1)


class Uncountable(Sequence[int]):
    """Items that the writer's thread fails on before it writes anything."""

    def __getitem__(self, index: object) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise MemoryError


def raising(error: BaseException) -> Callable[[Transaction], None]:
    def operation(transaction: Transaction) -> None:
        transaction.execute(INSERT, 99)
        raise error

    return operation


async def test_neighbours_of_one_operation_are_one_call(writer: Writer, path: Path) -> None:
    calls: list[int] = []
    is_blocked, release = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def block(_: Transaction) -> None:
        loop.call_soon_threadsafe(is_blocked.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()

    def counted(transaction: Transaction, values: Sequence[int]) -> Sequence[int]:
        calls.append(len(values))
        return insert_all(transaction, values)

    operation = BatchOperation(counted)
    async with asyncio.TaskGroup() as group:
        group.create_task(writer.submit(block))
        await is_blocked.wait()
        results = [group.create_task(writer.submit_batch(operation, [n, -n])) for n in (1, 2, 3)]
        # Runs after the first steps of the tasks, which submit.
        loop.call_soon(release.set)
    assert [result.result() for result in results] == [[1, -1], [2, -2], [3, -3]]
    assert calls == [6]
    assert written(path) == [-3, -2, -1, 1, 2, 3]


async def test_only_the_submission_at_fault_fails(writer: Writer, path: Path) -> None:
    results = await asyncio.gather(
        writer.submit_batch(INSERTS, [1, 2]),
        writer.submit_batch(INSERTS, [3, 1]),
        writer.submit_batch(INSERTS, [4]),
        return_exceptions=True,
    )
    assert isinstance(results[1], apsw.ConstraintError)
    assert [results[0], results[2]] == [[1, 2], [4]]
    assert written(path) == [1, 2, 4]


@pytest.mark.parametrize("error", [ValueError("ours"), MemoryError()], ids=["ours", "memory"])
async def test_an_error_of_an_operation_is_its_callers(
    writer: Writer, path: Path, error: Exception
) -> None:
    with pytest.raises(type(error)):
        await writer.submit(raising(error))
    assert await writer.submit_batch(INSERTS, [1]) == [1]
    assert written(path) == [1]


async def ends_the_process(
    writer: Writer, failures: Failures, operation: Callable[[Transaction], None]
) -> tuple[str, BaseException]:
    """The failure that the operation leads to. The operation gets no answer."""
    unanswered = asyncio.ensure_future(writer.submit(operation))
    async with asyncio.timeout(PATIENCE_SECONDS):
        failure = await failures.reported
    assert not unanswered.done()
    unanswered.cancel()
    return failure


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()], ids=["exit", "interrupt"])
async def test_a_writer_that_stops_ends_the_process(
    writer: Writer, path: Path, failures: Failures, error: BaseException
) -> None:
    failure = await ends_the_process(writer, failures, raising(error))
    assert failure == ("sqlite.writer_stopped", error)
    assert written(path) == []


async def test_an_error_while_submissions_are_taken_ends_the_process(
    writer: Writer, failures: Failures
) -> None:
    unanswered = asyncio.ensure_future(writer.submit_batch(INSERTS, Uncountable()))
    async with asyncio.timeout(PATIENCE_SECONDS):
        event, error = await failures.reported
    assert (event, type(error)) == ("sqlite.writer_stopped", MemoryError)
    unanswered.cancel()


async def test_nothing_is_written_into_a_transaction_that_could_not_be_rolled_back(
    writer: Writer, connection: apsw.Connection, path: Path, failures: Failures
) -> None:
    def deny_rollback(action: int, detail: str | None, *_: str | None) -> int:
        is_rollback = action == apsw.SQLITE_TRANSACTION and detail == "ROLLBACK"
        return apsw.SQLITE_DENY if is_rollback else apsw.SQLITE_OK

    connection.authorizer = deny_rollback
    with pytest.raises(StoreUnavailable):
        await writer.submit(raising(ValueError("ours")))
    event, error = await ends_the_process(writer, failures, lambda transaction: None)
    assert (event, str(error)) == (
        "sqlite.writer_stopped",
        "a transaction could not be rolled back",
    )
    assert written(path) == []


async def test_callers_of_an_api_do_not_see_the_words_of_sqlite(writer: Writer) -> None:
    with pytest.raises(StoreUnavailable, match="near ") as refused:
        await writer.submit(lambda transaction: transaction.execute("nonsense"))
    assert "near" not in refused.value.public_message


async def test_an_error_between_commits_ends_the_process(
    writer: Writer, path: Path, hook: Hook, failures: Failures
) -> None:
    hook.error = MemoryError()
    # The answer comes from the commit before the hook, and is true.
    assert await writer.submit_batch(INSERTS, [1]) == [1]
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await failures.reported == ("sqlite.writer_stopped", hook.error)
    assert written(path) == [1]


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        (apsw.SQLITE_IOERR_FSYNC, True),
        (apsw.SQLITE_IOERR_WRITE, True),
        (apsw.SQLITE_IOERR, True),
        (apsw.SQLITE_IOERR_READ, False),
        (apsw.SQLITE_FULL, False),
        (apsw.SQLITE_BUSY, False),
    ],
)
async def test_only_errors_that_leave_open_what_is_on_disk_end_the_process(
    writer: Writer, path: Path, failures: Failures, code: int, ends: bool
) -> None:
    error = apsw.exception_for(code)
    if ends:
        failure = await ends_the_process(writer, failures, raising(error))
        assert failure == ("sqlite.storage_failed", error)
    else:
        with pytest.raises(StoreUnavailable):
            await writer.submit(raising(error))
        assert await writer.submit_batch(INSERTS, [1]) == [1]
        assert written(path) == [1]


async def test_a_batch_under_way_is_written_before_the_store_closes(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.add_namespace(Namespace("default", 16))
    timers = [make_timer(f"t{n}", execute_at=at(n)) for n in range(1_000)]
    first, second, _ = await asyncio.gather(
        create(store, *timers[:500]), create(store, *timers[500:]), store.close()
    )
    assert {result.existence for result in [*first, *second]} == {Existence.CREATED}
    await store.open()
    assert (await store.counts())[TimerStatus.PENDING] == len(timers)
    await store.close()


async def test_a_closed_store_refuses_at_once(store: SqliteStore) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable, match="the store is closed"):
        await create(store, make_timer("late"))
