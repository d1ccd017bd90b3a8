"""Several workers on one port, kept running by the process that started them."""

import asyncio
from collections.abc import Callable

import structlog

from duetime.ports.clock import Clock
from duetime.server.worker_process import Worker
from duetime.server.worker_slot import Launch, WorkerFailed, WorkerSlot

log = structlog.get_logger()


class Supervisor:
    """Starts the workers, starts those again that die, and stops them all.

    Each worker is a member of the cluster like any other process: the supervisor decides nothing
    about timers or shards, and what the workers hold is safe however it ends.
    """

    def __init__(
        self, launch: Launch, workers: int, clock: Clock, *, stop_timeout_seconds: float
    ) -> None:
        self._launch = launch
        self._alive: dict[Worker, asyncio.Task[None]] = {}
        self._slots = [
            WorkerSlot(number, self._launched, clock, stop_timeout_seconds=stop_timeout_seconds)
            for number in range(1, workers + 1)
        ]
        self._asked_to_roll = asyncio.Event()

    async def run_until(self, stopped: asyncio.Event, on_started: Callable[[], None]) -> None:
        """Keep the workers running until `stopped`; no worker is left when this returns.

        `on_started` is called once all of them serve. Raises `WorkerFailed` if one ends before
        that: nothing is gained by starting again what cannot work.
        """
        running = asyncio.create_task(self._run(on_started))
        stopping = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            running.cancel()
            stopping.cancel()
            # Nothing may start another worker once those there are have been told to stop.
            await asyncio.wait({running})
            await self._stop_all()

    def roll(self) -> None:
        """Put new processes in the place of all workers, one after the other. If a new one
        cannot start, those that are not replaced yet stay."""
        self._asked_to_roll.set()

    def kill(self) -> None:
        """End all workers at once. Safe, as any crash is."""
        for worker in self._alive:
            worker.kill()

    async def _run(self, on_started: Callable[[], None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                # The first one alone: it finds out what is wrong with settings or database, and
                # brings the schema up to date.
                first, *others = self._slots
                await first.fill()
                async with asyncio.TaskGroup() as filling:
                    for slot in others:
                        filling.create_task(slot.fill())
                for slot in self._slots:
                    group.create_task(slot.keep_filled())
                on_started()
                group.create_task(self._roll_when_asked())
        except* WorkerFailed as failures:
            raise _first_of(failures) from None

    async def _roll_when_asked(self) -> None:
        while True:
            await self._asked_to_roll.wait()
            self._asked_to_roll.clear()
            log.info("service.rolling", workers=len(self._slots))
            for slot in self._slots:
                if not await slot.replace():
                    log.error("service.roll_abandoned", advice="the workers that are left go on")
                    break
            else:
                log.info("service.rolled", workers=len(self._slots))

    def _launched(self, number: int, replaced: Worker | None) -> Worker:
        worker = self._launch(number, replaced)
        self._alive[worker] = asyncio.create_task(self._forget_when_ended(worker))
        return worker

    async def _forget_when_ended(self, worker: Worker) -> None:
        await worker.ended()
        del self._alive[worker]

    async def _stop_all(self) -> None:
        for worker in self._alive:
            worker.stop()
        await asyncio.gather(*self._alive.values())


def _first_of(group: BaseExceptionGroup[WorkerFailed]) -> WorkerFailed:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, WorkerFailed)
    return error
