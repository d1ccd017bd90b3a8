"""The pages of namespaces: who sees which, who may change what, and what a form keeps."""

import re

import pytest
from msgspec import UNSET

from duetime.domain.lateness.objective import LatenessObjective, error_budget
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.retry import RetryPolicy
from duetime.event_loop import next_turn
from duetime.web.pages.admin import namespaces as pages
from duetime.web.pages.admin.namespace_form import body_of
from duetime.web.pages.admin.namespace_words import retry_words, shown_objective
from duetime.web.rendering.environment import DASH
from duetime.web.request import Fields
from tests.unit.web.admin.admin_bench import AdminBench, error_at, location, value_of, words_of
from tests.unit.web.sessions.session_bench import Browser

LIST = "/ui/namespaces"
NEW = "/ui/new-namespace"
BILLING = "/ui/namespaces/billing"
SLO = "99.9 % within 100ms over 30d"


async def test_the_list_has_the_options_in_words(bench: AdminBench, admin: Browser) -> None:
    await bench.put("billing", numShards=64, retention="90d", maxPending=5_000, slo=SLO)
    await bench.put("billing", retryPolicy={"maxRetries": 1})
    page = await admin.get(LIST)
    words = words_of(page)
    assert "billing 1 retry, after 30 s, within 1 d" in words
    assert "billing" in words
    assert "5,000" in words
    assert "90 d" in words
    assert SLO in words
    assert "2 namespaces." in words
    assert NEW.encode() in page.content


async def test_a_list_of_many_has_pages_and_a_search(
    bench: AdminBench, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "SHOWN", 2)
    for name in ("b", "a", "d", "c"):
        await bench.put(name)
    first = await admin.get(LIST)
    assert [f'data-key="{name}"' in first.content.decode() for name in "abcd"] == [
        True,
        True,
        False,
        False,
    ]
    assert b'href="/ui/namespaces?after=b"' in first.content
    second = await admin.get(f"{LIST}?after=b")
    assert b'data-key="c"' in second.content
    assert b'data-key="d"' in second.content
    assert b'data-key="default"' not in second.content
    found = await admin.get(f"{LIST}?q=EFAU")
    assert b'data-key="default"' in found.content
    assert "1 namespace with “EFAU”." in words_of(found)
    assert "No namespace has “zzz” in its name." in words_of(await admin.get(f"{LIST}?q=zzz"))


async def test_a_key_that_only_reads_sees_no_buttons(bench: AdminBench) -> None:
    await bench.put("billing")
    reader = await bench.signed_in_with("read")
    assert NEW.encode() not in (await reader.get(LIST)).content
    page = await reader.get(BILLING)
    assert page.status == 200
    for absent in ("Save", "Delete", "Secrets", "Audit log"):
        assert absent not in words_of(page)
    for path in (NEW, f"{BILLING}/delete"):
        assert (await reader.get(path)).status == 403
    for path in (NEW, BILLING, f"{BILLING}/delete"):
        reply = await reader.send_form(path, LIST, namespace="billing", retention="1d")
        assert reply.status == 403
    assert await bench.member("billing", "retention") is None


async def test_other_namespaces_do_not_exist_for_a_key_of_some(bench: AdminBench) -> None:
    await bench.put("billing")
    await bench.put("payroll")
    lead = await bench.signed_in_with("admin", namespaces=["billing"])
    page = await lead.get(LIST)
    assert b"payroll" not in page.content
    assert b"billing" in page.content
    assert NEW.encode() not in page.content, "such a key creates no namespaces"
    for path in ("/ui/namespaces/payroll", "/ui/namespaces/payroll/delete"):
        assert (await lead.get(path)).status == 404
        assert (await lead.send_form(path, LIST, typed="payroll", retention="1d")).status == 404
    assert (await lead.get("/ui/namespaces/unheard-of")).status == 404
    assert (await lead.send_form(NEW, LIST, namespace="billing2")).status == 403


