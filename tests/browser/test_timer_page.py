"""A timer is changed, run and watched on its page, in a real browser."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.v1_requests import TIMERS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

NUMBER = "12345678901234567890.12345678901234567890"

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[CallbackReceiver]:
    async with CallbackReceiver() as receiver:
        receiver.reaction = Answer(body=b'{"ok": true}')
        yield receiver


async def create(server: ServerProcess, receiver: CallbackReceiver, id: str, **more: object) -> str:
    """The address of the page of a new timer."""
    body = {"id": id, "executeIn": "1h", "callbackUrl": f"{receiver.url}/{id}", **more}
    async with server.client() as api:
        answer = await api.post(TIMERS, json=body)
        assert answer.status_code == 200, answer.text
    return f"{server.url}/ui/timers/default/{id}"


async def test_a_timer_is_edited_run_and_watched_until_it_is_completed(
    server: ServerProcess, receiver: CallbackReceiver, page: Page
) -> None:
    await page.goto(await create(server, receiver, "watched", payload={"a": 1}))
    await page.get_by_role("link", name="Edit").click()
    payload = page.get_by_role("textbox", name="Payload")
    await expect(payload).to_have_value('{\n  "a": 1\n}')
    await payload.fill('{"n": }')
    error = page.locator("#payload-error")
    await expect(error).to_have_text("is not valid JSON: invalid character (line 1, column 7)")
    await expect(payload).to_have_attribute("aria-invalid", "true")
    await payload.fill(f'{{"n": {NUMBER}}}')
    await expect(error).to_be_hidden()
    await page.get_by_role("button", name="Format the JSON").click()
    await expect(payload).to_have_value(f'{{\n  "n": {NUMBER}\n}}')
    await page.get_by_label("Due", exact=True).fill("in 2 h")
    await expect(page.locator("#execute_at-says")).to_contain_text(", in 2 h")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    await expect(page.locator("#payload-card")).to_contain_text(f'"n": {NUMBER}')

    await page.get_by_role("button", name="Run now").click()
    # Nobody loads the page again: the event stream brings what follows.
    await expect(page.locator(".timer-state .badge")).to_have_text("completed")
    await expect(page.locator(".verdict")).to_contain_text("Fired")
    await expect(page.get_by_role("img", name="Timeline: Attempt 1")).to_be_visible()
    await expect(page.get_by_role("table")).to_contain_text("completed")
    await expect(page.get_by_role("button", name="Run now")).to_have_count(0)
    (request,) = await receiver.wait_for(1)
    assert NUMBER.encode() in request.body
    await expect(page.get_by_text(f"grep -F {request.headers['webhook-id']}")).to_be_visible()


async def test_a_timer_is_moved_and_canceled_by_keyboard_alone(
    server: ServerProcess, receiver: CallbackReceiver, page: Page
) -> None:
    await page.goto(await create(server, receiver, "by-keys"))
    await page.get_by_role("button", name="Move", exact=True).focus()
    await page.keyboard.press("Enter")
    amount = page.get_by_label("By how much")
    await expect(amount).to_be_focused()
    await amount.fill("banana")
    await amount.press("Enter")
    await expect(page.locator("#move-by-error")).to_contain_text("must be a duration")
    await expect(amount).to_have_value("banana")
    await expect(amount).to_be_focused()
    await amount.fill("1 day")
    await amount.press("Enter")
    await expect(page.get_by_text("Moved.")).to_be_visible()
    await expect(page.get_by_text("Moved.")).to_have_count(0)
    await expect(page.locator(".verdict")).to_have_text(re.compile(r"it fires in (24h|25h|1d)"))
    await page.get_by_role("button", name="Cancel timer").focus()
    await page.keyboard.press("Enter")
    question = page.get_by_role("dialog")
    await expect(question).to_contain_text("Cancel this timer? It will not fire.")
    await question.get_by_role("button", name="Cancel timer").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".timer-state .badge")).to_have_text("canceled")


async def test_a_timer_that_fired_meanwhile_says_so_and_stays_live(
    server: ServerProcess, receiver: CallbackReceiver, page: Page
) -> None:
    url = await create(server, receiver, "gone", payload=1)
    await page.goto(f"{url}?edit")
    async with server.client() as api:
        assert (await api.post(f"{TIMERS}/default/gone/cancel")).status_code == 200
    await page.get_by_role("textbox", name="Payload").fill("2")
    await expect(page.locator("[data-form-trouble]")).to_contain_text("it was canceled meanwhile")
    await page.get_by_role("button", name="Save").click()
    alert = page.get_by_role("alert").filter(has_text="Nothing was changed")
    await expect(alert).to_contain_text("it was canceled meanwhile")
    await expect(page.locator("[data-live-state]")).to_contain_text("Live")


async def test_the_form_has_the_instant_in_the_zone_of_the_page(
    server: ServerProcess, browser: Browser
) -> None:
    due_at = "2040-07-01T10:00:00.123456Z"
    async with server.client() as api:
        body = {"id": "zoned", "executeAt": due_at, "callbackUrl": "http://127.0.0.1:9/"}
        assert (await api.post("/api/v1/timers", json=body)).is_success
        headers = {"x-api-key": API_KEY}
        context = await browser.new_context(extra_http_headers=headers, timezone_id="Asia/Kolkata")
        page = await context.new_page()
        await page.goto(f"{server.url}/ui/timers/default/zoned?edit")
        due = page.get_by_label("Due", exact=True)
        await expect(due).to_have_value("2040-07-01 15:30:00.123456+05:30")
        title = re.compile("Asia/(Kolkata|Calcutta)")
        await expect(page.locator("[data-switch=times]")).to_have_attribute("title", title)
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Nothing to change.")).to_be_visible()
        await page.goto(f"{server.url}/ui/timers/default/zoned?edit")
        await due.fill("2040-07-01 16:00")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved.")).to_be_visible()
        await context.close()
        stored = (await api.get("/api/v1/timers/default/zoned")).json()
        assert stored["executeAt"] == "2040-07-01T10:30:00Z"
