"""The first minute with the Web UI: a timer is seen to arrive, and a form says what is wrong."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.v1_requests import get_v1

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context(
        extra_http_headers={"x-api-key": API_KEY}, timezone_id="Europe/Berlin"
    )
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            problems.append(message.text) if "Content Security" in message.text else None
        ),
    )
    yield page
    await context.close()
    assert not problems


async def test_one_click_shows_a_timer_arrive(server: ServerProcess, page: Page) -> None:
    await page.goto(f"{server.url}/ui")
    await page.get_by_role("link", name="Receiver").first.click()
    await page.get_by_role("button", name="Send me a timer in 5 seconds").click()
    await expect(page.locator(".countdown")).to_have_text(re.compile(r"in \d s"))
    # Nobody loads the page again: the event stream brings the callback.
    await expect(page.get_by_role("heading", name=re.compile("^Arrived"))).to_be_visible()
    await expect(page.locator(".countdown")).to_have_text(re.compile(r"^[\d.]+ m?s late$"))
    arrival = page.locator(".arrival")
    await expect(arrival).to_have_count(1)
    await expect(arrival.locator("summary")).to_contain_text(re.compile(r"[\d.]+ m?s late"))
    await expect(arrival.locator("pre")).to_have_text('{"hello":"from Duetime"}')
    await expect(arrival.get_by_text("webhook-id")).to_be_visible()


async def test_retries_are_seen_one_after_the_other(server: ServerProcess, page: Page) -> None:
    await page.goto(f"{server.url}/ui/receiver")
    before = await page.locator(".arrival").count()
    await page.get_by_label("The receiver answers").select_option("500-twice")
    await page.get_by_role("button", name="Send me a timer in 5 seconds").click()
    await expect(page.get_by_role("heading", name="Attempt 1 failed")).to_be_visible()
    await expect(page.get_by_text("after 3 attempts")).to_be_visible()
    await expect(page.get_by_role("heading", name="Succeeded at attempt 3")).to_be_visible()
    countdown = page.locator(".countdown")
    await expect(countdown).to_have_text(re.compile(r"^[\d.]+ s after its instant$"))
    await expect(page.locator(".arrival")).to_have_count(before + 3)
    await expect(page.get_by_label("The receiver answers")).to_have_value("500-twice")


async def test_the_form_says_what_is_wrong_while_it_is_typed(
    server: ServerProcess, page: Page
) -> None:
    await page.goto(f"{server.url}/ui/create")
    says = page.locator("#send-says")
    await page.get_by_label("Payload").fill('{"n": 12345678901234567890')
    await expect(page.locator("#payload-error")).to_contain_text("is not valid JSON")
    await expect(page.get_by_label("Payload")).to_have_attribute("aria-invalid", "true")
    # Nobody has come to the URL yet.
    await expect(page.locator("#url-error")).to_be_hidden()
    await page.get_by_label("Payload").press("End")
    await page.get_by_label("Payload").press_sequentially("}")
    await expect(page.locator("#payload-error")).to_be_hidden()
    await page.get_by_label("URL", exact=True).fill("ftp://example.com")
    await expect(page.locator("#url-error")).to_have_text("must be an http or https URL")
    await page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/nobody")
    await page.get_by_role("button", name="1 h").click()
    await expect(says).to_have_text(
        re.compile(r"Duetime will POST 26 bytes to http://127.* in 1 h; up to 4 tries over 3.5 min")
    )
    await page.get_by_label("Id", exact=True).fill("typed")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{server.url}/ui/timers/default/typed")
    async with server.client() as api:
        stored = (await api.get("/api/v1/timers/default/typed")).text
        assert '"n":12345678901234567890}' in stored


async def test_local_times_are_those_of_the_browser(server: ServerProcess, page: Page) -> None:
    await page.goto(f"{server.url}/ui/create?url=http://127.0.0.1:9/&id=local")
    await page.get_by_text("At a time").click()
    await expect(page.get_by_label("Zone")).to_have_value("Europe/Berlin")
    await page.get_by_label("Date and time").fill("2030-10-27T02:30:00")
    await expect(page.get_by_text("this time comes twice")).to_be_visible()
    await page.get_by_label("Which one").select_option("second")
    await expect(page.locator("#send-says")).to_contain_text(
        "27 Oct 2030, 02:30:00 Europe/Berlin (01:30:00 UTC)"
    )
    await page.get_by_label("Date and time").fill("2030-07-01T12:00:00")
    await expect(page.get_by_label("Which one")).to_be_hidden()
    await page.get_by_role("button", name="Create timer").click()
    await page.wait_for_url("**/ui/timers/default/local")
    async with server.client() as api:
        assert (await get_v1(api, "local"))["executeAt"] == "2030-07-01T10:00:00Z"


async def test_without_scripts_the_form_keeps_what_was_typed(
    server: ServerProcess, browser: Browser
) -> None:
    context = await browser.new_context(
        extra_http_headers={"x-api-key": API_KEY}, java_script_enabled=False
    )
    page = await context.new_page()
    await page.goto(f"{server.url}/ui/create")
    await page.get_by_label("Payload").fill("{")
    await page.get_by_label("Id", exact=True).fill("plain")
    await page.get_by_role("button", name="Create timer").click()
    await expect(page.locator("#url-error")).to_have_text("is missing")
    await expect(page.locator("#payload-error")).to_be_visible()
    await page.get_by_label("Payload").fill("{}")
    await page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/nobody")
    await page.get_by_role("button", name="Create timer").click()
    await expect(page).to_have_url(f"{server.url}/ui/timers/default/plain")
    await context.close()


async def test_a_form_with_mistakes_is_not_sent(server: ServerProcess, page: Page) -> None:
    """The page that answers a form cannot be gone back to."""
    await page.goto(f"{server.url}/ui/create")
    await page.get_by_label("Id", exact=True).fill("mended")
    await page.get_by_text("Retries and timeout").click()
    await page.get_by_label("First wait").fill("soon")
    await page.get_by_label("Longest wait").fill("400 days")
    await page.get_by_role("button", name="Create timer").click()
    await expect(page.locator("#url-error")).to_have_text("is missing")
    await expect(page.get_by_label("URL", exact=True)).to_be_focused()
    for label in ("URL", "First wait", "Longest wait"):
        field = page.get_by_label(label, exact=True)
        await expect(field).to_have_attribute("aria-invalid", "true")
    assert page.url == f"{server.url}/ui/create"
    await page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/nobody")
    await page.get_by_label("First wait").fill("1 h 30 min")
    await page.get_by_label("Longest wait").fill("2 h")
    await page.get_by_role("button", name="Create timer").click()
    await expect(page).to_have_url(f"{server.url}/ui/timers/default/mended")
    await page.go_back()
    await expect(page.get_by_role("heading", name="New timer")).to_be_visible()
