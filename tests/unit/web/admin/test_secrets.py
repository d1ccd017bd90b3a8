"""The pages of secrets: a secret is shown once, and never again."""

import re
from typing import Any

import pytest

from duetime.ports.security import AuditQuery
from duetime.web.pages import namespace_names
from duetime.web.pages.admin import secrets as secrets_page
from tests.unit.api.asgi_client import Reply
from tests.unit.web.admin.admin_bench import AdminBench, error_at, location, value_of, words_of
from tests.unit.web.sessions.session_bench import Browser

SECRETS = "/ui/secrets"
BILLING = "/ui/secrets/billing"

_SECRET = re.compile(r"(?:whsec|whsk)_[A-Za-z0-9+/]+=*")
_PUBLIC = re.compile(r"whpk_[A-Za-z0-9+/]+=*")


@pytest.fixture(autouse=True)
async def billing(bench: AdminBench) -> None:
    await bench.put("billing")


async def create(browser: Browser, **fields: str) -> Reply:
    return await browser.send_form(BILLING, BILLING, **fields)


async def listed(bench: AdminBench, namespace: str = "billing") -> list[dict[str, Any]]:
    reply = await bench.request("GET", f"/api/v1/namespaces/{namespace}/secrets")
    secrets: list[dict[str, Any]] = reply.json["secrets"]
    return secrets


async def test_a_secret_is_shown_once(bench: AdminBench, admin: Browser) -> None:
    assert "callbacks of this namespace are not signed" in words_of(await admin.get(BILLING))
    reply = await create(admin, type="hmac")
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    assert "It is shown this once" in words_of(reply)
    (text,) = set(_SECRET.findall(reply.content.decode()))
    (secret,) = await listed(bench)
    for path in (BILLING, SECRETS, "/ui/audit"):
        assert text.encode() not in (await admin.get(path)).content
    assert secret["id"].encode() in (await admin.get(BILLING)).content
    entry = await bench.last("secret.create")
    assert (entry.namespace, entry.target) == ("billing", secret["id"])
    assert (entry.result, entry.details) == ("ok", "type=hmac")
    assert text not in str([*await bench.audit_log.entries(AuditQuery(limit=100))])


async def test_a_page_that_is_loaded_again_makes_no_second_secret(admin: Browser) -> None:
    assert (await create(admin, type="hmac", once="a")).status == 200
    assert location(await create(admin, type="hmac", once="a")) == BILLING
    page = words_of(await admin.get(BILLING))
    assert "This secret was created before" in page
    assert "1 of " in page


async def test_a_public_key_can_be_read_at_any_time(admin: Browser) -> None:
    reply = await create(admin, type="ed25519")
    (public,) = set(_PUBLIC.findall(reply.content.decode()))
    page = await admin.get(BILLING)
    assert set(_PUBLIC.findall(page.content.decode())) == {public}
    assert not _SECRET.search(page.content.decode())


async def test_a_rotation_lets_the_others_expire(bench: AdminBench, admin: Browser) -> None:
    await create(admin, type="hmac")
    bench.clock.advance(1)
    reply = await create(admin, type="hmac", others="expire", expire_others_after="2 h")
    assert "The others of its type sign for 2 h." in words_of(reply)
    assert [each["expiresAt"] for each in await listed(bench)] == ["2030-01-01T02:00:01Z", None]
    assert (await bench.last("secret.create")).details == "type=hmac, expireOthersAfter=2h"
    await create(admin, type="hmac", others="expire", expire_others_after="0s")
    assert [each["expiresAt"] for each in await listed(bench)] == [None]


async def test_without_a_rotation_the_time_does_not_matter(
    bench: AdminBench, admin: Browser
) -> None:
    await create(admin, type="hmac")
    await create(admin, type="hmac", others="keep", expire_others_after="whatever")
    assert [each["expiresAt"] for each in await listed(bench)] == [None, None]


@pytest.mark.parametrize(
    ("fields", "field", "error"),
    [
        ({"expire_others_after": "a day"}, "expire_others_after", "Must be a duration"),
        ({"expire_others_after": ""}, "expire_others_after", "Is missing."),
        ({"expire_others_after": "-5 min"}, "expire_others_after", "Must be from 0s to 30d."),
        ({"expire_others_after": "31 d"}, "expire_others_after", "Must be from 0s to 30d."),
        ({"type": "rsa", "expire_others_after": "1h"}, "type", "Must be 'hmac' or 'ed25519'."),
    ],
)
async def test_bad_input_is_explained_beside_its_field(
    bench: AdminBench, admin: Browser, fields: dict[str, str], field: str, error: str
) -> None:
    reply = await create(admin, others="expire", **fields)
    assert reply.status == 400
    assert (error_at(reply, field) or "").startswith(error)
    assert 'value="expire" checked' in reply.content.decode()
    if fields["expire_others_after"]:
        assert value_of(reply, "expire_others_after") == fields["expire_others_after"]
    assert await listed(bench) == []
    assert (await bench.last("secret.create")).result == "INVALID_INPUT"


