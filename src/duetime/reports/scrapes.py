"""Scrapes: all metrics of all workers as text, for whoever asks."""

import asyncio

from duetime.event_loop import next_turn
from duetime.server.worker_metrics import Samples, WorkerMetrics
from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS
from duetime.telemetry.metrics.catalogue.process import WORKERS, WORKERS_ANSWERING
from duetime.telemetry.metrics.exposition import Format, exposition
from duetime.telemetry.metrics.recording import Gauge
from duetime.telemetry.metrics.registry import Registry


class Scrapes:
    """Makes one text at a time in each format; all who ask meanwhile get the same one. The work is
    done in slices, so that timers fire on time while thousands of series are shown."""

    def __init__(self, registry: Registry, workers: WorkerMetrics | None = None) -> None:
        self._registry = registry
        self._workers = workers
        self._answering = 1
        count = 1 if workers is None else workers.count
        # Whichever worker is asked tells the same, so the series have no label of a worker.
        self._of_all = Registry()
        self._of_all.add([Gauge(WORKERS, lambda: [((), count)])])
        self._of_all.add([Gauge(WORKERS_ANSWERING, lambda: [((), self._answering)])])
        self._under_way: dict[Format, asyncio.Task[str]] = {}

    async def scrape(self, form: Format) -> str:
        task = self._under_way.get(form)
        if task is None:
            task = self._under_way[form] = asyncio.create_task(self._render(form))
            task.add_done_callback(lambda _: self._under_way.pop(form))
        # Not cancelled with one of those who wait for it.
        return await asyncio.shield(task)

    async def listen(self) -> None:
        """Answer the other workers, if there are any."""
        if self._workers is not None:
            await self._workers.listen(self._samples)

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    async def _render(self, form: Format) -> str:
        others: list[Samples] = []
        if self._workers is not None:
            answers = await self._workers.samples_of_others(form)
            others = [answer for answer in answers if answer is not None]
            self._answering = 1 + len(others)
        of_all = self._of_all.samples(form)
        return exposition(ALL_METRICS, [of_all, await self._samples(form), *others], form)

    async def _samples(self, form: Format) -> dict[str, str]:
        samples = {}
        for name, lines in self._registry.each(form):
            samples[name] = lines
            await next_turn()
        return samples
