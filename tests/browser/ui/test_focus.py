"""The focus is always seen and never caught, on every page."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.ui.focus_walk import walk
from tests.browser.ui.seeding import PAGES
from tests.browser.ui.visit import DESKTOP, PHONE, visiting
from tests.real_server.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize("path", PAGES)
async def test_the_focus_is_seen_on_its_way_through_a_page(
    browser: Browser, seeded: ServerProcess, path: str
) -> None:
    async with visiting(browser, seeded.url) as visit:
        faults = {}
        for size in (DESKTOP, PHONE):
            await visit.page.set_viewport_size(size)
            await visit.open(path)
            if found := await walk(visit.page):
                faults[size["width"]] = found
        assert not faults
        assert not visit.faults


async def test_the_frame_can_be_skipped(browser: Browser, seeded: ServerProcess) -> None:
    async with visiting(browser, seeded.url) as visit:
        page = visit.page
        await visit.open("/ui/timers")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        assert await page.evaluate("Boolean(document.activeElement.closest('main'))")
