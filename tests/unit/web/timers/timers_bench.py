"""The page of timers in front of a service on a memory store."""

import asyncio
import re
from html import unescape
from urllib.parse import urlencode

from duetime.domain.defaults import DEFAULT_CALLBACK_TIMEOUT_MS
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer
from duetime.service.turns import Turns
from duetime.testing.store_contract.steps import create
from duetime.web.pages.timers.export import Exports
from duetime.web.pages.timers.timers_page import TimersPage
from tests.unit.api.asgi_client import API_KEY, Reply
from tests.unit.web.page_bench import PageBench
from tests.unit.web.streaming import streamed

_ROW = re.compile(r'<tr data-key="([^"]*)"')


class TimersBench(PageBench):
    async def open(self) -> "TimersBench":
        await super().open()
        self.client_gone = asyncio.Event()
        searching, turns = self.services.searching, Turns(self.clock)
        exports = Exports(searching, turns, DEFAULT_CALLBACK_TIMEOUT_MS)
        self.serve(*TimersPage(searching, exports, self.namespaces, turns).endpoints())
        return self

    async def add(self, *timers: Timer) -> None:
        for name in {timer.key.namespace for timer in timers}:
            await self.store.add_namespace(Namespace(name, 16))
        await self.namespaces.refresh()
        await create(self.store, *timers)

    async def get(self, path: str = "/ui/timers", key: str = API_KEY, **query: str) -> Reply:
        return await self.page(f"{path}?{urlencode(query)}" if query else path, key)

    async def export(self, key: str = API_KEY, **query: str) -> tuple[int, bytes]:
        """The status and the content of a streamed answer, until `client_gone`."""
        headers = [(b"x-api-key", key.encode())]
        target = f"/ui/timers/export?{urlencode(query)}"
        return await streamed(self.web, target, headers, self.client_gone)


def rows_of(reply: Reply) -> list[str]:
    """The namespaces and ids of the timers on the page."""
    return [unescape(key) for key in _ROW.findall(reply.content.decode())]


def link_of(reply: Reply, rel: str) -> str | None:
    found = re.search(rf'rel="{rel}" href="([^"]*)"', reply.content.decode())
    return None if found is None else unescape(found[1])
