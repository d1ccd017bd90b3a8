"""Actions of no other test here: redrive, duplicate, delete, move in bulk, export, secrets."""

import csv
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.ui.visit import visiting
from tests.polling import PATIENCE_SECONDS
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms
from tests.real_server.v1_requests import create_v1, get_v1, wait_for_v1

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

HOUR_MS = 3_600_000
ONCE = {"maxRetries": 0}
FORMATS = ("CSV", "JSON", "NDJSON")
DONE = Answer(body=b'{"ok": true}')

expect.set_options(timeout=PATIENCE_SECONDS * 1_000)


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[CallbackReceiver]:
    async with CallbackReceiver() as receiver:
        receiver.reaction = DONE
        yield receiver


async def create(server: ServerProcess, url: str, *ids: str, ms: float = HOUR_MS) -> None:
    async with server.client() as api:
        for id in ids:
            await create_v1(api, id, url, in_ms(ms), retryPolicy=ONCE)


async def test_a_failed_timer_is_redriven_and_duplicated(
    server: ServerProcess, receiver: CallbackReceiver, page: Page
) -> None:
    receiver.script("/flaky", Answer(status=500), DONE)
    await create(server, f"{receiver.url}/flaky", "flaky", ms=50)
    async with server.client() as api:
        await wait_for_v1(api, "flaky", "failed")
    await page.goto(f"{server.url}/ui/timers/default/flaky")
    await page.get_by_role("button", name="Redrive").click()
    await expect(page.locator(".timer-state .badge")).to_have_text("completed")
    await page.get_by_role("link", name="Duplicate").click()
    await expect(page.get_by_label("URL")).to_have_value(f"{receiver.url}/flaky")
    await page.get_by_label("Id", exact=True).fill("flaky-copy")
    await page.get_by_role("button", name="Create timer").click()
    await page.wait_for_url("**/ui/timers/default/flaky-copy")
    await expect(page.get_by_role("heading", name="flaky-copy")).to_be_visible()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await page.wait_for_url("**/ui/timers*")
    async with server.client() as api:
        assert (await api.get("/api/v1/timers/default/flaky-copy")).status_code == 404


async def test_everything_that_matches_is_moved_and_redriven(
    server: ServerProcess, receiver: CallbackReceiver, page: Page
) -> None:
    receiver.script("/late", Answer(status=500), Answer(status=500), DONE, DONE)
    await create(server, receiver.url, "moved-1", "moved-2")
    await create(server, f"{receiver.url}/late", "late-1", "late-2", ms=50)
    async with server.client() as api:
        before = (await get_v1(api, "moved-1"))["executeAt"]
        for id in ("late-1", "late-2"):
            await wait_for_v1(api, id, "failed")
        await page.goto(f"{server.url}/ui/timers?namespace=default&id_prefix=moved-")
        await page.get_by_text("Everything that matches", exact=True).click()
        await page.get_by_role("button", name="Move timers").click()
        await page.get_by_label("By", exact=True).fill("1 h 30 min")
        await page.get_by_role("button", name="Move 2 pending or executing timers").click()
        await expect(page.locator("main .badge").first).to_have_text("completed")
        assert (await get_v1(api, "moved-1"))["executeAt"] > before
        await page.goto(f"{server.url}/ui/timers?namespace=default&status=failed&id_prefix=late-")
        await page.get_by_text("Everything that matches", exact=True).click()
        await page.get_by_role("button", name="Redrive timers").click()
        await page.get_by_role("button", name="Redrive 2 failed timers").click()
        for id in ("late-1", "late-2"):
            await wait_for_v1(api, id, "completed")


async def test_what_is_filtered_is_exported(
    server: ServerProcess, receiver: CallbackReceiver, browser: Browser, tmp_path: Path
) -> None:
    ids = {"export-1", "export-2", "export-3"}
    await create(server, receiver.url, *ids)
    # A download has the cookies of the tab, but not the headers that tests add.
    async with visiting(browser, server.url) as visit:
        await visit.open("/ui/timers?id_prefix=export-")
        found = {name: await exported(visit.page, name, tmp_path / name) for name in FORMATS}
    assert found == dict.fromkeys(FORMATS, ids)


async def exported(page: Page, name: str, path: Path) -> set[str]:
    """The ids in the file that the page offers."""
    await page.get_by_text("Export", exact=True).click()
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name=name, exact=True).click()
    await (await downloading.value).save_as(path)
    await page.keyboard.press("Escape")
    text = path.read_text(encoding="utf-8-sig")
    if name == "CSV":
        return {row["id"] for row in csv.DictReader(text.splitlines())}
    if name == "JSON":
        return {timer["id"] for timer in json.loads(text)["timers"]}
    return {json.loads(line)["id"] for line in text.splitlines()}


async def test_a_secret_is_made_shown_once_and_revoked(server: ServerProcess, page: Page) -> None:
    await page.goto(f"{server.url}/ui/secrets/default")
    await page.get_by_label("ed25519").check()
    await page.get_by_role("button", name="Create the secret").click()
    secret = await page.locator("main code").first.inner_text()
    assert secret.startswith(("whsk_", "whsec_")), secret
    await page.goto(f"{server.url}/ui/secrets/default")
    assert secret not in await page.content()
    await page.get_by_role("button", name="Revoke").first.click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_role("button", name="Revoke")).to_have_count(0)