async def test_the_lead_of_a_team_changes_everything_but_limits(bench: AdminBench) -> None:
    await bench.put("billing", maxPending=5)
    lead = await bench.signed_in_with("admin", namespaces=["billing"])
    page = await lead.get(BILLING)
    assert "Limits are changed only by an admin key for all namespaces." in words_of(page)
    assert value_of(page, "max_pending") == "5"
    assert b'name="before.max_pending"' not in page.content
    reply = await lead.send_form(BILLING, BILLING, retention="7d")
    assert location(reply) == BILLING
    assert await bench.member("billing", "retention") == "7d"
    assert await bench.member("billing", "maxPending") == 5
    refused = await lead.send_form(BILLING, BILLING, max_pending="6")
    assert refused.status == 403
    assert await bench.member("billing", "maxPending") == 5


async def test_only_changed_fields_are_changed(bench: AdminBench, admin: Browser) -> None:
    await bench.put("billing", retention="7d", concurrency=5, retryPolicy={"maxRetries": 9})
    page = await admin.get(BILLING)
    assert value_of(page, "retention") == "7d"
    await bench.put("billing", concurrency=6)
    fields = {"retention": "30d", "before.retention": "7d"}
    fields |= {"concurrency": "5", "before.concurrency": "5"}
    fields |= {"retry_policy.max_retries": "9", "before.retry_policy.max_retries": "9"}
    fields |= {"retry_policy.max_interval": "1h", "before.retry_policy.max_interval": "10m"}
    assert location(await admin.send_form(BILLING, BILLING, **fields)) == BILLING
    assert await bench.member("billing", "retention") == "30d"
    assert await bench.member("billing", "concurrency") == 6, "the other change stays"
    policy = await bench.member("billing", "retryPolicy")
    assert (policy["maxRetries"], policy["maxInterval"]) == (9, "1h")
    entry = await bench.last("namespace.put")
    assert (entry.namespace, entry.result) == ("billing", "ok")
    assert entry.details == "retryPolicy, retention=30d"


async def test_an_empty_field_resets_its_option(bench: AdminBench, admin: Browser) -> None:
    await bench.put("billing", retention="7d", slo=SLO, retryPolicy={"maxRetries": 9})
    fields = {"retention": "", "before.retention": "7d", "slo": "", "before.slo": SLO}
    fields |= {"retry_policy.max_retries": "", "before.retry_policy.max_retries": "9"}
    await admin.send_form(BILLING, BILLING, **fields)
    assert await bench.member("billing", "retention") is None
    assert await bench.member("billing", "slo") is None
    assert (await bench.member("billing", "retryPolicy"))["maxRetries"] == 3


@pytest.mark.parametrize(
    ("field", "typed", "error"),
    [
        ("max_pending", "many", "Must be a whole number."),
        ("max_pending", "-1", "Must be a whole number."),
        ("concurrency", "0", "Must be from 1 to 65536."),
        ("max_payload_bytes", "9" * 20, "Must be a whole number."),
        ("retention", "1 fortnight", "Must be a duration, such as “15 min” or “1 h 30 min”."),
        ("retention", "-1 h", "Must not be negative."),
        ("slo", "fast", f'Must be an objective such as "{SLO}".'),
        ("retry_policy.backoff_multiplier", "x2", "Must be a number, such as 1.5."),
        ("retry_policy.initial_interval", "<b>", "Must be a duration, such as"),
    ],
)
async def test_bad_input_is_explained_beside_its_field(
    bench: AdminBench, admin: Browser, field: str, typed: str, error: str
) -> None:
    await bench.put("billing", concurrency=7)
    other = {"callback_networks": "10.0.0.0/8 ", f"before.{field}": "", field: typed}
    reply = await admin.send_form(BILLING, BILLING, **other)
    assert reply.status == 400
    assert (error_at(reply, field) or "").startswith(error)
    assert value_of(reply, field) == typed
    assert value_of(reply, "callback_networks") == "10.0.0.0/8 ", "what was typed is kept"
    assert await bench.member("billing", "concurrency") == 7
    assert (await bench.last("namespace.put")).result == "INVALID_INPUT"


