"""The first page after signing in, for a browser that has kept nothing."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, CDPSession, expect

from tests.browser.ui.visit import visiting
from tests.real_server.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

MAX_BYTES = 150_000
"""Bytes on the wire of the first page: heads and bodies of all answers, compressed or not."""


class Wire:
    """Counts what a tab receives, and keeps the addresses it asks."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._urls: dict[str, str] = {}
        self.bytes: dict[str, float] = {}
        session.on("Network.requestWillBeSent", self._ask)
        session.on("Network.responseReceived", self._head)
        session.on("Network.dataReceived", self._body)
        session.on("Network.loadingFinished", self._finish)

    async def start(self) -> None:
        await self._session.send("Network.enable")
        await self._session.send("Network.setCacheDisabled", {"cacheDisabled": True})

    @property
    def hosts(self) -> set[str]:
        return {urlsplit(url).netloc for url in self._urls.values()}

    def _ask(self, event: dict[str, Any]) -> None:
        self._urls[event["requestId"]] = event["request"]["url"]

    def _head(self, event: dict[str, Any]) -> None:
        assert not event["response"].get("fromDiskCache"), event["response"]["url"]
        self._add(event, event["response"]["encodedDataLength"])

    def _body(self, event: dict[str, Any]) -> None:
        self._add(event, event["encodedDataLength"])

    def _finish(self, event: dict[str, Any]) -> None:
        # The whole answer, which some parts may have left out.
        url = self._urls[event["requestId"]]
        self.bytes[url] = max(self.bytes.get(url, 0), event["encodedDataLength"])

    def _add(self, event: dict[str, Any], count: float) -> None:
        url = self._urls[event["requestId"]]
        self.bytes[url] = self.bytes.get(url, 0) + count


async def test_the_first_page_is_small_and_asks_nobody_else(
    browser: Browser, seeded: ServerProcess
) -> None:
    async with visiting(browser, seeded.url) as visit:
        wire = Wire(await visit.page.context.new_cdp_session(visit.page))
        await wire.start()
        await visit.open("/ui")
        await expect(visit.page.get_by_text("Live", exact=True)).to_be_visible()
        assert wire.hosts == {urlsplit(seeded.url).netloc}
        paths = {urlsplit(url).path.rpartition("/")[2] for url in wire.bytes}
        assert {"ui", "shell.js", "live.js", "base.css", "events"} <= paths
        assert all(wire.bytes.values()), wire.bytes
        assert sum(wire.bytes.values()) < MAX_BYTES, wire.bytes
        assert not visit.faults
