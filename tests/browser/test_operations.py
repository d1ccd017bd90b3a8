"""A bulk operation from the question to its end, in a real browser."""

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from tests.polling import PATIENCE_SECONDS, poll
from tests.real_server.callback_receiver import CallbackReceiver, Hang
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, get_v1, v1_body

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

MANY = 3_000
HOUR_MS = 3_600_000
NOBODY = "http://127.0.0.1:9/nobody"
PATIENCE_MS = PATIENCE_SECONDS * 1_000

expect.set_options(timeout=PATIENCE_MS)


async def create(server: ServerProcess, prefix: str, count: int) -> None:
    due_at = in_ms(HOUR_MS)
    async with server.client() as api:
        for begin in range(0, count, 1_000):
            numbers = range(begin, min(count, begin + 1_000))
            timers = [v1_body(f"{prefix}{number}", NOBODY, due_at) for number in numbers]
            answer = await api.post(f"{TIMERS}/batch", json={"timers": timers})
            assert answer.status_code == 200, answer.text


async def test_everything_that_matches_is_canceled(server: ServerProcess, page: Page) -> None:
    await create(server, "whole-", MANY)
    await page.goto(f"{server.url}/ui/timers?namespace=default&status=pending&id_prefix=whole-")
    await page.get_by_text("Everything that matches", exact=True).click()
    await page.locator("details[open]").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("heading", name=f"Cancel {MANY:,} pending")).to_be_visible()
    typed = page.get_by_label(f"Type {MANY:,} to confirm")
    await typed.fill("3001")
    await typed.press("Enter")
    await expect(page.get_by_text(f"Must be the number {MANY:,}, to confirm.")).to_be_visible()
    await typed.fill(f"{MANY:,}")
    await typed.press("Enter")
    await expect(page).to_have_url(re.compile(r"/ui/operations/[0-9a-f-]{36}$"))
    await expect(page.get_by_text("The operation has started.")).to_be_visible()
    # Nobody loads the page again: the event stream brings the end.
    await expect(page.locator(".badge", has_text="completed")).to_be_visible()
    await expect(page.locator(".figure", has_text="changed")).to_contain_text(f"{MANY:,}")
    await expect(page.get_by_role("progressbar")).to_have_attribute("value", str(MANY))
    await expect(page.get_by_role("button", name="Abort")).to_have_count(0)
    await expect(page.get_by_text("API_KEY", exact=True).last).to_be_visible()
    async with server.client() as api:
        assert (await get_v1(api, f"whole-{MANY - 1}"))["status"] == "canceled"


async def test_an_operation_is_aborted_after_a_question(server: ServerProcess, page: Page) -> None:
    """The operation waits for a timer that is executing, so it does not end by itself."""
    async with CallbackReceiver() as receiver, server.client() as api:
        receiver.reaction = Hang()
        body = {"id": "held", "executeIn": "1ms", "callbackUrl": f"{receiver.url}/held"}
        assert (await api.post(TIMERS, json=body)).status_code == 200
        await receiver.wait_for(1)
        cancel = {"action": "cancel", "filter": {"idPrefix": "held"}}
        id = (await api.post("/api/v1/operations", json=cancel)).json()["id"]
        await page.goto(f"{server.url}/ui/operations/{id}")
        await expect(page.get_by_text("1 matching timer is executing.")).to_be_visible()
        question = page.get_by_role("dialog")
        await page.get_by_role("button", name="Abort").click()
        await question.get_by_role("button", name="Keep it").click()
        await expect(page.locator(".badge", has_text="running")).to_be_visible()
        await page.get_by_role("button", name="Abort").click()
        await question.get_by_role("button", name="Abort").click()
        await expect(page.locator(".badge", has_text="aborted")).to_be_visible()
        await page.goto(f"{server.url}/ui/operations")
        await expect(page.get_by_role("row").nth(1)).to_contain_text("aborted")


async def test_chosen_timers_are_run_now(server: ServerProcess, page: Page) -> None:
    await create(server, "chosen-", 2)
    await page.goto(f"{server.url}/ui/timers?namespace=default&id_prefix=chosen-")
    await page.get_by_label("Choose chosen-0").check()
    await page.get_by_label("Choose chosen-1").check()
    async with server.client() as api:
        # Somebody else is faster with one of them.
        assert (await api.delete(f"{TIMERS}/default/chosen-1")).status_code == 204
    await page.locator("#chosen").get_by_role("button", name="Run now").click()
    await page.get_by_role("button", name="Run 2 timers now").click()
    await expect(page.get_by_role("heading", name="Run now: 1 of 2 timers")).to_be_visible()
    gone = page.get_by_role("row").filter(has_text="chosen-1")
    await expect(gone).to_contain_text("Timer not found")
    # Colours in between two themes are nothing to judge.
    await page.emulate_media(reduced_motion="reduce")
    for theme in ("light", "dark"):
        await page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        found = await Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
    async with server.client() as api:
        await poll(lambda: get_v1(api, "chosen-0"), lambda timer: timer["lastError"] is not None)