async def test_too_many_secrets_are_refused(bench: AdminBench, admin: Browser) -> None:
    for _ in range(10):
        await create(admin)
    reply = await create(admin)
    assert reply.status == 409
    assert "Namespace 'billing' has 10 secrets: revoke one first." in words_of(reply)
    assert "10 of 10 secrets." in words_of(reply)


async def test_a_secret_is_revoked(bench: AdminBench, admin: Browser) -> None:
    await create(admin)
    (secret,) = await listed(bench)
    path = f"{BILLING}/{secret['id']}/revoke"
    assert location(await admin.send_form(path, BILLING)) == BILLING
    assert await listed(bench) == []
    assert (await bench.last("secret.revoke")).target == secret["id"]
    assert (await admin.send_form(path, BILLING)).status == 404


async def test_secrets_of_the_settings_are_listed_and_stay() -> None:
    configured = "whsec_" + "A" * 43 + "="
    bench = AdminBench(webhook_secrets=[configured])
    await bench.open()
    admin = await bench.signed_in()
    page = await admin.get(f"{SECRETS}/default")
    assert "in the settings" in words_of(page)
    assert "change WEBHOOK_SECRETS" in words_of(page)
    assert b"whsec_" not in page.content
    reply = await admin.send_form(f"{SECRETS}/default/configured-1/revoke", f"{SECRETS}/default")
    assert reply.status == 409


async def test_the_list_counts_the_secrets_of_visible_namespaces(
    bench: AdminBench, admin: Browser
) -> None:
    assert "No namespace has secrets" in words_of(await admin.get(SECRETS))
    await bench.put("payroll")
    await admin.send_form(f"{SECRETS}/payroll", BILLING, type="hmac")
    await create(admin)
    await create(admin)
    words = words_of(await admin.get(SECRETS))
    assert "billing 2" in words
    assert "payroll 1" in words
    page = await admin.get(SECRETS)
    assert b"<option>billing</option>" in page.content
    assert b"<option>payroll</option>" in page.content
    assert location(await admin.get(f"{SECRETS}?namespace=a%2Fb")) == f"{SECRETS}/a%2Fb"

    lead = await bench.signed_in_with("admin", namespaces=["billing"])
    page = await lead.get(SECRETS)
    assert b"payroll" not in page.content
    assert b"<option>billing</option>" in page.content
    assert (await lead.get(f"{SECRETS}/payroll")).status == 404
    (secret,) = await listed(bench, "payroll")
    for path in (f"{SECRETS}/payroll", f"{SECRETS}/payroll/{secret['id']}/revoke"):
        assert (await lead.send_form(path, BILLING)).status == 404
    assert len(await listed(bench, "payroll")) == 1


async def test_secrets_are_for_admins(bench: AdminBench) -> None:
    browser = await bench.signed_in_with("read", "write")
    assert b'href="/ui/secrets"' not in (await browser.get("/ui/namespaces")).content
    for path in (SECRETS, BILLING):
        assert (await browser.get(path)).status == 403
    for path in (BILLING, f"{BILLING}/x/revoke"):
        assert (await browser.send_form(path, "/ui/namespaces")).status == 403


async def test_a_form_of_another_site_is_refused(bench: AdminBench, admin: Browser) -> None:
    token = await admin.form_token(BILLING)
    assert (await admin.post(BILLING)).status == 403
    assert (await admin.post(BILLING, site="cross-site", csrf=token)).status == 403
    assert await listed(bench) == []


async def test_a_namespace_that_is_gone_has_no_secrets(admin: Browser) -> None:
    assert (await admin.get(f"{SECRETS}/unheard-of")).status == 404
    assert (await admin.send_form(f"{SECRETS}/unheard-of", BILLING)).status == 404


async def test_very_many_namespaces_are_not_listed(
    bench: AdminBench, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets_page, "SHOWN", 2)
    monkeypatch.setattr(namespace_names, "LISTED_NAMESPACES", 2)
    for name in ("c", "a", "d", "b"):
        await bench.put(name)
        await admin.send_form(f"{SECRETS}/{name}", BILLING, type="hmac")
    page = await admin.get(SECRETS)
    assert re.findall(r'<tr data-key="(\w)">', page.content.decode()) == ["a", "b"]
    assert "The first 2 of 4 namespaces with secrets." in words_of(page)
    assert b'<input id="namespace" name="namespace" required' in page.content
