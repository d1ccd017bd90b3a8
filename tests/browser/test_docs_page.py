"""The docs page in a browser: search, copy, requests, narrow and wide screens."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Dialog, Locator, Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PATIENCE_MS = PATIENCE_SECONDS * 1_000
NARROW, WIDE = (390, 844), (1600, 1000)

expect.set_options(timeout=PATIENCE_MS)


class DocsPage:
    """The page of one test, and what went wrong in it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.faults: list[str] = []
        self.requested: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.requested.append(request.url))
        page.on(
            "console",
            lambda message: (
                self.faults.append(message.text) if "Content Security" in message.text else None
            ),
        )

    async def open(self) -> None:
        await self.page.goto(f"{self.url}/docs")
        await expect(self.page.locator("html")).to_have_class("js")

    async def form_of(self, operation: str) -> Locator:
        """The opened form of an operation."""
        details = self.page.locator(f"#{operation} .send")
        await details.locator("summary").first.click()
        return details.locator("form")

    async def send(self, form: Locator) -> None:
        await form.get_by_role("button", name="Send").click()


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]})
    yield context
    await context.close()


@pytest_asyncio.fixture(loop_scope="module")
async def docs(context: BrowserContext, server: ServerProcess) -> AsyncIterator[DocsPage]:
    docs = DocsPage(await context.new_page(), server.url)
    await docs.open()
    yield docs
    assert docs.faults == []
    assert all(url.startswith(f"{server.url}/") for url in docs.requested)


def body_of(form: Locator) -> Locator:
    return form.get_by_label("Body (application/json)")


async def test_a_request_is_sent_with_the_key_of_this_tab(
    docs: DocsPage, server: ServerProcess
) -> None:
    page = docs.page
    await page.get_by_label("API key for requests from this page").fill(API_KEY)
    form = await docs.form_of("createTimerV1")
    await expect(body_of(form)).to_have_value(re.compile("order-1042-expiry"))
    await form.get_by_label("Example").select_option("All members")
    await expect(body_of(form)).to_have_value(re.compile("callbackTimeout"))
    await body_of(form).fill(
        '{"id": "a/b c", "executeIn": "1h", "callbackUrl": "http://127.0.0.1:9/",'
        ' "payload": {"exact": 12345678901234567890.0, "none": {}, "text": "a\\"{,:"}}'
    )
    await docs.send(form)
    await expect(form.locator(".outcome")).to_have_text(re.compile(r"200 OK in \d+ ms"))
    await expect(form.locator(".headers")).to_contain_text("timer-existence: created")
    answer = form.locator(".body")
    # The number is shown as it was sent, and members stand on lines of their own.
    await expect(answer).to_contain_text('"exact": 12345678901234567890.0,')
    await expect(answer).to_contain_text('"none": {},')
    await expect(answer).to_contain_text('"text": "a\\"{,:"')

    # The tab remembers the key, and no address has it.
    await page.reload()
    await expect(page.get_by_label("API key for requests from this page")).to_have_value(API_KEY)
    form = await docs.form_of("getTimerV1")
    await form.get_by_label("timerId").fill("a/b c")
    await docs.send(form)
    await expect(form.locator(".outcome")).to_contain_text("200 OK")
    await expect(form.locator(".body")).to_contain_text('"status": "pending"')
    assert f"{server.url}/api/v1/timers/default/a%2Fb%20c" in docs.requested
    assert not [url for url in docs.requested if API_KEY in url]


async def test_a_missing_key_and_a_server_that_is_away_are_explained(
    docs: DocsPage, context: BrowserContext
) -> None:
    form = await docs.form_of("listTimersV1")
    await form.get_by_label("status").select_option("pending")
    await docs.send(form)
    await expect(form.locator(".outcome")).to_contain_text("401 Unauthorized")
    await expect(form.get_by_text("The key is missing or wrong")).to_be_visible()

    await context.set_offline(True)
    await docs.send(form)
    await expect(form.locator(".outcome")).to_have_text(
        re.compile(f"No answer: {docs.url} cannot be reached")
    )
    await expect(form.locator(".body")).to_be_hidden()


