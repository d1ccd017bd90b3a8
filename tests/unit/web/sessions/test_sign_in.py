"""People sign in to the Web UI with a key, and are who the key is until the session ends."""

import re

import pytest

from duetime.ports.security import AuditQuery
from duetime.service.security.sessions import LINK_MS, SESSION_MS
from duetime.service.security.wrong_keys import WRONG_KEYS
from tests.unit.api.asgi_client import API_KEY, Reply
from tests.unit.web.sessions.session_bench import SIGN_IN, SIGN_OUT, Browser, SessionBench

ELSEWHERE = "cross-site"
SESSION = "duetime_session"


@pytest.fixture
async def bench() -> SessionBench:
    bench = SessionBench()
    await bench.open()
    return bench


@pytest.fixture
def browser(bench: SessionBench) -> Browser:
    return Browser(bench)


def location(reply: Reply) -> str:
    assert reply.status == 303, reply.content
    return reply.headers["location"]


async def link(bench: SessionBench, key: str = API_KEY) -> str:
    path: str = (await bench.request("POST", "/api/v1/ui-links", key=key)).json["path"]
    return path


async def actions(bench: SessionBench) -> list[tuple[str, str, str | None, str]]:
    """Actor, action, address and result of what the audit log has, the oldest first."""
    entries = await bench.audit_log.entries(AuditQuery(limit=100))
    found = [(each.actor, each.action, each.address, each.result) for each in entries]
    return [each for each in reversed(found) if each[1].startswith("session.")]


async def test_a_page_leads_to_the_sign_in_and_that_back_to_the_page(browser: Browser) -> None:
    reply = await browser.get("/ui?status=failed&id_prefix=a%2Fb")
    assert location(reply) == ("/ui/sign-in?next=%2Fui%3Fstatus%3Dfailed%26id_prefix%3Da%252Fb")
    page = await browser.get(location(reply))
    assert page.status == 200
    assert b'value="/ui?status=failed&amp;id_prefix=a%2Fb"' in page.content
    signed_in = await browser.sign_in(next="/ui/timers?status=failed&id_prefix=a%2Fb")
    assert location(signed_in) == "/ui/timers?status=failed&id_prefix=a%2Fb"
    assert signed_in.headers["cache-control"] == "no-store"
    assert await browser.is_signed_in()


async def test_the_form_can_be_used_by_everybody(browser: Browser) -> None:
    html = (await browser.get(SIGN_IN)).content.decode()
    assert '<label for="key">API key</label>' in html
    assert 'type="password"' in html
    assert "duetime open" in html
    assert "<nav" not in html, "there is nothing to go to yet"


@pytest.mark.parametrize(
    ("headers", "is_secure"),
    [
        ({}, False),
        ({"x-forwarded-proto": "http"}, False),
        ({"x-forwarded-proto": "http, https"}, False),
        ({"x-forwarded-proto": "https"}, True),
        ({"x-forwarded-proto": "HTTPS, http"}, True),
        ({"origin": "https://timers.example"}, True),
        ({"origin": "http://timers.example"}, False),
    ],
)
async def test_the_cookie_is_for_this_site_and_no_script(
    bench: SessionBench, browser: Browser, headers: dict[str, str], is_secure: bool
) -> None:
    await browser.get(SIGN_IN)
    reply = await browser.send_form(SIGN_IN, SIGN_IN, key=API_KEY)
    assert location(reply) == "/ui"
    plain = "Path=/ui; HttpOnly; SameSite=Strict; Max-Age=43200"
    assert browser.set_cookies[SESSION] == plain
    reply = await browser.get(await link(bench), **headers)
    assert browser.set_cookies[SESSION] == plain + ("; Secure" if is_secure else "")


async def test_servers_on_other_ports_of_a_host_have_cookies_of_their_own(
    bench: SessionBench, browser: Browser
) -> None:
    for host in ("localhost:8080", "[::1]:8081", "timers.example"):
        await browser.get(await link(bench), host=host)
    names = {"duetime_session_8080", "duetime_session_8081", SESSION}
    assert names <= browser.cookies.keys()
    assert len({browser.cookies[name] for name in names}) == 3
    for host in ("localhost:8080", "[::1]:8081", "timers.example"):
        assert (await browser.get("/ui", host=host)).status == 200
    assert (await browser.get("/ui", host="localhost:8082")).status == 303


async def test_every_sign_in_has_another_token_and_ends_the_one_before(
    bench: SessionBench, browser: Browser
) -> None:
    browser.cookies[SESSION] = "A" * 43
    await browser.sign_in()
    first = browser.cookies[SESSION]
    assert first != "A" * 43
    await browser.get(await link(bench))
    assert browser.cookies[SESSION] != first
    assert await bench.sessions.look_up(first) is None


@pytest.mark.parametrize("key", ["guessed", "dt_0123456789abcdef_" + "0" * 64, "é", "x" * 9_000])
async def test_a_wrong_key_is_refused_in_words(browser: Browser, key: str) -> None:
    reply = await browser.sign_in(key)
    assert reply.status == 401
    assert b"This key is not right." in reply.content
    assert key.encode() not in reply.content
    assert SESSION not in browser.cookies
    assert not await browser.is_signed_in()


