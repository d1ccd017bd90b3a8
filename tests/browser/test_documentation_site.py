"""The site of the documentation in a browser that reaches nothing but the site itself."""

import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.documentation_site import build_site
from tests.polling import PATIENCE_SECONDS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PATIENCE_MS = PATIENCE_SECONDS * 1_000
NARROW, WIDE = (390, 844), (1400, 900)
DIAGRAM = "architecture/claiming-and-settling/"


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("site")
    built = build_site(directory)
    assert built.returncode == 0, built.stdout + built.stderr
    handler = partial(SilentHandler, directory=directory / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest_asyncio.fixture(loop_scope="module", params=["light", "dark"])
async def page(
    browser: Browser, site_url: str, request: pytest.FixtureRequest
) -> AsyncIterator[Page]:
    """A page of the site. It has no faults, and asks no other host for anything."""
    context = await browser.new_context(
        color_scheme=request.param, viewport={"width": WIDE[0], "height": WIDE[1]}
    )
    page = await context.new_page()
    faults: list[str] = []
    requested: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: requested.append(request.url))
    page.set_default_timeout(PATIENCE_MS)
    yield page
    await context.close()
    assert faults == []
    assert [url for url in requested if not url.startswith(site_url)] == []


async def test_search_finds_a_word_and_leads_to_its_page(page: Page, site_url: str) -> None:
    await page.goto(site_url)
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("combobox").fill("circuit breaker")
    hit = page.get_by_role("option", name="A circuit breaker narrows").first
    await expect(hit).to_be_visible(timeout=PATIENCE_MS)
    await hit.click()
    await expect(page.locator("h1")).to_contain_text("0013", timeout=PATIENCE_MS)


async def test_diagrams_are_drawn(page: Page, site_url: str) -> None:
    await page.goto(site_url + DIAGRAM)
    # The theme replaces the text of a diagram by a drawing in a closed shadow tree.
    drawing = page.locator("div.mermaid")
    await expect(drawing).to_have_count(1, timeout=PATIENCE_MS)
    box = await drawing.bounding_box()
    assert box is not None
    assert box["height"] > 100


async def test_nothing_is_wider_than_a_narrow_screen(page: Page, site_url: str) -> None:
    await page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    for path in ("", DIAGRAM, "reference/configuration/", "project/examples/remind_me.py/"):
        await page.goto(site_url + path)
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= NARROW[0], path