async def test_dangerous_requests_are_sent_after_consent_only(docs: DocsPage) -> None:
    page = docs.page
    asked: list[str] = []

    async def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await dialog.dismiss()

    async def agree(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await dialog.accept()

    await page.get_by_label("API key for requests from this page").fill(API_KEY)
    form = await docs.form_of("deleteTimerV1")
    page.once("dialog", refuse)
    await docs.send(form)
    address = f"{docs.url}/api/v1/timers/default/order-1042-expiry"
    assert f"DELETE {address}" in asked[0]
    await expect(form.locator(".outcome")).to_be_empty()
    page.once("dialog", agree)
    await docs.send(form)
    await expect(form.locator(".outcome")).to_contain_text("404 Not Found")
    assert docs.requested.count(address) == 1

    # A dry run changes nothing, so it needs no consent.
    form = await docs.form_of("redriveTimersV1")
    await docs.send(form)
    await expect(form.locator(".outcome")).to_contain_text("200 OK")
    assert len(asked) == 2


async def test_search_narrows_page_and_menu_from_the_keyboard(docs: DocsPage) -> None:
    page = docs.page
    await page.keyboard.press("/")
    await page.keyboard.type("cancel timer")
    await expect(page.locator("#cancelTimerV1")).to_be_visible()
    await expect(page.locator("nav").get_by_role("link", name="named in the body")).to_be_visible()
    await expect(page.locator("#createTimerV1")).to_be_hidden()
    await expect(page.locator("#found")).to_have_text(re.compile(r"\d of \d\d match"))
    await page.keyboard.press("Enter")
    await expect(page.locator("#cancelTimerV1 h3")).to_be_in_viewport()

    await page.get_by_role("searchbox").fill("xylophone")
    await expect(page.locator("#found")).to_have_text("Nothing matches")
    await page.get_by_role("searchbox").press("Escape")
    await expect(page.locator("#createTimerV1")).to_be_visible()
    await expect(page.locator("#found")).to_be_empty()


@pytest.mark.parametrize("has_clipboard", [True, False])
async def test_commands_are_copied(
    docs: DocsPage, context: BrowserContext, has_clipboard: bool
) -> None:
    page = docs.page
    if has_clipboard:
        await context.grant_permissions(["clipboard-write"])
    else:
        # Browsers offer none to plain http from other machines.
        await page.add_init_script(
            "Object.defineProperty(navigator, 'clipboard', {value: undefined})"
        )
        await page.reload()
    button = page.locator("#getTimerV1").get_by_role("button", name="Copy the command")
    await button.click()
    await expect(button).to_have_text("Copied")
    form = await docs.form_of("createTimerV1")
    await body_of(form).fill("")
    await body_of(form).press("ControlOrMeta+v")
    expected = await page.locator("#getTimerV1 pre").first.text_content()
    assert expected is not None
    assert expected.startswith(f"curl {docs.url}/api/v1/timers/default/order-1042-expiry")
    await expect(body_of(form)).to_have_value(expected)


@pytest.mark.parametrize("has_script", [True, False])
async def test_the_page_fits_a_phone(
    browser: Browser, server: ServerProcess, has_script: bool
) -> None:
    context = await browser.new_context(
        viewport={"width": NARROW[0], "height": NARROW[1]},
        java_script_enabled=has_script,
    )
    page = await context.new_page()
    await page.goto(f"{server.url}/docs")
    # The text comes first, and the menu when it is wanted.
    await expect(page.get_by_role("heading", level=1)).to_be_in_viewport()
    await expect(page.get_by_role("navigation")).to_be_hidden()
    await page.get_by_role("link", name="Menu", exact=True).click()
    menu = page.get_by_role("navigation")
    await expect(menu).to_be_in_viewport()
    await menu.get_by_role("link", name="Cancel a pending timer").first.click()
    await expect(menu).to_be_hidden()
    await expect(page.locator("#cancelTimerV1 h3")).to_be_in_viewport()

    await expect(page.locator("#createTimerV1 .send")).to_be_visible(visible=has_script)
    await expect(page.get_by_role("searchbox")).to_be_visible(visible=has_script)
    await expect(page.locator("#createTimerV1 dt").first).to_be_visible()
    if has_script:
        await page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    await context.close()