async def test_a_form_of_another_site_is_refused(bench: AdminBench, admin: Browser) -> None:
    await bench.put("billing")
    for path in (BILLING, f"{BILLING}/delete", NEW):
        assert (await admin.post(path, retention="1d")).status == 403
        assert (await admin.post(path, csrf="guessed", retention="1d")).status == 403
        token = await admin.form_token(BILLING)
        reply = await admin.post(path, site="cross-site", csrf=token, retention="1d")
        assert reply.status == 403
    assert await bench.member("billing", "retention") is None


async def test_a_namespace_is_created(bench: AdminBench, admin: Browser) -> None:
    fields = {"num_shards": "1,024", "max_pending": "1000000", "slo": SLO}
    fields |= {"retention": "1 week", "retry_policy.max_interval": "1 h 30 min"}
    reply = await admin.send_form(NEW, NEW, namespace=" orders ", **fields)
    assert location(reply) == "/ui/namespaces/orders"
    assert "The namespace was created." in words_of(await admin.get(location(reply)))
    assert await bench.member("orders", "numShards") == 1_024
    assert await bench.member("orders", "maxPending") == 1_000_000
    assert await bench.member("orders", "retention") == "7d"
    assert (await bench.member("orders", "retryPolicy"))["maxInterval"] == "1h30m"
    entry = await bench.last("namespace.put")
    assert (entry.namespace, entry.result) == ("orders", "ok")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("", "Must have 1 to 255 characters."),
        ("a b", "Must not contain ' ': people have to type it in a shell."),
        ("-x", "Must not start with a hyphen."),
        ("default", "Exists already."),
    ],
)
async def test_a_name_that_does_not_work_is_refused(
    bench: AdminBench, admin: Browser, name: str, error: str
) -> None:
    reply = await admin.send_form(NEW, NEW, namespace=name, retention="5d")
    assert reply.status == 400
    assert error_at(reply, "namespace") == error
    assert value_of(reply, "namespace") == name
    assert value_of(reply, "retention") == "5d"
    assert await bench.member("default", "retention") is None


async def test_every_wrong_field_is_marked(bench: AdminBench, admin: Browser) -> None:
    fields = {
        "num_shards": "0",
        "max_pending": "many",
        "retention": "a while",
        "slo": "fast",
        "retry_policy.max_retries": "99999",
        "retry_policy.initial_interval": "2 h",
        "retry_policy.max_interval": "1 h",
    }
    reply = await admin.send_form(NEW, NEW, namespace="My Team!", **fields)
    assert reply.status == 400
    page = reply.content.decode()
    marked = set(re.findall(r'<input id="([^"]+)"[^>]* aria-invalid="true"', page))
    assert marked == {"namespace", *fields} - {"retry_policy.max_interval"}
    assert re.findall(r'<input id="([^"]+)"[^>]* autofocus', page) == ["namespace"]
    first_wait = error_at(reply, "retry_policy.initial_interval")
    assert first_wait == "Must not be longer than “Longest wait”."


@pytest.mark.parametrize("name", ["new", "a/b?c", "<i>ü", "delete", "x" * 255])
async def test_every_name_has_its_page(bench: AdminBench, admin: Browser, name: str) -> None:
    await bench.store.add_namespace(Namespace(name, 16))
    page = await admin.get(LIST)
    links = re.findall(rf'<a href="({LIST}/[^"]*)"', page.content.decode())
    (path,) = (link for link in links if link != f"{LIST}/default")
    shown = await admin.get(path)
    assert shown.status == 200
    assert name in words_of(shown)
    assert b"<i>\xc3" not in shown.content
    assert location(await admin.send_form(path, path, retention="3d")) == path
    stored = await bench.namespaces.current(name)
    assert stored is not None
    assert stored.options.retention_seconds == 3 * 86_400


