"""Signing in to the Web UI and out of it, in a browser."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport={"width": 390, "height": 844})
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda message: faults.append(message.text) if "Content Security" in message.text else None,
    )
    yield page
    assert faults == []
    await context.close()


async def link(server: ServerProcess) -> str:
    async with server.client() as api:
        path: str = (await api.post("/api/v1/ui-links")).json()["path"]
    return server.url + path


async def open_from_elsewhere(page: Page, url: str) -> None:
    """Click a link to the page on another site."""
    await page.goto("data:text/html,<a>There</a>")
    await page.evaluate("url => { document.querySelector('a').href = url }", url)
    await page.get_by_text("There").click()


async def test_sign_in_see_the_overview_and_sign_out(page: Page, server: ServerProcess) -> None:
    await page.goto(f"{server.url}/ui")
    key = page.get_by_label("API key")
    await expect(key).to_be_focused()
    await page.keyboard.type("a wrong one")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("This key is not right.")
    await expect(key).to_have_value("")
    await page.get_by_role("button", name="Show").click()
    await page.keyboard.type(API_KEY)
    await expect(key).to_have_attribute("type", "text")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.url == f"{server.url}/ui"
    cookies = {each["name"]: each for each in await page.context.cookies(f"{server.url}/ui")}
    session = cookies[f"duetime_session_{server.url.rpartition(':')[2]}"]
    assert (session["httpOnly"], session["sameSite"], session["path"]) == (True, "Strict", "/ui")
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("status")).to_have_text("You are signed out.")
    await page.goto(f"{server.url}/ui")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_tab_learns_that_its_session_has_ended(page: Page, server: ServerProcess) -> None:
    async with server.client() as api:
        body = {"name": "desk", "roles": ["read"], "namespaces": ["*"]}
        made = (await api.post("/api/v1/keys", json=body)).json()
        given = {"X-API-Key": made["key"]}
        path = (await api.post("/api/v1/ui-links", headers=given)).json()["path"]
        await page.goto(server.url + path)
        await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        await api.delete(f"/api/v1/keys/{made['id']}")
    await expect(page.get_by_role("alert")).to_contain_text("Your session has ended.")


async def test_what_was_typed_outlives_a_sign_out_in_another_tab(
    page: Page, server: ServerProcess
) -> None:
    await page.goto(await link(server))
    await page.goto(f"{server.url}/ui/namespaces/default")
    await expect(page.locator("[data-live-state]")).to_have_text("Live")
    limit = page.get_by_label("Unfinished timers")
    await limit.fill("12345")
    other = await page.context.new_page()
    await other.goto(f"{server.url}/ui")
    await other.get_by_role("button", name="Menu").click()
    await other.get_by_role("button", name="Sign out").click()
    warning = page.locator("[data-trouble]")
    await expect(warning).to_have_text(
        "You are signed out. Sign in in another tab, then go on here."
    )
    await expect(limit).to_have_value("12345")
    await other.goto(await link(server))
    await expect(other.get_by_role("heading", name="Overview")).to_be_visible()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The namespace was changed.")).to_be_visible()
    await expect(limit).to_have_value("12345")


async def test_a_link_on_another_site_finds_the_session(page: Page, server: ServerProcess) -> None:
    await page.goto(await link(server))
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    await open_from_elsewhere(page, f"{server.url}/ui?a=b")
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.url == f"{server.url}/ui?a=b"


async def test_another_site_signs_nobody_in_without_a_click(
    page: Page, server: ServerProcess
) -> None:
    await open_from_elsewhere(page, await link(server))
    await expect(page.get_by_text("Go on only if you have asked for it")).to_be_visible()
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
