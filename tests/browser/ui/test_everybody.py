"""Every page for everybody: judged by axe in both themes, on a phone and on a desktop."""

from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser

from tests.browser.ui.seeding import ABSENT, PAGES
from tests.browser.ui.visit import DESKTOP, PHONE, Visit, visiting
from tests.real_server.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

# Everything that axe knows to be wrong, also what is only good practice.
RULES: dict[str, Any] = {"resultTypes": ["violations"]}

CHANGE_THEME = "theme => document.documentElement.dataset.theme = theme"


async def judged(visit: Visit) -> list[str]:
    """The violations that axe finds on the page, each with the elements concerned."""
    results = await Axe().run(visit.page, options=RULES)
    return [
        f"{violation['id']}: {[node['html'][:160] for node in violation['nodes'][:4]]}"
        for violation in results.response["violations"]
    ]


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_suits_everybody(browser: Browser, seeded: ServerProcess, path: str) -> None:
    async with visiting(browser, seeded.url) as visit:
        assert await visit.open(path) == (404 if path in ABSENT else 200)
        assert await visit.page.locator("h1").count() == 1
        faults: dict[str, object] = {}
        for size in (DESKTOP, PHONE):
            await visit.page.set_viewport_size(size)
            if await visit.is_wider_than_the_screen():
                faults[f"too wide for {size['width']}"] = True
            for theme in ("light", "dark"):
                await visit.page.evaluate(
                    "theme => document.documentElement.dataset.theme = theme", theme
                )
                if found := await judged(visit):
                    faults[f"{theme} {size['width']}"] = found
        assert not faults
        assert not visit.faults


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_signing_in_suits_everybody(
    browser: Browser, seeded: ServerProcess, theme: Any
) -> None:
    for size in (DESKTOP, PHONE):
        context = await browser.new_context(
            viewport=size, color_scheme=theme, reduced_motion="reduce"
        )
        visit = Visit(await context.new_page(), seeded.url)
        await visit.open("/ui")
        await visit.page.wait_for_url("**/ui/sign-in?next=*")
        assert await judged(visit) == []
        assert not await visit.is_wider_than_the_screen()
        assert not visit.faults
        await context.close()
