"""The overview moves while timers fire, in a real browser."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

COUNT = 200

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


@pytest_asyncio.fixture(loop_scope="module")
async def own_server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context(extra_http_headers={"x-api-key": API_KEY})
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    yield page
    await context.close()
    assert not problems


async def create(server: ServerProcess, url: str, delay_ms: float, prefix: str = "t") -> None:
    due_at = in_ms(delay_ms)
    timers = [v1_body(f"{prefix}{number}", url, due_at) for number in range(COUNT)]
    async with server.client() as api:
        answer = await api.post(f"{TIMERS}/batch", json={"timers": timers})
        assert answer.status_code == 200, answer.text


async def test_the_overview_moves_while_timers_fire(own_server: ServerProcess, page: Page) -> None:
    async with CallbackReceiver() as receiver:
        receiver.reaction = Answer(body=b'{"ok":true}')
        await page.goto(f"{own_server.url}/ui")
        await expect(page.get_by_text("All is well.")).to_be_visible()
        await expect(page.get_by_role("link", name="See a timer fire")).to_be_visible()
        pending = page.get_by_role("link", name=re.compile("pending"))
        completed = page.get_by_role("link", name=re.compile("completed"))
        await expect(pending).to_have_text(re.compile(r"^\s*0\b"))
        chart = page.get_by_role("img", name=re.compile("Fired per second"))
        before = await chart.get_attribute("aria-label")

        await create(own_server, receiver.url, 8_000)

        due = page.get_by_role("img", name=re.compile(f"{COUNT} in all"))
        await expect(due).to_be_visible()
        await expect(completed).to_have_text(re.compile(rf"^\s*{COUNT}\b"))
        await expect(pending).to_have_text(re.compile(r"^\s*0\b"))
        await expect(chart).not_to_have_attribute("aria-label", before or "")
        await expect(
            page.get_by_role("img", name=re.compile("Lateness.*p99 [0-9]"))
        ).to_be_visible()


async def test_the_table_of_a_chart_stays_open_while_the_page_is_live(
    own_server: ServerProcess, page: Page
) -> None:
    async with CallbackReceiver() as receiver:
        await create(own_server, receiver.url, 600_000)
        await page.goto(f"{own_server.url}/ui")
        table = page.get_by_role("region", name="Timers that fall due")
        await page.locator("summary").first.press("Enter")
        await expect(table).to_be_visible()
        await expect(table.get_by_role("row")).to_have_count(2)
        await create(own_server, receiver.url, 1_800_000, prefix="later")
        await expect(table.get_by_role("row")).to_have_count(3)
        await expect(table).to_be_visible()


@pytest.mark.parametrize("width", [360, 390, 1_440])
@pytest.mark.parametrize("path", ["/ui", "/ui/cluster", "/ui/bus"])
async def test_pages_fit_the_screen(
    own_server: ServerProcess, page: Page, path: str, width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    await page.goto(f"{own_server.url}{path}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    overflow = await page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert overflow <= 0
