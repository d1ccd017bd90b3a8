"""A real Chromium, and a server whose pages it shows. Playwright drives the browser that is
installed on the machine; without one, tests are skipped, and where CI is set, they fail."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from tests.brokers.broker_process import skip_without
from tests.real_server.server_process import API_KEY, ServerProcess

NAMES = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
MISSING = "Chromium is missing: apt-get install chromium, or install Google Chrome"

# The browser's own services would send packets beyond this machine.
ONLY_LOOPBACK = ("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-proxy-server")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    program = skip_without(Path(found) if found else None, MISSING)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=ONLY_LOOPBACK)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A tab with the key. Errors of scripts, and of the content security policy, fail the test."""
    context = await browser.new_context(extra_http_headers={"x-api-key": API_KEY})
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text) if "Content Security" in message.text else None
        ),
    )
    yield page
    await context.close()
    assert not problems
