"""The page of a timer in front of a service on a memory store."""

from urllib.parse import quote

from duetime.api.http.caller import Caller
from duetime.domain.security.access import EVERYTHING
from duetime.web.pages.timer.timer_page import TimerPage
from duetime.web.rendering.view import View
from duetime.web.request import Fields, Request
from tests.unit.api.asgi_client import API_KEY, Reply
from tests.unit.web.page_bench import PageBench

LONG = '{"z":12345678901234567890.12345678901234567890,"a":[1E+5]}'


class TimerBench(PageBench):
    async def open(self) -> "TimerBench":
        await super().open()
        self.serve(*TimerPage(self.services).endpoints())
        return self

    async def show(self, id: str = "one", query: str = "", key: str = API_KEY) -> Reply:
        return await self.page(path_to(id) + query, key)

    async def act(self, action: str, id: str = "one", key: str = API_KEY, **fields: str) -> Reply:
        return await self.send(f"{path_to(id)}/{action}", list(fields.items()), key)

    async def check(self, id: str = "one", **fields: str) -> Reply:
        given = list(fields.items())
        return await self.send(f"{path_to(id)}/check", given, accept="application/json")

    async def live_view(self, id: str = "one") -> View:
        """The page as it is made again while it is open."""
        found = self.web.find_live(path_to(id))
        assert found is not None
        endpoint, scope = found
        view = await endpoint.handle(
            Request(
                caller=Caller(EVERYTHING),
                target=path_to(id),
                path=scope["path_params"],
                query=Fields(),
                now=self.clock.now(),
            )
        )
        assert isinstance(view, View)
        return view

    async def create_long(self, id: str = "one") -> None:
        """A timer whose payload has a number that no float can hold."""
        body = (
            f'{{"id":"{id}","executeAt":"2030-01-01T00:00:10Z",'
            f'"callbackUrl":"https://example.com/due","payload":{LONG}}}'
        )
        reply = await self.request("POST", "/api/v1/timers", body.encode())
        assert reply.status == 200, reply.content


def path_to(id: str, namespace: str = "default") -> str:
    return f"/ui/timers/{quote(namespace, safe='')}/{quote(id, safe='')}"
