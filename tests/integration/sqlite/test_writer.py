"""The writer thread: group commit, and callers that are never left waiting."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from duetime.domain.errors import StoreUnavailable
from duetime.domain.namespace import Namespace
from duetime.domain.timer import TimerStatus
from duetime.ports.store import Existence
from duetime.stores.sqlite import SqliteStore
from duetime.stores.sqlite.connections import Transaction, connect
from duetime.stores.sqlite.writer import BatchOperation, Writer
from duetime.testing.store_contract.steps import at, create
from duetime.testing.timers import make_timer

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


@pytest.fixture
async def writer(connection: apsw.Connection, hook: Hook) -> AsyncIterator[Writer]:
    writer = Writer(connection, hook)
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


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt()], ids=["exit", "interrupt"])
async def test_a_writer_that_stops_leaves_nobody_waiting(
    writer: Writer, path: Path, error: BaseException
) -> None:
    with capture_logs() as logs:
        async with asyncio.timeout(10):
            results = await asyncio.gather(
                writer.submit(raising(error)),
                *(writer.submit_batch(INSERTS, [n]) for n in range(500)),
                return_exceptions=True,
            )
    assert {type(result) for result in results} == {StoreUnavailable}
    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("sqlite.writer_stopped", "critical")
    ]
    with pytest.raises(StoreUnavailable, match=r"writer stopped after an error.*restart"):
        await writer.submit_batch(INSERTS, [1])
    assert written(path) == []


async def test_an_error_while_submissions_are_taken_leaves_nobody_waiting(
    writer: Writer, path: Path
) -> None:
    with capture_logs() as logs:
        async with asyncio.timeout(10):
            results = await asyncio.gather(
                writer.submit_batch(INSERTS, Uncountable()),
                writer.submit_batch(INSERTS, [1]),
                return_exceptions=True,
            )
    assert {type(result) for result in results} == {StoreUnavailable}
    assert [line["event"] for line in logs] == ["sqlite.writer_stopped"]
    assert written(path) == []


async def test_nothing_is_written_into_a_transaction_that_could_not_be_rolled_back(
    writer: Writer, connection: apsw.Connection, path: Path
) -> None:
    def deny_rollback(action: int, detail: str | None, *_: str | None) -> int:
        is_rollback = action == apsw.SQLITE_TRANSACTION and detail == "ROLLBACK"
        return apsw.SQLITE_DENY if is_rollback else apsw.SQLITE_OK

    connection.authorizer = deny_rollback
    with capture_logs() as logs:
        with pytest.raises(StoreUnavailable):
            await writer.submit(raising(ValueError("ours")))
        with pytest.raises(StoreUnavailable, match=r"could not be rolled back"):
            await writer.submit_batch(SINGLE_INSERTS, [1])
    assert [line["event"] for line in logs] == ["sqlite.writer_stopped"]
    assert written(path) == []


async def test_an_error_between_commits_stops_the_writer_and_is_reported(
    writer: Writer, path: Path, hook: Hook
) -> None:
    assert await writer.submit_batch(INSERTS, [1]) == [1]
    hook.error = MemoryError()
    with capture_logs() as logs:
        async with asyncio.timeout(10):
            while not logs:
                # The first answers come from the commit before the hook, and are true.
                await asyncio.gather(
                    writer.submit_batch(BatchOperation(insert_all), []), return_exceptions=True
                )
    assert [line["event"] for line in logs] == ["sqlite.writer_stopped"]
    with pytest.raises(StoreUnavailable, match="MemoryError"):
        await writer.submit_batch(INSERTS, [2])
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
