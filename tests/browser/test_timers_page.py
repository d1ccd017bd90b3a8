"""The list of timers by keyboard, and a choice of rows that outlives changes of the list."""

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import TIMERS, v1_body

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

HOUR_MS = 3_600_000
NOBODY = "http://127.0.0.1:9/nobody"

FITS = """(() => {
    const box = document.querySelector(".table-box");
    return box.scrollWidth <= box.clientWidth;
})()"""

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


async def create(server: ServerProcess, *ids: str) -> None:
    due_at = in_ms(HOUR_MS)
    async with server.client() as api:
        timers = [v1_body(id, NOBODY, due_at) for id in ids]
        answer = await api.post(f"{TIMERS}/batch", json={"timers": timers})
        assert answer.status_code == 200, answer.text


async def focused(page: Page) -> str:
    text: str = await page.evaluate("document.activeElement.textContent")
    return text


async def test_rows_are_walked_chosen_and_opened_by_keyboard(
    server: ServerProcess, page: Page
) -> None:
    await create(server, "walk-1", "walk-2", "walk-3")
    await page.goto(f"{server.url}/ui/timers?id_prefix=walk-")
    chosen = page.locator("[data-chosen]")
    await expect(chosen).to_have_text("Choose timers to act on")
    await page.keyboard.press("j")
    assert await focused(page) == "walk-1"
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(chosen).to_have_text("1 chosen")
    await expect(page.get_by_label("Choose walk-2")).to_be_checked()
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(chosen).to_have_text("2 chosen")
    await page.keyboard.press("k")
    await page.keyboard.press("x")
    await expect(page.get_by_label("Choose walk-2")).not_to_be_checked()
    await page.keyboard.press("/")
    await expect(page.get_by_label("Id begins with", exact=True)).to_be_focused()
    await page.keyboard.type("x")
    await expect(chosen).to_have_text("1 chosen")
    await page.get_by_label("Choose walk-1").focus()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog").get_by_text("Choose the timer")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("k")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/ui/timers/default/walk-\d$"))
    await page.wait_for_load_state()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog").get_by_text("Edit the timer")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await page.keyboard.press("e")
    await expect(page.get_by_label("Due", exact=True)).to_be_visible()
    await page.goto(f"{server.url}/ui/timers?id_prefix=walk-")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await expect(page.get_by_label("Due", exact=True)).to_be_visible()


async def test_a_choice_and_the_focus_stay_while_the_list_changes(
    server: ServerProcess, page: Page
) -> None:
    await create(server, "stay-b", "stay-d")
    await page.goto(f"{server.url}/ui/timers?id_prefix=stay-")
    await page.get_by_label("Choose stay-d").check()
    await page.get_by_role("link", name="stay-b").focus()
    await create(server, "stay-a", "stay-c")
    # Nobody loads the page again: the event stream brings the new rows.
    await expect(page.locator("tr[data-key]")).to_have_count(4)
    assert await focused(page) == "stay-b"
    await expect(page.get_by_label("Choose stay-d")).to_be_checked()
    async with server.client() as api:
        assert (await api.delete(f"{TIMERS}/default/stay-d")).status_code == 204
    await expect(page.locator("tr[data-key]")).to_have_count(3)
    await expect(page.locator("[data-chosen]")).to_have_text("1 chosen (1 not on this page)")
    await page.get_by_label("Choose all timers on this page").check()
    await expect(page.locator("[data-chosen]")).to_have_text("4 chosen (1 not on this page)")
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await expect(page).to_have_url(re.compile(r"/ui/operations/new$"))
    for id in ("stay-a", "stay-b", "stay-c", "stay-d"):
        await expect(page.get_by_text(id).first).to_be_attached()