async def test_no_key_is_refused_in_words(browser: Browser) -> None:
    reply = await browser.sign_in("  ")
    assert (reply.status, b"Type or paste an API key." in reply.content) == (400, True)


async def test_white_space_around_a_key_does_not_matter(browser: Browser) -> None:
    assert location(await browser.sign_in(f" {API_KEY}\n")) == "/ui"


async def test_keys_cannot_be_tried_by_the_thousand(bench: SessionBench, browser: Browser) -> None:
    statuses = [(await browser.sign_in("wrong")).status for _ in range(WRONG_KEYS.burst + 3)]
    assert statuses == [401] * WRONG_KEYS.burst + [429] * 3
    reply = await browser.sign_in("wrong")
    assert b"Too many wrong keys from this address. Wait a little." in reply.content
    assert (await bench.request("GET", "/timers", key="wrong", address="192.0.2.7")).status == 429
    assert location(await browser.sign_in()) == "/ui", "a right key gets in all the same"


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/ui\\..\\evil",
        "/uix",
        "/api/v1/timers",
        "/ui/../docs",
        "/ui//evil.example",
        "/ui/a\r\nset-cookie: a=b",
        "/ui@evil.example",
        "javascript:alert(1)",
        "/ui/sign-in?next=/ui/sign-in",
        "/ui/sign-out",
        "/ui/é",
        "",
    ],
)
async def test_only_pages_of_the_ui_are_led_to(browser: Browser, target: str) -> None:
    assert location(await browser.sign_in(next=target)) == "/ui"
    await browser.sign_out()


async def test_who_is_signed_in_already_goes_on(browser: Browser) -> None:
    await browser.sign_in()
    assert location(await browser.get(f"{SIGN_IN}?next=/ui/timers")) == "/ui/timers"


async def test_a_sign_out_ends_the_session(bench: SessionBench, browser: Browser) -> None:
    await browser.sign_in()
    token = browser.cookies[SESSION]
    assert location(await browser.sign_out()) == SIGN_IN
    assert SESSION not in browser.cookies
    assert b"You are signed out." in (await browser.get(SIGN_IN)).content
    browser.cookies[SESSION] = token
    assert not await browser.is_signed_in(), "a cookie that was stolen is worth nothing"


async def test_a_revoked_key_ends_the_session_at_once(
    bench: SessionBench, browser: Browser
) -> None:
    key = await bench.issue_key("read")
    await browser.sign_in(key)
    assert b"a key" in (await browser.get("/ui")).content
    await bench.request("DELETE", f"/api/v1/keys/{key.split('_')[1]}")
    reply = await browser.get("/ui")
    page = await browser.get(location(reply))
    assert b"Your session has ended. Sign in to go on." in page.content


async def test_a_session_ends_after_a_working_day(bench: SessionBench, browser: Browser) -> None:
    await browser.sign_in()
    bench.clock.advance(SESSION_MS / 1_000 - 1)
    assert await browser.is_signed_in()
    bench.clock.advance(1)
    assert not await browser.is_signed_in()


async def test_a_form_that_is_sent_after_the_end_is_answered_in_words(
    bench: SessionBench, browser: Browser
) -> None:
    await browser.sign_in()
    await bench.sessions.end(browser.cookies[SESSION])
    page = {"referer": "http://timers.example/ui/timers?status=failed"}
    reply = await browser.post(SIGN_OUT, headers=page)
    assert location(reply) == f"{SIGN_IN}?next=%2Fui%2Ftimers%3Fstatus%3Dfailed&undone=1"
    shown = await browser.get(location(reply))
    assert b"so nothing was changed" in shown.content
    reply = await browser.post(SIGN_OUT, headers={"accept": "application/json"})
    assert (reply.status, reply.json) == (401, {"message": "sign in first"})


async def test_a_form_of_another_site_signs_nobody_in(browser: Browser) -> None:
    await browser.get(SIGN_IN)
    for site in (ELSEWHERE, "same-site", "none"):
        assert (await browser.post(SIGN_IN, site=site, key=API_KEY)).status == 403
    reply = await browser.post(SIGN_IN, key=API_KEY, csrf="0" * 32)
    assert reply.status == 403, "and neither does one without the token of its browser"
    assert SESSION not in browser.cookies


async def test_the_token_of_another_browser_does_not_count(
    bench: SessionBench, browser: Browser
) -> None:
    token = await Browser(bench).form_token(SIGN_IN)
    assert await browser.form_token(SIGN_IN) != token
    assert (await browser.post(SIGN_IN, key=API_KEY, csrf=token)).status == 403


