"""The page of timers in front of a service on a memory store."""

import asyncio
import re
from html import unescape
from urllib.parse import urlencode

from starlette.types import Message

from duetime.domain.defaults import DEFAULT_CALLBACK_TIMEOUT_MS
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Timer
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer
from duetime.service.searching.searching import Searching
from duetime.service.turns import Turns
from duetime.testing.store_contract.steps import create
from duetime.web.app import WebApp
from duetime.web.pages.timers.export import Exports
from duetime.web.pages.timers.timers_page import TimersPage
from duetime.web.rendering.renderer import Renderer
from tests.unit.api.asgi_client import API_KEY, ApiBench, Reply, call

_ROW = re.compile(r'<tr data-key="([^"]*)"')
_TAGS = re.compile(r"<[^>]*>")
_SPACE = re.compile(r"\s+")


class TimersBench(ApiBench):
    async def open(self) -> "TimersBench":
        await super().open()
        self.client_gone = asyncio.Event()
        turns = Turns(self.clock)
        searching = Searching(self.store.searches, CallbackSealer(Sealer(())), self.clock, turns)
        exports = Exports(searching, turns, DEFAULT_CALLBACK_TIMEOUT_MS)
        self.page = TimersPage(searching, exports, self.namespaces, turns)
        self.web = WebApp(
            self.page.endpoints(),
            self.app.authentication,
            self.app.auditing,
            self.app.lifecycle,
            self.clock,
            Renderer(turns),
            max_body_bytes=10_000,
        )
        return self

    async def add(self, *timers: Timer) -> None:
        for name in {timer.key.namespace for timer in timers}:
            await self.store.add_namespace(Namespace(name, 16))
        await self.namespaces.refresh()
        await create(self.store, *timers)

    async def get(self, path: str = "/ui/timers", key: str = API_KEY, **query: str) -> Reply:
        target = f"{path}?{urlencode(query)}" if query else path
        return await call(self.web, "GET", target, headers=[(b"x-api-key", key.encode())])

    async def export(self, key: str = API_KEY, **query: str) -> tuple[int, bytes]:
        """The status and the content of a streamed answer, until `client_gone`."""
        messages: list[Message] = []

        async def receive() -> Message:
            await self.client_gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            messages.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/ui/timers/export",
            "raw_path": b"/ui/timers/export",
            "query_string": urlencode(query).encode(),
            "headers": [(b"x-api-key", key.encode())],
            "scheme": "http",
            "root_path": "",
            "client": None,
        }
        await self.web(scope, receive, send)
        start, *bodies = messages
        return start["status"], b"".join(each["body"] for each in bodies)


def rows_of(reply: Reply) -> list[str]:
    """The namespaces and ids of the timers on the page."""
    return [unescape(key) for key in _ROW.findall(reply.content.decode())]


def words_of(reply: Reply) -> str:
    return _SPACE.sub(" ", unescape(_TAGS.sub(" ", reply.content.decode())))


def link_of(reply: Reply, rel: str) -> str | None:
    found = re.search(rf'rel="{rel}" href="([^"]*)"', reply.content.decode())
    return None if found is None else unescape(found[1])
