"""A tab of a real browser, and everything that went wrong in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from playwright.async_api import Browser, ConsoleMessage, Page, Response, ViewportSize

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY

PHONE = ViewportSize(width=390, height=844)
DESKTOP = ViewportSize(width=1440, height=900)
PATIENCE_MS = PATIENCE_SECONDS * 1_000


class Visit:
    """A signed-in tab. `faults` are errors of scripts, breaches of the policy, and requests to
    another host."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.faults: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._check_host(request.url))
        page.on("response", self._check_answer)
        page.on("console", self._check_console)

    async def open(self, path: str) -> int:
        """The status of the page, once it is shown."""
        answer = await self.page.goto(self.url + path, wait_until="load")
        assert answer is not None
        return answer.status

    async def is_wider_than_the_screen(self) -> bool:
        """Whether the page as a whole has to be scrolled sideways."""
        root = "document.documentElement"
        return bool(await self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth + 1"))

    def _check_answer(self, answer: Response) -> None:
        """A page may say that something is wrong; its parts have to be there."""
        if answer.status >= 400 and answer.request.resource_type != "document":
            self.faults.append(f"{answer.status} for {answer.url}")

    def _check_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.faults.append(message.text)

    def _check_host(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.url).netloc:
            self.faults.append(f"a request to {url}")


@asynccontextmanager
async def visiting(
    browser: Browser, url: str, key: str = API_KEY, size: ViewportSize = DESKTOP
) -> AsyncIterator[Visit]:
    """A tab that is signed in with the key, in a browser without any other cookies."""
    # A colour that is still changing would be judged as it is not.
    context = await browser.new_context(viewport=size, reduced_motion="reduce")
    visit = Visit(await context.new_page(), url)
    await visit.open("/ui/sign-in")
    await visit.page.get_by_label("API key").fill(key)
    await visit.page.get_by_role("button", name="Sign in").click()
    await visit.page.wait_for_url("**/ui")
    try:
        yield visit
    finally:
        await context.close()
