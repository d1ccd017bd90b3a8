"""The life of a key in a browser: created, copied, used to sign in, revoked."""

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)

_KEY = re.compile(r"dt_[0-9a-f]{16}_[0-9a-f]{64}")


async def suits_everybody(page: Page) -> None:
    found = (await Axe().run(page)).response["violations"]
    assert not [f"{each['id']}: {each['nodes'][0]['html']}" for each in found]


async def test_a_key_is_created_used_and_revoked(
    browser: Browser, server: ServerProcess, page: Page
) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"{server.url}/ui/keys")
    await page.get_by_role("link", name="New key").click()
    name = page.get_by_label("Name", exact=True)
    await expect(name).to_be_focused()
    await page.keyboard.type("api_key")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Must not be API_KEY")).to_be_visible()
    await expect(name).to_have_value("api_key")
    await expect(name).to_be_focused()
    await suits_everybody(page)
    await name.fill("the lead")
    await page.get_by_role("checkbox", name="admin").check()
    await page.get_by_role("button", name="Create the key").click()
    await expect(page.get_by_role("heading", name="The key “the lead” was created")).to_be_visible()
    await suits_everybody(page)
    await page.get_by_role("button", name="Copy the key").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    text = await page.evaluate("navigator.clipboard.readText()")
    assert _KEY.fullmatch(text)
    assert text not in page.url

    other = await (await browser.new_context()).new_page()
    await other.goto(f"{server.url}/ui/keys")
    await other.get_by_label("API key").fill(text)
    await other.keyboard.press("Enter")
    await expect(other.get_by_role("row", name="the lead")).to_contain_text("yours")

    await page.get_by_role("link", name="I have it: to the key").click()
    await expect(page.get_by_text(text)).to_have_count(0)
    await suits_everybody(page)
    question = page.get_by_role("dialog")
    await page.get_by_role("button", name="Revoke the key").click()
    await expect(question).to_contain_text("its sessions end at once")
    await question.get_by_role("button", name="Keep it").click()
    await page.get_by_role("button", name="Revoke the key").click()
    await question.get_by_role("button", name="Revoke the key").click()
    await expect(page.get_by_text("The key “the lead” was revoked")).to_be_visible()
    await expect(page.get_by_role("row", name="the lead")).to_have_count(0)

    await other.get_by_role("link", name="Audit log").click()
    await expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    await other.context.close()


async def test_a_double_click_and_a_reload_make_one_key(server: ServerProcess, page: Page) -> None:
    await page.goto(f"{server.url}/ui/keys/new")
    await page.get_by_label("Name", exact=True).fill("once")
    await page.get_by_role("button", name="Create the key").dblclick()
    await expect(page.get_by_role("heading", name="The key “once” was created")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("This key was created before")).to_be_visible()
    await page.goto(f"{server.url}/ui/keys")
    await expect(page.get_by_role("link", name="once", exact=True)).to_have_count(1)


async def test_a_key_is_selected_where_the_browser_copies_nothing(
    server: ServerProcess, page: Page
) -> None:
    """Browsers have no clipboard for pages without TLS."""
    await page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    await page.goto(f"{server.url}/ui/keys/new")
    await page.get_by_label("Name", exact=True).fill("over plain HTTP")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Copy the key").click()
    await expect(page.get_by_role("button", name="Press Ctrl+C")).to_be_visible()
    assert _KEY.fullmatch(await page.evaluate("getSelection().toString()"))