async def test_a_key_that_writes_only_goes_where_it_may(
    bench: SessionBench, browser: Browser
) -> None:
    key = await bench.issue_key("write")
    assert location(await browser.sign_in(key)) == "/ui/create"
    await browser.get(SIGN_IN)
    assert location(await browser.get("/ui")) == "/ui/create"
    refused = await browser.get("/ui/timers")
    assert refused.status == 403
    for page in (refused, await browser.get("/ui/create")):
        links = re.findall(r'<li><a href="([^"]*)"', page.content.decode())
        assert links == ["/ui/create", "/docs"]
        assert b"Sign out" in page.content
        assert b'id="jump"' not in page.content, "it finds timers, which the key may not see"


async def test_the_limits_of_the_key_hold_for_its_sessions(
    bench: SessionBench, browser: Browser
) -> None:
    key = await bench.issue_key("read", rateLimit={"perSecond": 1, "burst": 3})
    await browser.sign_in(key)
    statuses = [(await browser.get("/ui")).status for _ in range(3)]
    assert statuses == [200, 200, 429]


async def test_sign_in_and_sign_out_are_audited(bench: SessionBench, browser: Browser) -> None:
    key = await bench.issue_key("read")
    await browser.sign_in("wrong")
    await browser.sign_in(key)
    await browser.sign_out()
    await browser.get(await link(bench, key))
    who, where = "a key", "192.0.2.7"
    assert await actions(bench) == [
        (who, "session.create", where, "ok"),
        (who, "session.end", where, "ok"),
        (who, "session.create", where, "ok"),
    ]


async def test_a_link_signs_in_once(bench: SessionBench, browser: Browser) -> None:
    path = await link(bench)
    assert location(await browser.get(path)) == "/ui"
    assert await browser.is_signed_in()
    assert location(await browser.get(path)) == "/ui", "who is signed in goes on"
    other = Browser(bench)
    reply = await other.get(path)
    assert reply.status == 401
    assert b"This link has been used, or is more than a minute old." in reply.content
    assert SESSION not in other.cookies


async def test_a_link_works_for_a_minute(bench: SessionBench, browser: Browser) -> None:
    path = await link(bench)
    bench.clock.advance(LINK_MS / 1_000)
    assert (await browser.get(path)).status == 401


@pytest.mark.parametrize("code", ["x", "a" * 43, "%00", "é" * 50, "a" * 5_000])
async def test_a_wrong_code_is_refused_in_words(browser: Browser, code: str) -> None:
    reply = await browser.get(f"{SIGN_IN}?code={code}")
    assert reply.status in (400, 401)
    assert SESSION not in browser.cookies


async def test_another_site_uses_no_link_without_the_person(
    bench: SessionBench, browser: Browser
) -> None:
    path = await link(bench)
    reply = await browser.get(path, site=ELSEWHERE)
    assert (reply.status, SESSION in browser.cookies) == (200, False)
    assert b"Go on only if you have asked for it yourself" in reply.content
    code = path.partition("=")[2]
    assert f'name="code" value="{code}"'.encode() in reply.content
    assert location(await browser.send_form(SIGN_IN, SIGN_IN, code=code)) == "/ui"
    assert await browser.is_signed_in()


async def test_a_program_that_looks_at_links_uses_none_up(
    bench: SessionBench, browser: Browser
) -> None:
    path = await link(bench)
    reply = await browser.head(path)
    assert (reply.status, browser.set_cookies.get(SESSION)) == (200, None)
    assert location(await browser.get(path)) == "/ui"


async def test_a_link_on_another_site_finds_the_session(browser: Browser) -> None:
    """Browsers keep strict cookies back there. Our own page goes on, and they are sent."""
    await browser.sign_in()
    kept, browser.cookies = browser.cookies, {}
    reply = await browser.get("/ui?a=%22", site=ELSEWHERE)
    reply = await browser.get(location(reply), site=ELSEWHERE)
    assert b'http-equiv="refresh" content="0; url=/ui?a=%22"' in reply.content
    browser.cookies = kept
    assert (await browser.get("/ui", site="same-origin")).status == 200


async def test_where_no_key_is_asked_for_nobody_signs_in() -> None:
    bench = SessionBench(api_key=None)
    await bench.open()
    browser = Browser(bench)
    page = await browser.get("/ui")
    assert page.status == 200
    assert b"Sign out" not in page.content
    assert location(await browser.get(f"{SIGN_IN}?next=/ui/timers")) == "/ui/timers"
    assert location(await browser.get(f"{SIGN_IN}?code=abc")) == "/ui"
    assert SESSION not in browser.cookies


async def test_a_gateway_may_send_the_key(bench: SessionBench) -> None:
    assert (await bench.request("GET", "/ui")).status == 200
    assert (await bench.request("GET", "/ui", key="wrong")).status == 303


async def test_the_api_takes_no_cookie(bench: SessionBench, browser: Browser) -> None:
    await browser.sign_in()
    assert (await browser.get("/api/v1/timers")).status == 401


async def test_the_script_of_an_open_page_is_told_that_the_session_has_ended(
    browser: Browser,
) -> None:
    reply = await browser.get("/ui/events?view=/ui", accept="text/event-stream")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    assert reply.content == b"event: signed-out\ndata: null\n\n"
