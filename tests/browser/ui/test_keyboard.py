"""Everything is done by keyboard alone, on a desktop and on a phone with a keyboard."""

import re

import pytest
from playwright.async_api import Browser, expect

from tests.browser.ui.keyboard import Keyboard
from tests.browser.ui.seeding import NAMESPACE, page_of
from tests.browser.ui.visit import PATIENCE_MS, PHONE, Visit, visiting
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1, get_v1

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

HOUR_MS = 3_600_000
NOBODY = "http://127.0.0.1:9/nobody"

expect.set_options(timeout=PATIENCE_MS)


async def create(server: ServerProcess, *ids: str) -> None:
    async with server.client() as api:
        for id in ids:
            await create_v1(api, id, NOBODY, in_ms(HOUR_MS), namespace=NAMESPACE)


async def status_of(server: ServerProcess, id: str) -> object:
    async with server.client() as api:
        return (await get_v1(api, id, namespace=NAMESPACE))["status"]


async def test_a_person_signs_in_and_out(browser: Browser, seeded: ServerProcess) -> None:
    context = await browser.new_context()
    visit = Visit(await context.new_page(), seeded.url)
    page, keyboard = visit.page, Keyboard(visit.page)
    await visit.open("/ui")
    await keyboard.fill(page.get_by_label("API key"), API_KEY)
    await keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
    await keyboard.activate(page.get_by_role("button", name="Sign out"))
    await expect(page.get_by_label("API key")).to_be_visible()
    assert not visit.faults
    await context.close()


async def test_timers_are_found_chosen_and_canceled(
    browser: Browser, seeded: ServerProcess
) -> None:
    await create(seeded, "keys-1", "keys-2", "keys-3")
    async with visiting(browser, seeded.url) as visit:
        page, keyboard = visit.page, Keyboard(visit.page)
        await keyboard.press("/")
        await keyboard.type("keys-")
        await keyboard.press("Enter")
        await expect(page.locator("tr[data-key]")).to_have_count(3)
        await keyboard.press("j", "x", "j", "x")
        await expect(page.locator("[data-chosen]")).to_have_text("2 chosen")
        cancel = page.locator("#chosen").get_by_role("button", name="Cancel")
        await keyboard.reach(cancel, "Shift+Tab")
        await keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Cancel 2 timers?")).to_be_visible()
        assert await status_of(seeded, "keys-1") == "pending"
        await keyboard.activate(page.get_by_role("button", name="Cancel 2 timers"))
        await expect(page.get_by_role("heading", name="Cancel: 2 of 2 timers")).to_be_visible()
        assert not visit.faults
    assert await status_of(seeded, "keys-1") == "canceled"
    assert await status_of(seeded, "keys-3") == "pending"


async def test_a_timer_is_canceled_after_a_question(
    browser: Browser, seeded: ServerProcess
) -> None:
    await create(seeded, "question-1")
    async with visiting(browser, seeded.url) as visit:
        page, keyboard = visit.page, Keyboard(visit.page)
        await visit.open(page_of("question-1"))
        cancel, question = page.get_by_role("button", name="Cancel timer"), page.locator("#confirm")
        await keyboard.activate(cancel)
        await expect(question).to_be_visible()
        # The harmless answer comes first.
        await expect(question.get_by_role("button", name="Keep it")).to_be_focused()
        await keyboard.press("Escape")
        await expect(question).to_be_hidden()
        await expect(cancel).to_be_focused()
        assert await status_of(seeded, "question-1") == "pending"
        await keyboard.press("Enter")
        await keyboard.activate(question.get_by_role("button", name="Cancel timer"))
        await expect(page.locator(".timer-state .badge")).to_have_text("canceled")
        assert not visit.faults


async def test_a_timer_is_edited_from_the_list(browser: Browser, seeded: ServerProcess) -> None:
    await create(seeded, "change-1")
    async with visiting(browser, seeded.url) as visit:
        page, keyboard = visit.page, Keyboard(visit.page)
        await visit.open("/ui/timers?id_prefix=change-1")
        await keyboard.press("j", "e")
        await expect(page).to_have_url(re.compile("change-1.*edit"))
        await expect(page.get_by_role("textbox", name="Payload")).to_be_visible()
        assert not visit.faults


async def test_a_timer_is_created(browser: Browser, seeded: ServerProcess) -> None:
    async with visiting(browser, seeded.url) as visit:
        page, keyboard = visit.page, Keyboard(visit.page)
        await keyboard.press("c")
        await expect(page.get_by_role("heading", level=1, name="New timer")).to_be_visible()
        await keyboard.fill(page.get_by_label("URL"), NOBODY)
        await keyboard.fill(page.get_by_label("In", exact=True), "2 h")
        await keyboard.reach(page.get_by_label("Namespace"))
        await keyboard.type(NAMESPACE)
        await keyboard.fill(page.get_by_label("Id", exact=True), "made-by-keys")
        await keyboard.activate(page.get_by_role("button", name="Create timer"))
        await page.wait_for_url(f"**{page_of('made-by-keys')}")
        assert not visit.faults
    assert await status_of(seeded, "made-by-keys") == "pending"


async def test_the_theme_is_switched_and_stays(browser: Browser, seeded: ServerProcess) -> None:
    async with visiting(browser, seeded.url) as visit:
        page, keyboard = visit.page, Keyboard(visit.page)
        root = page.locator("html")
        await keyboard.reach(page.get_by_role("button", name="Theme"))
        await keyboard.press("Enter", "Space")
        await expect(root).to_have_attribute("data-theme", "dark")
        await expect(page.get_by_role("status").filter(has_text="theme: dark")).to_be_attached()
        await visit.open("/ui/timers")
        await expect(root).to_have_attribute("data-theme", "dark")
        assert not visit.faults


async def test_the_help_opens_and_closes(browser: Browser, seeded: ServerProcess) -> None:
    async with visiting(browser, seeded.url) as visit:
        page, keyboard = visit.page, Keyboard(visit.page)
        keys = page.locator("#help")
        await keyboard.press("?")
        await expect(keys).to_be_visible()
        # The page behind the help does not hear the keys.
        await keyboard.press("c")
        await expect(keys.get_by_role("button", name="Close")).to_be_focused()
        await keyboard.press("Enter")
        await expect(keys).to_be_hidden()
        await keyboard.press("g", "t")
        await page.wait_for_url("**/ui/timers")
        assert not visit.faults


async def test_the_menu_of_a_phone_opens_and_closes(
    browser: Browser, seeded: ServerProcess
) -> None:
    async with visiting(browser, seeded.url, size=PHONE) as visit:
        page, keyboard = visit.page, Keyboard(visit.page)
        menu, button = page.locator("#menu"), page.get_by_role("button", name="Menu")
        await expect(menu).to_be_hidden()
        await keyboard.activate(button)
        await expect(menu).to_be_visible()
        await keyboard.reach(menu.get_by_role("link", name="Timers"))
        await keyboard.press("Escape")
        await expect(menu).to_be_hidden()
        await expect(button).to_be_focused()
        await keyboard.press("Enter")
        await keyboard.activate(menu.get_by_role("link", name="Endpoints"))
        await expect(page.get_by_role("heading", level=1, name="Endpoints")).to_be_visible()
        await expect(menu).to_be_hidden()
        assert not visit.faults
