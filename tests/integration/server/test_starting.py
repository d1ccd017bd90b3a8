"""A service whose start takes long, behind the server that runs it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
import pytest

from duetime.listener import AddressUnavailable, bind, take_connections, url_of
from duetime.server.server import serve_until
from tests.polling import PATIENCE_SECONDS, poll
from tests.unit.api.asgi_client import ApiBench


class SlowService:
    """Opens or starts only when it is let."""

    def __init__(self) -> None:
        self.bench = ApiBench()
        self.app = self.bench.app
        self.app.lifecycle.is_started = False
        self.may_open = asyncio.Event()
        self.may_start = asyncio.Event()
        self.events: list[str] = []

    async def open(self) -> None:
        try:
            await self.may_open.wait()
        except asyncio.CancelledError:
            self.events.append("cancelled")
            raise
        await self.bench.open()
        self.events.append("opened")

    async def start(self) -> None:
        await self.may_start.wait()
        self.app.lifecycle.is_started = True
        self.events.append("started")

    def drain(self) -> None:
        self.app.drain()
        self.events.append("drained")

    async def stop(self) -> None:
        self.events.append("stopped")


class Serving:
    def __init__(self, service: SlowService, *, answers_early: bool) -> None:
        listener = bind("127.0.0.1", 0)
        self.client = httpx.AsyncClient(base_url=url_of(listener), trust_env=False)
        self.stopped = asyncio.Event()
        self.ended = asyncio.create_task(
            serve_until(
                self.stopped, service, listener, grace_seconds=1, answers_early=answers_early
            )
        )

    async def status(self, path: str) -> int:
        """0 if the connection is refused."""
        try:
            return (await self.client.get(path)).status_code
        except httpx.ConnectError:
            return 0


@contextlib.asynccontextmanager
async def serving(service: SlowService, *, answers_early: bool = True) -> AsyncIterator[Serving]:
    serving = Serving(service, answers_early=answers_early)
    async with asyncio.timeout(PATIENCE_SECONDS), serving.client:
        yield serving
        serving.stopped.set()
        await serving.ended


async def test_probes_are_answered_while_the_store_or_the_start_hangs() -> None:
    service = SlowService()
    async with serving(service) as server:
        await poll(lambda: server.status("/livez"), lambda status: status == 200)
        assert await server.status("/readyz") == 503
        assert (await server.client.get("/readyz")).json()["message"] == "starting"
        service.may_open.set()
        assert await server.status("/livez") == 200
        service.may_start.set()
        await poll(lambda: server.status("/readyz"), lambda status: status == 200)
    assert service.events == ["opened", "started", "drained", "stopped"]


async def test_a_start_that_hangs_behind_a_quick_store_is_alive() -> None:
    service = SlowService()
    service.may_open.set()
    async with serving(service) as server:
        await poll(lambda: server.status("/livez"), lambda status: status == 200)
        assert service.events == ["opened"]
        service.may_start.set()


@pytest.mark.parametrize("is_served", [False, True], ids=["at once", "later"])
async def test_a_stop_does_not_wait_for_a_store_that_hangs(is_served: bool) -> None:
    service = SlowService()
    async with serving(service) as server:
        if is_served:
            await poll(lambda: server.status("/livez"), lambda status: status == 200)
    assert service.events == ["cancelled"]


async def test_a_worker_that_is_not_alone_leaves_connections_to_others_until_it_serves() -> None:
    service, lonely = SlowService(), SlowService()
    async with serving(service, answers_early=False) as server, serving(lonely) as other:
        await poll(lambda: other.status("/livez"), lambda status: status == 200)
        assert await server.status("/livez") == 0
        service.may_open.set()
        service.may_start.set()
        await poll(lambda: server.status("/readyz"), lambda status: status == 200)


async def test_an_address_that_is_taken_ends_a_start_that_hangs() -> None:
    service = SlowService()
    with contextlib.closing(bind("127.0.0.1", 0)) as other:
        listener = bind("127.0.0.1", other.getsockname()[1])
        take_connections(other, backlog=1)
        with pytest.raises(AddressUnavailable):
            await serve_until(asyncio.Event(), service, listener, grace_seconds=1)
    assert service.events == ["cancelled"]
