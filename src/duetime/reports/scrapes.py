"""Scrapes: all metrics as text, for whoever asks."""

import asyncio

from duetime.event_loop import next_turn
from duetime.telemetry.metrics.exposition import Format
from duetime.telemetry.metrics.registry import Registry


class Scrapes:
    """Makes one text at a time in each format; all who ask meanwhile get the same one. The work is
    done in slices, so that timers fire on time while thousands of series are shown."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._under_way: dict[Format, asyncio.Task[str]] = {}

    async def scrape(self, form: Format) -> str:
        task = self._under_way.get(form)
        if task is None:
            task = self._under_way[form] = asyncio.create_task(self._render(form))
            task.add_done_callback(lambda _: self._under_way.pop(form))
        # Not cancelled with one of those who wait for it.
        return await asyncio.shield(task)

    async def _render(self, form: Format) -> str:
        await next_turn()
        return self._registry.render(form)