async def test_a_namespace_is_deleted_after_its_name_was_typed(
    bench: AdminBench, admin: Browser
) -> None:
    await bench.put("billing")
    body = {"namespace": "billing", "id": "a", "executeIn": "1h", "callbackUrl": "https://e.com/"}
    await bench.request("POST", "/api/v1/timers", body)
    path = f"{BILLING}/delete"
    question = words_of(await admin.get(path))
    assert "1 timer will be forgotten" in question
    assert "1 timer that is pending or executing may be lost: it never fires" in question

    wrong = await admin.send_form(path, path, typed="bill", force="yes")
    assert wrong.status == 400
    assert error_at(wrong, "typed") == "Type billing"
    assert b"checked" in wrong.content
    kept = await admin.send_form(path, path, typed="billing")
    assert kept.status == 409
    assert error_at(kept, "force") == "Tick this, or cancel these timers first."
    assert (await bench.last("namespace.delete")).result == "NAMESPACE_NOT_EMPTY"
    assert await bench.member("billing", "deleting") is False

    gone = await admin.send_form(path, path, typed="billing", force="yes")
    operation = location(gone)
    assert operation.startswith("/ui/operations/")
    assert (await admin.get(operation)).status == 200
    entry = await bench.last("namespace.delete")
    assert entry.details == f"force, operation={operation.rpartition('/')[2]}"
    page = await admin.get(BILLING)
    assert "This namespace takes no more timers." in words_of(page)
    assert "Save" not in words_of(page)


async def test_the_default_namespace_stays(bench: AdminBench, admin: Browser) -> None:
    page = await admin.get("/ui/namespaces/default")
    assert "Delete the namespace" not in words_of(page)
    path = "/ui/namespaces/default/delete"
    reply = await admin.send_form(path, path, typed="default")
    assert reply.status == 400
    assert "'default' cannot be deleted" in words_of(reply)


@pytest.mark.parametrize(
    ("late", "state"), [(0, "on track"), (80, "at risk"), (100, "at risk"), (101, "missed")]
)
def test_an_objective_is_on_track_until_its_budget_is_spent(late: int, state: str) -> None:
    objective = LatenessObjective(percent=99.0, within_ms=100, window_hours=24)
    shown = shown_objective(objective, error_budget(objective, 10_000 - late, late))
    assert shown is not None
    assert shown.state == state
    assert f"{late} late" in shown.details
    assert shown.details.startswith("100 %") == (late == 0)


def test_an_objective_says_when_nothing_is_known() -> None:
    objective = LatenessObjective(percent=99.0, within_ms=100, window_hours=24)
    uncounted = shown_objective(objective, None)
    assert uncounted is not None
    assert uncounted.state == "not counted yet"
    empty = shown_objective(objective, error_budget(objective, 0, 0))
    assert empty is not None
    assert empty.state == "no attempts yet"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (RetryPolicy(), "3 retries, after 30 s, 1 min and 2 min, within 1 d"),
        (RetryPolicy(max_retries=0), "No retries"),
        (RetryPolicy(max_retries=1), "1 retry, after 30 s, within 1 d"),
        (
            RetryPolicy(max_retries=20),
            "20 retries, after 30 s, 1 min and so on, up to 10 min, within 1 d",
        ),
        (
            RetryPolicy(max_retries=9, backoff_multiplier=1.0),
            "9 retries, 30 s apart, within 1 d",
        ),
    ],
)
def test_a_retry_policy_in_words(policy: RetryPolicy, words: str) -> None:
    assert retry_words(policy) == words


def test_a_form_without_changes_changes_nothing() -> None:
    assert body_of(Fields())[0].retry_policy is UNSET
    body, errors = body_of(Fields([("retention", "7d"), ("before.retention", "7d")]))
    assert body.retention is UNSET
    assert not errors


async def test_numbers_come_from_the_census(bench: AdminBench, admin: Browser) -> None:
    await bench.store.add_namespace(Namespace("billing", 16, NamespaceOptions()))
    assert DASH in words_of(await admin.get(LIST)), "nothing was counted yet"
    body = {"namespace": "billing", "id": "a", "executeIn": "1h", "callbackUrl": "https://e.com/"}
    await bench.request("POST", "/api/v1/timers", body)
    bench.reports.census.start()
    while bench.reports.census.kept is None:
        await next_turn()
    page = await admin.get(LIST)
    await bench.reports.census.abandon()
    assert b'href="/ui/timers?namespace=billing&amp;status=pending">1</a>' in page.content
