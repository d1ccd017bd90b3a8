"""Renders the views of open tabs again and again, and tells the tabs what changed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog
from msgspec import json

from duetime.background import BackgroundLoop
from duetime.domain.errors import DuetimeError, Unavailable
from duetime.domain.security.access import Access
from duetime.ports.clock import Clock
from duetime.web.errors import NoSuchPage, words_of

PERIOD_SECONDS = 1.0
"""Time between two renderings of a view."""

WORK_SHARE = 0.03
"""Share of a processor that the renderings of all views may take. With many different views each is
rendered less often: live pages must never cost what timers need."""

LONGEST_REST_SECONDS = 10.0
"""Time after which the next view is rendered in any case."""

RENDER_SECONDS = 5.0
"""Time for which a rendering may wait for the store."""

MAX_TABS = 1_000
MAX_VIEWS = 300
"""Different views that are kept up to date, each with what it last showed."""

MAX_TABS_OF_ONE = 400
MAX_VIEWS_OF_ONE = 150
"""Tabs and views of callers with the same access, so that nobody takes the room of all others."""

_NO_ANSWER = "the database does not answer"

Blocks = Mapping[str, str]
Render = Callable[[str, Access], Awaitable[Blocks]]
Worked = Callable[[], float]
"""The seconds for which the thread of the event loop has worked."""

_log = structlog.get_logger()


class Subscription:
    """An open tab. It keeps one message at most: a tab that is slow misses what came between."""

    def __init__(self, view: "LiveView") -> None:
        self.view = view
        self._message: bytes | None = None
        self._ready = asyncio.Event()
        self.is_over = False

    def offer(self, message: bytes, whole: Callable[[], bytes]) -> None:
        """Give the tab a message, or the whole state if it has not taken the last one yet."""
        self._message = message if self._message is None else whole()
        self._ready.set()

    def end(self) -> None:
        self.is_over = True
        self._ready.set()

    async def next(self, seconds: float) -> bytes | None:
        """The message, once there is one; None when the time is over or the stream ends."""
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        except TimeoutError:
            return None
        self._ready.clear()
        message, self._message = self._message, None
        return message


class LiveView:
    """A page with its query, as callers with one access see it."""

    def __init__(self, target: str, access: Access) -> None:
        self.target = target
        self.access = access
        self.tabs: set[Subscription] = set()
        self.due_seconds = 0.0
        self._blocks: Blocks = {}
        self._trouble: str | None = None

    def show(self, blocks: Blocks) -> None:
        """Tell the tabs which blocks differ from the last ones. The first time they get all."""
        before, self._blocks = self._blocks, blocks
        changed = {name: html for name, html in blocks.items() if before.get(name) != html}
        if changed or self._trouble is not None:
            self._trouble = None
            self._tell(message_of("blocks", changed))

    def tell_trouble(self, words: str) -> bool:
        """Tell the tabs why their page stays as it is. Answers whether it is news."""
        if words == self._trouble:
            return False
        self._trouble = words
        self._tell(message_of("trouble", words))
        return True

    def welcome(self, tab: Subscription) -> None:
        """A tab that comes to others gets the whole state."""
        self.tabs.add(tab)
        if self._trouble is not None:
            tab.offer(message_of("trouble", self._trouble), self._whole)
        elif self._blocks:
            tab.offer(self._whole(), self._whole)

    def _whole(self) -> bytes:
        return message_of("blocks", self._blocks)

    def _tell(self, message: bytes) -> None:
        for tab in self.tabs:
            tab.offer(message, self._whole)


class Hub(BackgroundLoop):
    """One loop for all views, so that their work never adds up. Tabs that show the same page with
    the same access share its renderings."""

    name = "live-pages"

    def __init__(self, clock: Clock, render: Render, worked: Worked) -> None:
        super().__init__(clock)
        self._render = render
        self._worked = worked
        self._views: dict[tuple[str, Access], LiveView] = {}
        self._is_closed = False

    @property
    def tabs(self) -> int:
        return sum(len(view.tabs) for view in self._views.values())

    def subscribe(self, target: str, access: Access) -> Subscription:
        """Raises `Unavailable` if too many tabs or different views are open."""
        key = target, access
        view = self._views.get(key)
        own = [each for each in self._views.values() if each.access == access]
        own_tabs = sum(len(each.tabs) for each in own)
        has_room = self.tabs < MAX_TABS and own_tabs < MAX_TABS_OF_ONE
        if view is None:
            has_room &= len(self._views) < MAX_VIEWS and len(own) < MAX_VIEWS_OF_ONE
        if not has_room:
            raise Unavailable("too many pages are open here: load this one again to update it")
        if view is None:
            view = self._views[key] = LiveView(target, access)
        tab = Subscription(view)
        view.welcome(tab)
        if self._is_closed:
            tab.end()
        self.wake()
        return tab

    def unsubscribe(self, tab: Subscription) -> None:
        view = tab.view
        view.tabs.discard(tab)
        if not view.tabs:
            self._views.pop((view.target, view.access), None)

    def close(self) -> None:
        """End all streams: the process stops, and the tabs connect to another one."""
        self._is_closed = True
        for view in self._views.values():
            for tab in view.tabs:
                tab.end()

    async def step(self) -> None:
        view = min(self._views.values(), key=lambda each: each.due_seconds, default=None)
        if view is None:
            await self.wait(None)
            return
        now_seconds = self._clock.monotonic()
        if view.due_seconds > now_seconds:
            await self.wait(view.due_seconds - now_seconds)
            return
        worked_before = self._worked()
        await self._refresh(view)
        rest_seconds = (self._worked() - worked_before) * (1 / WORK_SHARE - 1)
        view.due_seconds = now_seconds + PERIOD_SECONDS
        await self._clock.sleep(min(rest_seconds, LONGEST_REST_SECONDS))

    async def _refresh(self, view: LiveView) -> None:
        try:
            async with asyncio.timeout(RENDER_SECONDS):
                blocks = await self._render(view.target, view.access)
        except TimeoutError:
            view.tell_trouble(_NO_ANSWER)
        except Exception as error:
            # A timer that is gone, for example: the page says so when it is loaded again.
            is_fault = not isinstance(error, DuetimeError | NoSuchPage)
            if view.tell_trouble(words_of(error)) and is_fault:
                _log.exception("api.live_page_failed", page=view.target.partition("?")[0])
        else:
            view.show(blocks)


def message_of(event: str, data: object) -> bytes:
    """A message of an event stream. JSON has no line breaks, which would end it."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), json.encode(data))
