"""The supervisor: workers that die, fail to start, or are replaced."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from duetime.server.supervisor import Supervisor
from duetime.server.worker_process import Ending, Worker
from duetime.server.worker_slot import (
    LONG_RUN_SECONDS,
    LONGEST_PAUSE_SECONDS,
    RestartBackoff,
    WorkerFailed,
)
from duetime.testing import LoopClock, on_virtual_time

STOP_TIMEOUT_SECONDS = 20.0
DATABASE_AWAY = Ending(1, "the database is away")


class FakeWorker:
    """Is ready after `start_seconds` or fails then; stops when told to, unless it hangs."""

    def __init__(
        self,
        number: int,
        pid: int,
        *,
        start_seconds: float = 1.0,
        failure: Ending | None = None,
        hangs: bool = False,
    ) -> None:
        self.number = number
        self.pid = pid
        self.started_at = asyncio.get_running_loop().time()
        self._failure = failure
        self._hangs = hangs
        self._ready_or_ended = asyncio.Event()
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(start_seconds, self._become_ready)

    @property
    def is_alive(self) -> bool:
        return not self._ending.done()

    def end(self, status: int, error: str | None = None) -> None:
        if self.is_alive:
            self._ending.set_result(Ending(status, error))
            self._ready_or_ended.set()

    def _become_ready(self) -> None:
        if self._failure is not None:
            self.end(self._failure.status, self._failure.error)
        self._ready_or_ended.set()

    async def ready(self) -> bool:
        await self._ready_or_ended.wait()
        return self.is_alive

    async def ended(self) -> Ending:
        return await asyncio.shield(self._ending)

    def stop(self, *, drains: bool) -> None:
        if not self._hangs:
            asyncio.get_running_loop().call_later(0.1, self.end, 0)

    def kill(self) -> None:
        self.end(-9)


Make = Callable[[int, int], FakeWorker]


class Bench:
    """A supervisor of fake workers. `make` may be replaced while it runs."""

    def __init__(self, workers: int = 2, make: Make = FakeWorker) -> None:
        self.make = make
        self.launched: list[FakeWorker] = []
        self.launched_alone: list[bool] = []
        self.clock = LoopClock()
        self.stopped = asyncio.Event()
        self.started_at: float | None = None
        self.supervisor = Supervisor(
            self._launch, workers, self.clock, stop_timeout_seconds=STOP_TIMEOUT_SECONDS
        )
        self._running: asyncio.Task[None]

    async def __aenter__(self) -> "Bench":
        self._running = asyncio.create_task(self.run())
        await self.clock.sleep(5)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stopped.set()
        await self._running
        assert self.alive() == []

    async def run(self) -> None:
        await self.supervisor.run_until(self.stopped, self._note_start)

    def alive(self) -> list[int]:
        """The pids of the living workers."""
        return [worker.pid for worker in self.launched if worker.is_alive]

    def _launch(self, number: int, replaced: Worker | None, is_alone: bool) -> FakeWorker:
        worker = self.make(number, 100 + len(self.launched))
        self.launched_alone.append(is_alone)
        self.launched.append(worker)
        return worker

    def _note_start(self) -> None:
        self.started_at = self.clock.monotonic()


def failing(number: int, pid: int) -> FakeWorker:
    return FakeWorker(number, pid, failure=DATABASE_AWAY)


@on_virtual_time
async def test_the_start_is_announced_once_all_are_ready() -> None:
    async with Bench(workers=4) as bench:
        assert [worker.number for worker in bench.launched] == [1, 2, 3, 4]
        assert [worker.started_at for worker in bench.launched] == [0, 1, 1, 1]
        assert bench.started_at == 2


@on_virtual_time
async def test_a_worker_that_dies_is_started_again_at_once() -> None:
    async with Bench() as bench:
        await bench.clock.sleep(LONG_RUN_SECONDS)
        with capture_logs() as logs:
            died_at = bench.clock.monotonic()
            bench.launched[1].end(-9)
            await bench.clock.sleep(2)
        assert bench.alive() == [100, 102]
        assert (bench.launched[2].number, bench.launched[2].started_at) == (2, died_at)
        died, started = logs
        assert (died["event"], died["worker"], died["pid"]) == ("worker.died", 2, 101)
        assert (died["signal"], died["restart_in_seconds"]) == ("SIGKILL", 0)
        assert (started["event"], started["worker"], started["pid"]) == ("worker.started", 2, 102)


@on_virtual_time
async def test_a_worker_that_keeps_failing_is_restarted_less_and_less_often() -> None:
    async with Bench() as bench:
        bench.make = failing
        with capture_logs() as logs:
            bench.launched[0].end(1)
            await bench.clock.sleep(300)
        starts = [worker.started_at for worker in bench.launched[2:]]
        pauses = [later - earlier - 1 for earlier, later in pairwise(starts)]
        assert pauses[:7] == [0.5, 1, 2, 4, 8, 16, 30]
        assert set(pauses[7:]) == {30}
        assert bench.alive() == [101], "the other worker has nothing to do with it"
        assert logs[1]["error"] == "the database is away"
        bench.make = FakeWorker
        await bench.clock.sleep(60)
        assert len(bench.alive()) == 2


@pytest.mark.parametrize("failing_number", [1, 2, 3])
def test_a_first_start_that_fails_stops_everything(failing_number: int) -> None:
    @on_virtual_time
    async def run() -> None:
        bench = Bench(
            workers=3,
            make=lambda number, pid: FakeWorker(
                number, pid, failure=Ending(2, "wrong") if number == failing_number else None
            ),
        )
        with pytest.raises(WorkerFailed, match=r"^wrong$") as caught:
            await bench.run()
        assert caught.value.status == 2
        assert bench.alive() == []
        assert bench.started_at is None
        assert len(bench.launched) == (1 if failing_number == 1 else 3)

    run()


@pytest.mark.parametrize(
    ("ending", "message", "status"),
    [
        (Ending(-11), "worker 1 was ended by SIGSEGV before it was ready", 1),
        (Ending(3), "worker 1 ended with status 3 before it was ready", 3),
        (Ending(0), "worker 1 ended with status 0 before it was ready", 1),
    ],
)
def test_a_failure_without_a_message_is_described(
    ending: Ending, message: str, status: int
) -> None:
    failed = WorkerFailed(1, ending)
    assert (failed.message, failed.status) == (message, status)


@on_virtual_time
async def test_a_stop_during_the_start_leaves_no_worker_behind() -> None:
    bench = Bench(workers=3)
    running = asyncio.create_task(bench.run())
    await bench.clock.sleep(1.5)
    assert len(bench.alive()) == 3
    bench.stopped.set()
    await running
    assert bench.alive() == []
    assert bench.started_at is None


@pytest.mark.parametrize("steps", range(8))
def test_a_stop_while_a_worker_restarts_leaves_no_worker_behind(steps: int) -> None:
    @on_virtual_time
    async def run() -> None:
        async with Bench() as bench:
            bench.launched[0].end(-9)
            for _ in range(steps):
                ready = asyncio.Event()
                asyncio.get_running_loop().call_soon(ready.set)
                await ready.wait()

    run()


@on_virtual_time
async def test_a_stop_waits_for_the_slowest_and_a_kill_does_not() -> None:
    bench = Bench(make=lambda number, pid: FakeWorker(number, pid, hangs=number == 2))
    running = asyncio.create_task(bench.run())
    await bench.clock.sleep(5)
    bench.stopped.set()
    await bench.clock.sleep(100)
    assert (bench.alive(), running.done()) == ([101], False)
    bench.supervisor.kill()
    await running


@on_virtual_time
async def test_a_roll_replaces_workers_one_by_one_and_never_has_fewer() -> None:
    async with Bench(workers=3) as bench:
        with capture_logs() as logs:
            bench.supervisor.roll()
            while bench.alive() != [103, 104, 105]:
                assert len(bench.alive()) >= 3
                await bench.clock.sleep(0.05)
        assert [worker.number for worker in bench.launched[3:]] == [1, 2, 3]
        assert "worker.died" not in {entry["event"] for entry in logs}
        replaced = [entry["replaces"] for entry in logs if entry["event"] == "worker.started"]
        assert replaced == [100, 101, 102]


@on_virtual_time
async def test_a_roll_that_cannot_start_new_workers_keeps_the_old_ones() -> None:
    async with Bench(workers=3) as bench:
        bench.make = failing
        with capture_logs() as logs:
            bench.supervisor.roll()
            await bench.clock.sleep(60)
        assert bench.alive() == [100, 101, 102]
        assert len(bench.launched) == 4
        assert [entry["event"] for entry in logs] == [
            "service.rolling",
            "worker.not_replaced",
            "service.roll_abandoned",
        ]


@on_virtual_time
async def test_a_worker_that_hangs_during_its_replacement_is_killed() -> None:
    async with Bench(make=lambda number, pid: FakeWorker(number, pid, hangs=pid == 100)) as bench:
        bench.supervisor.roll()
        await bench.clock.sleep(STOP_TIMEOUT_SECONDS)
        assert 100 in bench.alive()
        await bench.clock.sleep(5)
        assert bench.alive() == [102, 103]


@on_virtual_time
async def test_a_worker_that_dies_while_its_successor_starts_is_replaced_once() -> None:
    async with Bench() as bench:
        bench.supervisor.roll()
        await bench.clock.sleep(0.5)
        bench.launched[0].end(-9)
        await bench.clock.sleep(10)
        assert bench.alive() == [102, 103]


@on_virtual_time
async def test_a_stop_during_a_roll_leaves_no_worker_behind() -> None:
    async with Bench() as bench:
        bench.supervisor.roll()
        await bench.clock.sleep(0.5)
        assert len(bench.alive()) == 3


def test_a_long_run_makes_the_next_restart_immediate_again() -> None:
    backoff = RestartBackoff()
    short = [backoff.pause_seconds(ran_seconds=1) for _ in range(1_100)]
    assert short[:3] == [0, 0.5, 1]
    assert max(short) == short[-1] == LONGEST_PAUSE_SECONDS
    assert backoff.pause_seconds(ran_seconds=LONG_RUN_SECONDS) == 0
    assert backoff.pause_seconds(ran_seconds=1) == 0.5


@on_virtual_time
async def test_only_a_worker_that_is_alone_is_told_so() -> None:
    async with Bench() as bench:
        bench.supervisor.roll()
        await bench.clock.sleep(10)
        for worker in bench.launched:
            worker.kill()
        await bench.clock.sleep(10)
        # The first start, the roll, and the restart of both.
        assert bench.launched_alone == [True, False, False, False, True, False]
