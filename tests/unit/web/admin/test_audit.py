"""The page of the audit log: filters, pages, links, exports."""

import csv
import io
import re
from html import unescape

import pytest
from msgspec import json

from duetime.web.pages.admin import audit
from tests.unit.api.asgi_client import API_KEY, Reply
from tests.unit.web.admin.admin_bench import AdminBench, words_of
from tests.unit.web.sessions.session_bench import Browser
from tests.unit.web.streaming import streamed

AUDIT = "/ui/audit"


def actions(reply: Reply) -> list[str]:
    return re.findall(r'href="/ui/audit\?action=([\w.]+)"', reply.content.decode())


def link(reply: Reply, words: str) -> str | None:
    found = re.search(rf'href="([^"]*)">{words}</a>', reply.content.decode())
    return None if found is None else unescape(found[1])


async def act(bench: AdminBench) -> None:
    """Change a few things, each a minute after the one before."""
    for name in ("billing", "payroll"):
        bench.clock.advance(60)
        await bench.put(name, retention="7d")
    bench.clock.advance(60)
    await bench.request("POST", "/api/v1/timers/billing/a%2Fb/cancel")


async def test_entries_are_newest_first_with_links(bench: AdminBench, admin: Browser) -> None:
    await act(bench)
    page = await admin.get(AUDIT)
    assert actions(page) == ["timer.cancel", "namespace.put", "namespace.put", "session.create"]
    html = page.content.decode()
    assert '<a class="mono" href="/ui/timers/billing/a%2Fb">a/b</a>' in html
    assert '<a href="/ui/namespaces/payroll">payroll</a>' in html
    assert "TIMER_NOT_FOUND" in words_of(page)
    assert "retention=7d" in words_of(page)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("action=timer.cancel", ["timer.cancel"]),
        ("namespace=billing", ["timer.cancel", "namespace.put"]),
        ("target=a%2Fb", ["timer.cancel"]),
        ("actor=API_KEY&action=namespace.put", ["namespace.put", "namespace.put"]),
        ("actor=nobody", []),
        ("from=1+min", ["timer.cancel", "namespace.put"]),
        ("from=30+s+ago", ["timer.cancel"]),
        ("from=now-30s", ["timer.cancel"]),
        ("until=1+min+ago", ["namespace.put", "session.create"]),
        ("from=2030-01-01T00%3A02%3A30Z&until=2031-01-01T00%3A00%3A00Z", ["timer.cancel"]),
        ("namespace=+billing+&actor=", ["timer.cancel", "namespace.put"]),
    ],
)
async def test_filters_are_in_the_address(
    bench: AdminBench, admin: Browser, query: str, found: list[str]
) -> None:
    await act(bench)
    assert actions(await admin.get(f"{AUDIT}?{query}")) == found


async def test_pages_go_on_where_the_last_ended(bench: AdminBench, admin: Browser) -> None:
    for number in range(60):
        await bench.put("billing", concurrency=number + 1)
    first = await admin.get(f"{AUDIT}?namespace=billing&from=1+h")
    assert len(actions(first)) == 50
    older = link(first, "Older")
    assert older is not None
    bench.clock.advance(1)
    await bench.put("billing", concurrency=100)
    second = await admin.get(older)
    assert len(actions(second)) == 10
    assert link(second, "Older") is None
    newest = link(second, "Newest")
    assert newest is not None
    assert len(actions(await admin.get(newest))) == 50


@pytest.mark.parametrize(
    ("query", "field", "problem"),
    [
        ("from=yesterday", "from", "Must be an instant, such as"),
        ("until=999999999999+weeks", "until", "Is too long ago."),
        ("cursor=x", None, "Cursor must be the nextCursor of an earlier page."),
        ("actor=a&actor=b", "actor", "Is given more than once."),
    ],
)
async def test_bad_filters_are_explained(
    admin: Browser, query: str, field: str | None, problem: str
) -> None:
    reply = await admin.get(f"{AUDIT}?{query}")
    assert reply.status == 400
    assert problem in words_of(reply)
    if field is not None:
        assert f'id="{field}-error"' in reply.content.decode()


async def test_the_log_is_for_admins_and_of_their_namespaces(bench: AdminBench) -> None:
    await act(bench)
    reader = await bench.signed_in_with("read", "write")
    for path in (AUDIT, f"{AUDIT}/export?format=csv"):
        assert (await reader.get(path)).status == 403
    lead = await bench.signed_in_with("admin", namespaces=["billing"])
    page = await lead.get(AUDIT)
    assert b"payroll" not in page.content
    assert "timer.cancel" in actions(page)
    hidden = await lead.get(f"{AUDIT}?namespace=payroll")
    assert (hidden.status, actions(hidden)) == (200, [])
    headers = [(b"x-api-key", (await bench.issue_key("admin", namespaces=["billing"])).encode())]
    _, content = await streamed(bench.app, f"{AUDIT}/export?format=csv", headers)
    assert b"timer.cancel" in content
    assert b"payroll" not in content


@pytest.mark.parametrize(
    ("query", "is_live"),
    [("", True), ("?actor=a", True), ("?actor=a&action=b", False), ("?namespace=a", True)],
)
async def test_only_a_cheap_page_is_kept_up_to_date(
    admin: Browser, query: str, is_live: bool
) -> None:
    page = await admin.get(f"{AUDIT}{query}")
    assert (b'<meta name="live"' in page.content) == is_live


async def test_an_export_has_everything_that_matches(
    bench: AdminBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "EXPORTED_AT_ONCE", 2)
    await act(bench)
    await bench.request("POST", "/api/v1/timers/billing/=1+1/cancel")
    headers = [(b"x-api-key", API_KEY.encode())]
    status, content = await streamed(
        bench.app, f"{AUDIT}/export?format=csv&namespace=billing", headers
    )
    assert status == 200
    head, *rows = csv.reader(io.StringIO(content.decode()))
    assert head[:3] == ["id", "at", "actor"]
    targets = [row[head.index("target")] for row in rows]
    assert targets == ["'=1+1", "a/b", ""], "no cell is a formula"
    _, content = await streamed(bench.app, f"{AUDIT}/export?format=ndjson", headers)
    lines = [json.decode(line) for line in content.splitlines()]
    assert [line["action"] for line in lines] == [
        *("timer.cancel", "timer.cancel", "namespace.put", "namespace.put")
    ]


async def test_an_export_is_bounded(bench: AdminBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "EXPORTED_AT_ONCE", 2)
    monkeypatch.setattr(audit, "MAX_EXPORTED", 2)
    await act(bench)
    headers = [(b"x-api-key", API_KEY.encode())]
    _, content = await streamed(bench.app, f"{AUDIT}/export?format=ndjson", headers)
    assert len(content.splitlines()) == 2


async def test_an_unknown_format_is_refused(admin: Browser) -> None:
    assert (await admin.get(f"{AUDIT}/export?format=xml")).status == 400