async def test_a_range_of_rows_and_everything_that_matches_are_chosen(
    server: ServerProcess, page: Page
) -> None:
    await create(server, *(f"range-{n:02}" for n in range(25)))
    await page.goto(f"{server.url}/ui/timers?id_prefix=range-&limit=20")
    chosen, everything = page.locator("[data-chosen]"), page.locator("[data-everything]")
    await page.get_by_label("Choose range-05").click()
    await page.get_by_label("Choose range-02").click(modifiers=["Shift"])
    await expect(chosen).to_have_text("4 chosen")
    await expect(page.get_by_label("Choose range-03")).to_be_checked()
    await page.get_by_label("Choose range-04").click(modifiers=["Shift"])
    await expect(chosen).to_have_text("1 chosen")
    await expect(page.get_by_label("Choose range-05")).to_be_checked()
    await expect(everything).to_be_hidden()
    await page.get_by_label("Choose all timers on this page").check()
    await expect(chosen).to_have_text("20 chosen")
    await expect(everything).to_have_text("All 25 that match")
    await everything.click()
    await expect(page.get_by_role("button", name="Run timers now")).to_be_focused()
    await page.get_by_role("button", name="Cancel timers").click()
    await expect(page).to_have_url(re.compile(r"/ui/operations/new\?.*id_prefix=range-"))


@pytest.mark.parametrize("name", ["Export", "Everything that matches"])
async def test_panels_close_by_escape_and_by_a_click_elsewhere(
    server: ServerProcess, page: Page, name: str
) -> None:
    await create(server, "panel-1")
    await page.goto(f"{server.url}/ui/timers?id_prefix=panel-")
    summary = page.locator("summary").filter(has_text=name)
    panel = page.locator("details.drop").filter(has=summary).locator(".panel")
    await summary.click()
    await expect(panel).to_be_visible()
    await panel.locator(".hint").click()
    await expect(panel).to_be_visible()
    await panel.locator("a, button").first.focus()
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(summary).to_be_focused()
    await summary.click()
    await expect(panel).to_be_visible()
    await page.get_by_role("heading", name="Timers").click()
    await expect(panel).to_be_hidden()


async def test_filters_are_in_the_address_and_come_off_by_their_chips(
    server: ServerProcess, page: Page
) -> None:
    await create(server, "chip-1", "chip-2")
    await page.goto(f"{server.url}/ui/timers")
    await page.get_by_label("Id begins with", exact=True).fill("chip-")
    await page.get_by_role("button", name="Apply").click()
    await expect(page).to_have_url(f"{server.url}/ui/timers?id_prefix=chip-")
    await expect(page.locator("tr[data-key]")).to_have_count(2)
    await page.get_by_role("link", name="Failed").click()
    await expect(page.get_by_text("No timers match.")).to_be_visible()
    await page.get_by_role("link", name="Remove the filter Status: failed").click()
    await expect(page.locator("tr[data-key]")).to_have_count(2)
    await page.set_viewport_size({"width": 1280, "height": 740})
    assert await page.evaluate(FITS)
    await page.set_viewport_size({"width": 360, "height": 740})
    assert await page.evaluate(FITS)
    await expect(page.locator(".timers thead th").first).to_be_hidden()
    await expect(page.get_by_label("Choose all timers on this page")).to_be_visible()
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360


async def test_a_time_without_a_zone_is_of_the_zone_of_the_browser(
    server: ServerProcess, browser: Browser
) -> None:
    headers = {"x-api-key": API_KEY}
    context = await browser.new_context(extra_http_headers=headers, timezone_id="Asia/Tokyo")
    try:
        page = await context.new_page()
        await page.goto(f"{server.url}/ui/timers")
        await page.get_by_label("Due from", exact=True).fill("2999-11-17 19:00")
        await page.get_by_role("button", name="Apply").click()
        await expect(page).to_have_url(re.compile("zone=Asia%2FTokyo"))
        await expect(page.get_by_text("No timers match.")).to_be_visible()
        everything = page.locator("details form input[name=due_from]")
        await expect(everything).to_have_value("2999-11-17T10:00:00Z")
        await page.get_by_label("Due from", exact=True).fill("now-1h")
        await page.get_by_role("button", name="Apply").click()
        await expect(page).to_have_url(re.compile("due_from=now-1h$"))
    finally:
        await context.close()
