"""The hub of live pages: shared renderings, bounded work, and the truth while the store is away."""

import asyncio

import pytest
from structlog.testing import capture_logs

from duetime.domain.errors import StoreUnavailable, TimerNotFound, Unavailable
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import EVERYTHING, UNCHECKED, Access
from duetime.testing import LoopClock, on_virtual_time
from duetime.web.live import hub as hub_module
from duetime.web.live.hub import LONGEST_REST_SECONDS, RENDER_SECONDS, Blocks, Hub, Subscription

PAGE = "/ui/timers"
OTHER = "/ui"


class LivePages:
    """Pages whose blocks a test sets, and the hub that shows them."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.blocks: Blocks = {"rows": "a", "count": "1"}
        self.error: Exception | None = None
        self.rendered: list[tuple[str, Access]] = []
        self.work_seconds = 0.0
        self.hang_seconds = 0.0
        self._worked_seconds = 0.0
        self.hub = Hub(self.clock, self._render, lambda: self._worked_seconds)
        self.hub.start()

    async def _render(self, target: str, access: Access) -> Blocks:
        self.rendered.append((target, access))
        self._worked_seconds += self.work_seconds
        if self.hang_seconds:
            await self.clock.sleep(self.hang_seconds)
        if self.error is not None:
            raise self.error
        return self.blocks


async def next_of(tab: Subscription) -> bytes:
    message = await tab.next(60)
    assert message is not None
    return message


@on_virtual_time
async def test_a_tab_gets_all_blocks_first_and_then_what_changes() -> None:
    pages = LivePages()
    tab = pages.hub.subscribe(PAGE, EVERYTHING)
    assert await next_of(tab) == b'event: blocks\ndata: {"rows":"a","count":"1"}\n\n'
    pages.blocks = {"rows": "b", "count": "1"}
    assert await next_of(tab) == b'event: blocks\ndata: {"rows":"b"}\n\n'
    assert await tab.next(10) is None


@on_virtual_time
async def test_tabs_of_one_page_share_its_renderings() -> None:
    pages = LivePages()
    tabs = [pages.hub.subscribe(PAGE, EVERYTHING) for _ in range(200)]
    await pages.clock.sleep(9.5)
    assert pages.rendered == [(PAGE, EVERYTHING)] * 10
    assert len({await next_of(tab) for tab in tabs}) == 1


@on_virtual_time
async def test_callers_with_other_access_share_nothing() -> None:
    pages = LivePages()
    pages.hub.subscribe(PAGE, EVERYTHING)
    pages.hub.subscribe(PAGE, Access(name="shop", namespaces=frozenset({"shop"})))
    await pages.clock.sleep(0.5)
    assert len(set(pages.rendered)) == 2


@on_virtual_time
async def test_a_tab_that_comes_later_gets_the_whole_state() -> None:
    pages = LivePages()
    pages.hub.subscribe(PAGE, EVERYTHING)
    await pages.clock.sleep(0.5)
    late = pages.hub.subscribe(PAGE, EVERYTHING)
    assert b'"rows":"a"' in await next_of(late)


@on_virtual_time
async def test_a_slow_tab_misses_messages_but_no_block() -> None:
    pages = LivePages()
    slow = pages.hub.subscribe(PAGE, EVERYTHING)
    await next_of(slow)
    pages.blocks = {"rows": "b", "count": "1"}
    await pages.clock.sleep(1.5)
    pages.blocks = {"rows": "b", "count": "2"}
    await pages.clock.sleep(1.5)
    assert await next_of(slow) == b'event: blocks\ndata: {"rows":"b","count":"2"}\n\n'
    assert await slow.next(10) is None


@on_virtual_time
async def test_many_different_pages_share_the_time_for_work() -> None:
    pages = LivePages()
    pages.work_seconds = 0.003
    for number in range(100):
        pages.hub.subscribe(f"{PAGE}?page={number}", EVERYTHING)
    await pages.clock.sleep(100)
    work_seconds = len(pages.rendered) * pages.work_seconds
    assert 2.9 < work_seconds < 3.1
    assert len(set(pages.rendered)) == 100


@on_virtual_time
async def test_a_heavy_page_keeps_the_others_waiting_for_a_bounded_time_only() -> None:
    pages = LivePages()
    pages.work_seconds = 10.0
    pages.hub.subscribe(PAGE, EVERYTHING)
    await pages.clock.sleep(0.1)
    pages.hub.subscribe(OTHER, EVERYTHING)
    await pages.clock.sleep(LONGEST_REST_SECONDS)
    assert (OTHER, EVERYTHING) in pages.rendered


@on_virtual_time
async def test_waiting_for_the_store_is_no_work_and_ends() -> None:
    pages = LivePages()
    tab = pages.hub.subscribe(PAGE, EVERYTHING)
    await next_of(tab)
    pages.hang_seconds = 600.0
    trouble = await next_of(tab)
    assert trouble == b'event: trouble\ndata: "the database does not answer"\n\n'
    pages.hang_seconds = 0.0
    began_seconds = pages.clock.monotonic()
    assert await next_of(tab) == b"event: blocks\ndata: {}\n\n"
    assert pages.clock.monotonic() - began_seconds <= RENDER_SECONDS + 1


@on_virtual_time
async def test_trouble_is_told_once_and_ends_with_the_next_blocks() -> None:
    pages = LivePages()
    pages.error = StoreUnavailable("away")
    tab = pages.hub.subscribe(PAGE, EVERYTHING)
    assert (await next_of(tab)).startswith(b"event: trouble\n")
    late = pages.hub.subscribe(PAGE, EVERYTHING)
    assert (await next_of(late)).startswith(b"event: trouble\n")
    assert await tab.next(10) is None
    pages.error = None
    assert b'"rows":"a"' in await next_of(tab)


@on_virtual_time
async def test_a_timer_that_is_gone_is_told_in_words() -> None:
    pages = LivePages()
    pages.error = TimerNotFound(TimerKey("default", "gone"))
    tab = pages.hub.subscribe(PAGE, EVERYTHING)
    assert b"timer not found" in await next_of(tab)


@on_virtual_time
async def test_a_fault_is_logged_once_and_hinders_no_other_page() -> None:
    pages = LivePages()
    pages.error = ZeroDivisionError("a fault")
    with capture_logs() as logs:
        tab = pages.hub.subscribe(PAGE, EVERYTHING)
        assert b"a fault" not in await next_of(tab)
        await pages.clock.sleep(5)
    assert [entry["event"] for entry in logs] == ["api.live_page_failed"]
    assert pages.rendered.count((PAGE, EVERYTHING)) > 3


@on_virtual_time
async def test_pages_without_tabs_are_not_rendered() -> None:
    pages = LivePages()
    tab = pages.hub.subscribe(PAGE, UNCHECKED)
    await next_of(tab)
    pages.hub.unsubscribe(tab)
    await pages.clock.sleep(1.5)
    rendered = len(pages.rendered)
    await pages.clock.sleep(60)
    assert len(pages.rendered) == rendered
    assert pages.hub.tabs == 0


@on_virtual_time
async def test_too_many_different_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MAX_VIEWS", 2)
    pages = LivePages()
    pages.hub.subscribe(PAGE, EVERYTHING)
    pages.hub.subscribe(OTHER, EVERYTHING)
    pages.hub.subscribe(OTHER, EVERYTHING)
    with pytest.raises(Unavailable, match="too many pages"):
        pages.hub.subscribe("/ui/bus", EVERYTHING)


@on_virtual_time
async def test_one_caller_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MAX_VIEWS_OF_ONE", 2)
    monkeypatch.setattr(hub_module, "MAX_TABS_OF_ONE", 3)
    greedy = Access(name="shop", namespaces=frozenset({"shop"}))
    pages = LivePages()
    pages.hub.subscribe(PAGE, greedy)
    pages.hub.subscribe(OTHER, greedy)
    with pytest.raises(Unavailable, match="too many pages"):
        pages.hub.subscribe("/ui/bus", greedy)
    last = pages.hub.subscribe(OTHER, greedy)
    with pytest.raises(Unavailable, match="too many pages"):
        pages.hub.subscribe(OTHER, greedy)
    pages.hub.subscribe("/ui/bus", EVERYTHING)
    pages.hub.unsubscribe(last)
    pages.hub.subscribe(OTHER, greedy)


@on_virtual_time
async def test_a_stop_ends_all_streams() -> None:
    pages = LivePages()
    tab = pages.hub.subscribe(PAGE, EVERYTHING)
    await next_of(tab)
    waiting = asyncio.ensure_future(tab.next(3_600))
    await pages.clock.sleep(0.1)
    pages.hub.close()
    assert await waiting is None
    assert tab.is_over
    assert pages.hub.subscribe(PAGE, EVERYTHING).is_over
