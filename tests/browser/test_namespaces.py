"""A namespace in a browser: created, seen live, changed, deleted."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


async def test_a_namespace_is_created_changed_and_deleted(
    server: ServerProcess, page: Page
) -> None:
    await page.goto(f"{server.url}/ui/namespaces")
    await page.get_by_role("link", name="New namespace").click()
    await page.get_by_label("Name", exact=True).fill("orders")
    await page.get_by_label("Lateness objective").fill("fast")
    await page.get_by_role("button", name="Create the namespace").click()
    await expect(page.get_by_text("Must be an objective such as")).to_be_visible()
    await page.get_by_label("Lateness objective").fill("99.9 % within 100ms over 30d")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("The namespace was created.")).to_be_visible()
    await page.get_by_label("Callbacks at once").fill("1,000")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("1,000 at most")).to_be_visible()

    await page.get_by_role("link", name="Delete…").click()
    await page.get_by_label("Type the name of the namespace").fill("order")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Type orders", exact=True)).to_be_visible()
    await page.get_by_label("Type the name of the namespace").fill("orders")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/ui/operations/[0-9a-f-]{36}$"))
    await expect(page.locator(".badge", has_text="completed")).to_be_visible()
    await page.goto(f"{server.url}/ui/namespaces")
    await expect(page.get_by_role("row", name="orders")).to_have_count(0)


async def test_the_list_follows_what_others_do(server: ServerProcess, page: Page) -> None:
    await page.goto(f"{server.url}/ui/namespaces")
    audit = await page.context.new_page()
    await audit.goto(f"{server.url}/ui/audit?action=namespace.put")
    async with server.client() as api:
        answer = await api.put("/api/v1/namespaces/payroll", json={"maxPending": 12_345})
        assert answer.is_success, answer.text
    await expect(page.get_by_role("row", name="payroll")).to_contain_text("12,345")
    await expect(audit.get_by_role("row", name="payroll")).to_contain_text("maxPending=12345")
