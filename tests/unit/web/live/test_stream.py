"""The event stream and the forms of strangers, over HTTP."""

from urllib.parse import quote

import pytest

from duetime.web.app import MAX_BYTES_OF_STRANGERS
from tests.unit.web.sessions.session_bench import SIGN_IN, Browser, SessionBench


@pytest.mark.parametrize(
    "view",
    [
        "/ui/events?view=/ui",
        f"/ui/events?view={quote('/ui/events?view=/ui/timers', safe='')}",
        "/ui/sign-in?code=abc",
        "/ui/timers/export?format=csv",
        "/ui/create",
        "/ui/nothing",
        "/timers",
        "",
    ],
)
async def test_only_pages_that_are_live_have_a_stream(view: str) -> None:
    bench = SessionBench()
    await bench.open()
    browser = Browser(bench)
    await browser.sign_in()
    refused = await browser.get(f"/ui/events?view={quote(view, safe='')}")
    assert refused.status == 400, refused.content
    assert b"view" in refused.content.lower()


async def test_a_stranger_cannot_send_a_large_form() -> None:
    bench = SessionBench()
    await bench.open()
    refused = await Browser(bench).post(SIGN_IN, key="k" * MAX_BYTES_OF_STRANGERS)
    assert refused.status == 413
