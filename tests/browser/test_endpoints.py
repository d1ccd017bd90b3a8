"""An endpoint is paused and resumed in a real browser, while a timer waits for it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.polling import PATIENCE_SECONDS, poll
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.v1_requests import TIMERS, wait_for_v1

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context(extra_http_headers={"x-api-key": API_KEY})
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    await context.close()
    assert not problems


async def test_a_due_timer_waits_for_a_paused_endpoint_and_fires_when_it_is_resumed(
    server: ServerProcess, page: Page
) -> None:
    async with CallbackReceiver() as receiver, server.client() as api:
        receiver.reaction = Answer(body=b'{"ok": true}')
        await page.goto(f"{server.url}/ui/endpoints")
        await page.get_by_role("link", name="Pause an endpoint").click()
        dialog = page.get_by_role("dialog", name="Pause an endpoint")
        await expect(dialog.get_by_label("Endpoint")).to_be_focused()
        await dialog.get_by_label("Endpoint").fill(f"{receiver.url}/path")
        await dialog.get_by_label("Endpoint").press("Enter")
        await expect(dialog.get_by_text("Must be an origin such as")).to_be_visible()
        await dialog.get_by_label("Endpoint").fill(receiver.url)
        await dialog.get_by_label("Reason").fill("a <b>deploy</b>")
        await dialog.get_by_role("button", name="Pause").click()
        await expect(page.get_by_text(f"{receiver.url} is paused.")).to_be_visible()
        row = page.get_by_role("row").filter(has_text=receiver.url)
        await expect(row).to_contain_text("by API_KEY")
        await expect(row).to_contain_text("a <b>deploy</b>")
        await expect(row.get_by_role("cell").nth(2)).to_have_text("0")

        body = {"id": "waits", "executeIn": "100ms", "callbackUrl": receiver.url}
        assert (await api.post(TIMERS, json=body)).status_code == 200
        # Nobody loads the page again: the event stream brings the number.
        await expect(row.get_by_role("cell").nth(2)).to_have_text("1")
        await wait_for_v1(api, "waits", "pending")
        assert receiver.requests == []

        await row.get_by_role("button", name="Resume").click()
        await expect(page.get_by_text(f"{receiver.url} is resumed.")).to_be_visible()
        await wait_for_v1(api, "waits", "completed")
        await expect(row).to_contain_text("working")
        await expect(row).not_to_contain_text("paused")
        assert len(receiver.requests) == 1


async def test_an_endpoint_of_the_list_is_paused_by_keyboard(
    server: ServerProcess, page: Page
) -> None:
    async with CallbackReceiver() as receiver, server.client() as api:
        receiver.reaction = Answer(body=b'{"ok": true}')
        body = {"id": "first", "executeIn": "1ms", "callbackUrl": receiver.url}
        assert (await api.post(TIMERS, json=body)).status_code == 200
        await wait_for_v1(api, "first", "completed")
        await page.goto(f"{server.url}/ui/endpoints?find={receiver.url}")
        link = page.get_by_role("link", name=f"Pause {receiver.url}")
        await link.focus()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Pause an endpoint")
        await expect(dialog.get_by_label("Endpoint")).to_have_value(receiver.url)
        await expect(dialog.get_by_label("Reason")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(link).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text(f"{receiver.url} is paused.")).to_be_visible()

        async def paused() -> bool:
            listed = (await api.get("/api/v1/endpoints")).json()["endpoints"]
            return any(each["endpoint"] == receiver.url and each["paused"] for each in listed)

        await poll(paused, bool)
