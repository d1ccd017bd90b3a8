"""Timers whose ids a browser would take out of a path."""

import pytest
from playwright.async_api import Page, expect

from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

DOTTED = [".", "..", "..~", "a/../b"]


async def test_a_timer_is_opened_and_canceled_whatever_its_id(
    page: Page, server: ServerProcess
) -> None:
    async with server.client() as api:
        for id in DOTTED:
            body = v1_body(id, "http://127.0.0.1:9/", in_ms(3_600_000))
            assert (await api.post(TIMERS, json=body)).is_success
    for id in DOTTED:
        await page.goto(f"{server.url}/ui/timers?status=pending")
        await page.get_by_role("link", name=id, exact=True).click()
        await expect(page.get_by_role("heading", level=1)).to_have_text(id)
        await page.get_by_role("button", name="Cancel timer").first.click()
        await page.locator("#confirm [data-yes]").click()
        await expect(page.locator("main")).to_contain_text("canceled")
        await expect(page.get_by_role("heading", level=1)).to_have_text(id)
