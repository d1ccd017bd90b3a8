"""The pages of keys: a key is shown once, and never again."""

import re
from typing import Any

import pytest

from duetime.ports.security import AuditQuery
from tests.unit.api.asgi_client import Reply
from tests.unit.web.admin.admin_bench import AdminBench, error_at, location, value_of, words_of
from tests.unit.web.sessions.session_bench import Browser

KEYS = "/ui/keys"
NEW = "/ui/keys/new"
FORM: dict[str, Any] = {"name": "ci", "roles": ["read", "write"], "everywhere": "yes"}

_KEY = re.compile(r"dt_[0-9a-f]{16}_[0-9a-f]{64}")


def key_in(reply: Reply) -> str:
    found = set(_KEY.findall(reply.content.decode()))
    assert len(found) == 1, reply.content
    return str(found.pop())


async def create(browser: Browser, **changes: Any) -> Reply:
    return await browser.send_form(KEYS, NEW, **{**FORM, **changes})


async def test_a_key_is_shown_once_and_works(
    bench: AdminBench, admin: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = await create(admin)
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    assert "location" not in reply.headers
    assert "It is shown this once" in words_of(reply)
    text = key_in(reply)
    assert (await bench.request("GET", "/api/v1/timers", key=text)).status == 200
    id, secret = text.split("_")[1:]
    for path in (KEYS, NEW, f"{KEYS}/{id}", "/ui/audit"):
        page = await admin.get(path)
        assert page.status == 200
        assert secret.encode() not in page.content
    assert secret not in str(admin.cookies)
    assert secret not in str([*await bench.audit_log.entries(AuditQuery(limit=100))])
    assert secret not in "".join(capsys.readouterr())


async def test_a_page_that_is_loaded_again_makes_no_second_key(
    bench: AdminBench, admin: Browser
) -> None:
    page = (await admin.get(NEW)).content.decode()
    found = re.search(r'name="once" value="(\w+)"', page)
    assert found is not None
    refused = await create(admin, name="", once=found[1])
    assert refused.status == 400, "a form that made nothing may be sent again"
    first = await create(admin, once=found[1])
    id = key_in(first).split("_")[1]
    again = await create(admin, once=found[1])
    assert location(again) == f"{KEYS}/{id}"
    assert "This key was created before" in words_of(await admin.get(f"{KEYS}/{id}"))
    assert len((await bench.request("GET", "/api/v1/keys")).json["keys"]) == 1
    assert (await bench.last("key.create")).details == "repeat"


async def test_the_key_is_as_the_form_says(bench: AdminBench, admin: Browser) -> None:
    reply = await create(
        admin,
        name=" billing service ",
        roles=["read"],
        everywhere="no",
        namespaces="billing\n\neu:billing\r\n",
        expires_at="in 90 days",
        max_concurrent="5",
        **{"rate_limit.per_second": "2.5"},
    )
    id = key_in(reply).split("_")[1]
    (listed,) = (await bench.request("GET", "/api/v1/keys")).json["keys"]
    assert listed["id"] == id
    assert listed["name"] == "billing service"
    assert listed["roles"] == ["read"]
    assert listed["namespaces"] == ["billing", "eu:billing"]
    assert listed["expiresAt"] == "2030-04-01T00:00:00Z"
    assert listed["rateLimit"] == {"perSecond": 2.5, "burst": 3}
    assert listed["maxConcurrent"] == 5
    entry = await bench.last("key.create")
    assert (entry.target, entry.result) == (id, "ok")
    assert entry.details == 'roles=["read"], namespaces=["billing","eu:billing"]'
    page = words_of(await admin.get(f"{KEYS}/{id}"))
    assert "billing, eu:billing" in page
    assert "2.5 per second, 3 at once after a pause, 5 under way at once" in page


@pytest.mark.parametrize(
    ("changes", "field", "error"),
    [
        ({"name": ""}, "name", "Must have 1 to 100 characters."),
        ({"name": "api_key"}, "name", "Must not be API_KEY or anonymous or bus"),
        ({"roles": []}, "roles", "Must have at least one of 'read', 'write', 'admin'."),
        ({"roles": ["owner"]}, "roles", "Must have at least one of 'read', 'write', 'admin'."),
        ({"everywhere": "no"}, "namespaces", "Must have 1 to 100 names"),
        ({"everywhere": "no", "namespaces": "x" * 256}, "namespaces", "Must have 1 to 255"),
        ({"expires_at": "soon"}, "expires_at", "Must be an instant, such as"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at", "Must be in the future."),
        ({"expires_at": "99999 weeks"}, "expires_at", "Is too far in the future"),
        ({"max_concurrent": "some"}, "max_concurrent", "Must be a whole number."),
        ({"rate_limit.per_second": "0"}, "rate_limit.per_second", "Must be from"),
        ({"rate_limit.burst": "5"}, "rate_limit.per_second", "Is needed together with the burst."),
    ],
)
async def test_bad_input_is_explained_beside_its_field(
    bench: AdminBench, admin: Browser, changes: dict[str, Any], field: str, error: str
) -> None:
    typed = {"name": "a <b>", "expires_at": "in 2 days", **changes}
    reply = await create(admin, **typed)
    assert reply.status == 400
    assert (error_at(reply, field) or "").startswith(error)
    words = words_of(reply).partition("Skip to the content")[2]
    assert words.index("Nothing was changed.") < words.rindex("New key"), "where messages are"
    assert value_of(reply, "name") == typed["name"]
    assert value_of(reply, "expires_at") == typed["expires_at"]
    assert not _KEY.search(reply.content.decode())
    assert (await bench.request("GET", "/api/v1/keys")).json["keys"] == []
    assert (await bench.last("key.create")).result == "INVALID_INPUT"


async def test_ticked_roles_are_kept(admin: Browser) -> None:
    reply = await create(admin, name="", roles=["admin"], everywhere="no", namespaces="a\nb")
    html = reply.content.decode()
    assert re.findall(r'name="roles" value="(\w+)" checked', html) == ["admin"]
    assert re.findall(r'name="everywhere" value="(\w+)" checked', html) == ["no"]
    assert ">a\nb</textarea>" in html


async def test_a_revoked_key_is_refused_and_its_sessions_end(
    bench: AdminBench, admin: Browser
) -> None:
    text = key_in(await create(admin, name="gone"))
    holder = await bench.signed_in(text)
    assert (await holder.get("/ui/namespaces")).status == 200
    path = f"{KEYS}/{text.split('_')[1]}"
    page = await admin.get(path)
    assert "Revoke “gone”? Requests with it are refused, and its sessions end at once." in str(
        page.content.decode()
    )
    reply = await admin.send_form(f"{path}/revoke", path)
    assert location(reply) == KEYS
    assert "The key “gone” was revoked" in words_of(await admin.get(KEYS))
    assert location(await holder.get("/ui/namespaces")).startswith("/ui/sign-in")
    assert (await bench.request("GET", "/api/v1/timers", key=text)).status == 401
    assert (await admin.get(path)).status == 404
    assert (await admin.send_form(f"{path}/revoke", KEYS + "/new")).status == 404
    entry = await bench.last("key.revoke")
    assert (entry.target, entry.result) == (path.rpartition("/")[2], "KEY_NOT_FOUND")


async def test_ones_own_key_is_marked(bench: AdminBench) -> None:
    browser = await bench.signed_in_with("admin")
    (key,) = (await bench.request("GET", "/api/v1/keys")).json["keys"]
    assert "yours" in words_of(await browser.get(KEYS))
    page = await browser.get(f"{KEYS}/{key['id']}")
    assert "That signs you out, too." in page.content.decode()
    reply = await browser.send_form(f"{KEYS}/{key['id']}/revoke", NEW)
    assert location(await browser.get(location(reply))).startswith("/ui/sign-in")


async def test_a_key_is_rotated(bench: AdminBench, admin: Browser) -> None:
    old = key_in(await create(admin))
    path = f"{KEYS}/{old.split('_')[1]}"
    wrong = await admin.send_form(f"{path}/rotate", path, overlap="a while")
    assert wrong.status == 400
    assert (error_at(wrong, "overlap") or "").startswith("Must be a duration")
    assert value_of(wrong, "overlap") == "a while"
    assert (await bench.last("key.rotate")).result == "INVALID_INPUT"
    reply = await admin.send_form(f"{path}/rotate", path, overlap="2 h")
    new = key_in(reply)
    assert new != old
    assert "The old key works until 2030-01-01 02:00:00 UTC" in words_of(reply)
    for key in (old, new):
        assert (await bench.request("GET", "/api/v1/timers", key=key)).status == 200
    page = await admin.get(path)
    assert "Rotate the key" not in words_of(page), "it has a successor"
    assert f"{KEYS}/{new.split('_')[1]}".encode() in page.content
    again = await admin.send_form(f"{path}/rotate", NEW, overlap="2 h")
    assert again.status == 409
    assert (await bench.last("key.rotate")).result == "KEY_NOT_ACTIVE"
    bench.clock.advance(2 * 3_600)
    assert "expired" in words_of(await admin.get(KEYS))


@pytest.mark.parametrize(
    ("roles", "namespaces"), [(["read", "write"], ["*"]), (["admin"], ["default"])]
)
async def test_keys_are_for_admins_of_all_namespaces(
    bench: AdminBench, roles: list[str], namespaces: list[str]
) -> None:
    browser = await bench.signed_in_with(*roles, namespaces=namespaces)
    (key,) = (await bench.request("GET", "/api/v1/keys")).json["keys"]
    overview = await browser.get("/ui/namespaces")
    assert b'href="/ui/keys"' not in overview.content
    one = f"{KEYS}/{key['id']}"
    for path in (KEYS, NEW, one):
        assert (await browser.get(path)).status == 403
    for path in (KEYS, f"{one}/revoke", f"{one}/rotate"):
        reply = await browser.send_form(path, "/ui/namespaces", **FORM, overlap="0s")
        assert reply.status == 403
    assert len((await bench.request("GET", "/api/v1/keys")).json["keys"]) == 1


async def test_a_form_of_another_site_is_refused(bench: AdminBench, admin: Browser) -> None:
    text = key_in(await create(admin))
    one = f"{KEYS}/{text.split('_')[1]}"
    for path in (KEYS, f"{one}/revoke", f"{one}/rotate"):
        assert (await admin.post(path, **FORM)).status == 403
        token = await admin.form_token(NEW)
        assert (await admin.post(path, site="cross-site", csrf=token, **FORM)).status == 403
    assert len((await bench.request("GET", "/api/v1/keys")).json["keys"]) == 1


async def test_where_keys_are_not_checked_the_page_says_so() -> None:
    bench = AdminBench(api_key=None)
    await bench.open()
    page = words_of(await Browser(bench).get(KEYS))
    assert "Keys are not checked. The service runs with AUTH=none" in page


async def test_keys_are_found_by_their_name(admin: Browser) -> None:
    for name in ("one", "other"):
        await create(admin, name=name)
    page = words_of(await admin.get(f"{KEYS}?q=OTH"))
    assert "1 key." in page
    assert "No key has “x” in its name." in words_of(await admin.get(f"{KEYS}?q=x"))
