"""Take the pictures of the Web UI for the documentation: `make screenshots`.

Starts a server with the timers of a shop, a NATS server and Chromium, and writes every page to
docs/images/ui. Port 8080 has to be free. The charts need some minutes of load; --seconds says how
many.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, Page, ViewportSize, async_playwright, expect

from docs.site.shop import FAILING, fill
from docs.site.tunnel_receiver import TunnelReceiver
from tests.brokers.nats_server import NatsServer
from tests.browser.conftest import MISSING, NAMES, ONLY_LOOPBACK
from tests.browser.ui.seeding import FAILED, NAMESPACE, PENDING, page_of, seed
from tests.browser.ui.visit import DESKTOP, PHONE, Visit, visiting
from tests.real_server.server_process import ServerProcess

FOLDER = Path(__file__).resolve().parents[1] / "images" / "ui"
MAX_BYTES = 200_000
"""Size of a picture."""


class Shot(NamedTuple):
    name: str
    path: str
    theme: str = "light"
    size: ViewportSize = DESKTOP


TALL = ViewportSize(width=DESKTOP["width"], height=1_120)
"""The height that shows the charts of the overview."""

SIGN_IN = "sign-in"
TIMERS = "/ui/timers?namespace=sales&due_from=now"
SHOTS = (
    Shot("overview", "/ui", size=TALL),
    Shot("overview-dark", "/ui", "dark", size=TALL),
    Shot("overview-phone", "/ui", size=PHONE),
    Shot("timers", TIMERS),
    Shot("timers-dark", TIMERS, "dark"),
    Shot("timers-phone", TIMERS, size=PHONE),
    Shot("timer", page_of(FAILED)),
    Shot("timer-pending", page_of(PENDING)),
    Shot("timer-edit", page_of(PENDING) + "?edit"),
    Shot("create", f"/ui/create?url=http%3A%2F%2F{FAILING}%2Freceipts&in=15+min"),
    Shot("receiver", "/ui/receiver"),
    Shot("operation-new", f"/ui/operations/new?namespace={NAMESPACE}&id_prefix=trial&action=move"),
    Shot("operations", "/ui/operations"),
    Shot("endpoints", "/ui/endpoints"),
    Shot("cluster", "/ui/cluster"),
    Shot("bus", "/ui/bus"),
    Shot("namespaces", "/ui/namespaces"),
    Shot("namespace", f"/ui/namespaces/{NAMESPACE}"),
    Shot("keys", "/ui/keys"),
    Shot("secrets", "/ui/secrets"),
    Shot("audit", "/ui/audit"),
)


async def take(visit: Visit, shot: Shot) -> None:
    page = visit.page
    await page.set_viewport_size(shot.size)
    theme = shot.theme
    await page.context.add_cookies([{"name": "duetime_theme", "value": theme, "url": visit.url}])
    assert await visit.open(shot.path) == 200, shot
    if await page.locator("meta[name=live]").count():
        await expect(page.locator("[data-live-state][data-state=on]")).to_be_visible()
    if shot.name == "receiver":
        await _see_arrival(page)
    if shot.name.startswith("timers") and shot.size is DESKTOP:
        for row in range(3):
            await page.get_by_role("checkbox", name="Choose").nth(2 + row).check()
    await page.evaluate("document.activeElement?.blur()")
    path = FOLDER / f"{shot.name}.png"
    await page.screenshot(path=path, animations="disabled")
    size = path.stat().st_size
    sys.stdout.write(f"{path.name}: {size // 1_000} KB\n")
    assert size < MAX_BYTES, f"{path.name} is too large"
    assert not visit.faults, visit.faults


async def _see_arrival(page: Page) -> None:
    await page.get_by_role("button", name="Send me a timer").click()
    await expect(page.locator(".countdown.ok")).to_be_visible(timeout=60_000)


async def sign_in_page(browser: Browser, url: str) -> None:
    context = await browser.new_context(viewport=DESKTOP, color_scheme="light")
    page = await context.new_page()
    await page.goto(f"{url}/ui")
    await page.screenshot(path=FOLDER / f"{SIGN_IN}.png")
    await context.close()


async def take_all(seconds: int, chosen: list[str]) -> None:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program, MISSING
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, NatsServer(_folder(directory, "bus")) as nats:
        async with TunnelReceiver() as receiver:
            settings = {
                "CALLBACK_PROXY": receiver.proxy_url,
                "PORT": "8080",
                "TIMER_BROKER_URL": nats.url,
            }
            async with (
                ServerProcess(_folder(directory, "server"), **settings) as server,
                server.client() as api,
                async_playwright() as playwright,
            ):
                await seed(server, receiver)
                await fill(api, receiver, nats.url, seconds)
                launch = playwright.chromium.launch
                browser = await launch(executable_path=program, args=ONLY_LOOPBACK)
                await sign_in_page(browser, server.url)
                async with visiting(browser, server.url) as visit:
                    for shot in _chosen(chosen):
                        await take(visit, shot)
                await browser.close()


def _folder(directory: str, name: str) -> Path:
    folder = Path(directory) / name
    folder.mkdir()
    return folder


def _chosen(names: list[str]) -> Iterator[Shot]:
    return (shot for shot in SHOTS if not names or shot.name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the Web UI.")
    parser.add_argument("--seconds", type=int, default=200, help="length of the load (200)")
    parser.add_argument("names", nargs="*", help="only these pictures, such as overview timers")
    given = parser.parse_args()
    asyncio.run(take_all(given.seconds, given.names))


if __name__ == "__main__":
    main()
