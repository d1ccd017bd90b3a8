"""New timers in the Web UI: every kind, the check while somebody types, roles and namespaces."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.brokers.running_broker import RunningBroker, wait_for_bus
from tests.e2e.web.web_client import WebClient, form, words_of
from tests.real_server.server_process import ServerProcess
from tests.real_server.v1_requests import get_v1

pytestmark = pytest.mark.e2e

URL = "https://api.example.com/webhook"
BAD_INPUT: list[tuple[dict[str, str], str | None, str]] = [
    ({"url": ""}, None, ""),
    ({"url": "ftp://x"}, "url", "must be an http or https URL"),
    ({"url": URL, "in_": "40000 days"}, "in", "is too long"),
    ({"url": URL, "in_": "0 s"}, "in", "must be at least 1ms"),
    ({"url": URL, "in_": "-5 s"}, "in", "must not be negative"),
    ({"url": URL, "in_": "9" * 300}, "in", "must be a duration"),
    ({"url": URL, "when": "at", "at": "2020-01-01T00:00"}, "at", "must be in the future"),
    ({"url": URL, "when": "at", "at": ""}, "at", "must be a date and a time"),
    ({"url": URL, "when": "at", "at": "2030-01-01", "zone": "Mars"}, "zone", "is not a time"),
    ({"url": URL, "max_interval": "-5 s"}, "max_interval", "must not be negative"),
    ({"url": URL, "backoff_multiplier": "nan"}, "backoff_multiplier", "must be from 1 to 100"),
    ({"url": URL, "id": "x" * 256}, "id", "must have 1 to 255 characters"),
    ({"url": URL, "headers": "A B: c"}, "headers", "not a valid header name"),
    ({"url": URL, "headers": "A: c\nA: d"}, "headers", "must not give A twice"),
    (
        {"url": URL, "headers": "Authorization: [redacted]"},
        "headers",
        "lacks the value of Authorization: enter it again",
    ),
    ({"url": URL, "payload": "[" * 100 + "]" * 100}, "payload", "nested deeper"),
    ({"url": URL, "payload": f'"{"x" * 300_000}"'}, "payload", "must be at most"),
    ({"url": URL, "kind": "mail"}, "kind", "must be http, nats or bus"),
    ({"url": URL, "namespace": "nowhere"}, "namespace", "'nowhere' does not exist"),
    ({"topic": "a", "kind": "nats"}, "kind", "set NATS_URL or NATS_HOST"),
    ({"kind": "bus"}, "kind", "set TIMER_BROKER_URL"),
]

EXACT = '{"n": 12345678901234567890.10, "e": 1e400}'


@asynccontextmanager
async def key_for(api: httpx.AsyncClient, *roles: str, namespace: str) -> AsyncIterator[WebClient]:
    """A browser of somebody with a key of their own."""
    body = {"name": "a", "roles": list(roles), "namespaces": [namespace]}
    answer = await api.post("/api/v1/keys", json=body)
    assert answer.status_code == 201, answer.text
    yield WebClient(api, answer.json()["key"])


async def test_a_timer_is_created_as_it_was_typed(api: httpx.AsyncClient, web: WebClient) -> None:
    fields = {
        "url": URL,
        "id": "a/b c",
        "payload": EXACT,
        "headers": "X-Tag: a: b\nAuthorization: Bearer hidden\n\n",
        "metadata": '{"team": "x"}',
        "timeout": "5 s",
        "max_retries": "7",
        "initial_interval": "1 min",
    }
    checked = await web.check(**fields)
    assert checked["errors"] == {}
    says = checked["says"]["send"]
    assert says.startswith(f"Duetime will POST 39 bytes to {URL} on ")
    assert says.endswith("; up to 8 tries over 45 min.")
    assert ", in 1 h" in says
    assert (await api.get("/api/v1/timers/default/a%2Fb%20c")).status_code == 404

    answer = await web.create(**fields)
    assert answer.status_code == 303, words_of(answer)
    assert answer.headers["location"] == "/ui/timers/default/a%2Fb%20c"
    stored = (await api.get("/api/v1/timers/default/a%2Fb%20c")).text
    assert '"payload":{"n":12345678901234567890.10,"e":1e400}' in stored
    timer = await get_v1(api, "a/b c")
    assert timer["callbackHeaders"] == {"X-Tag": "a: b", "Authorization": "[redacted]"}
    assert timer["callbackTimeout"] == "5s"
    assert timer["retryPolicy"]["maxRetries"] == 7
    assert timer["metadata"] == {"team": "x"}

    # Creates by people are recorded, whatever is set for those of programs.
    entry = (await api.get("/api/v1/audit-log?action=timer.create")).json()["entries"][0]
    assert (entry["actor"], entry["target"], entry["result"]) == ("API_KEY", "a/b c", "ok")

    # A second press of the button changes nothing, and other content is told.
    assert (await web.create(**fields)).status_code == 303
    assert "exists already" in (await web.check(**fields))["says"]["send"]
    different = await web.create(**{**fields, "url": "https://other.example.com/"})
    assert different.status_code == 409
    assert "a timer with this id exists and differs in callback.url" in words_of(different)


async def test_every_problem_is_told_beside_its_field(web: WebClient) -> None:
    wrong = {
        "url": "http://127.0.0.1:9/",
        "payload": '{"a": 1,\n "b" 2}',
        "headers": "X-Tag: a\nnonsense",
        "metadata": "{",
        "in_": "soon",
        "timeout": "a while",
        "max_retries": "many",
        "initial_interval": "a moment",
        "max_interval": "400 days",
    }
    problems = (await web.check(**wrong))["errors"]
    assert "CALLBACK_NETWORKS" in problems["url"]
    assert problems["payload"] == "is not valid JSON: expected ':' (line 2, column 6)"
    assert "line 2 is not" in problems["headers"]
    assert set(problems) == {
        "url",
        "payload",
        "headers",
        "metadata",
        "in",
        "timeout",
        "max_retries",
        "initial_interval",
        "max_interval",
    }
    answer = await web.create(**wrong)
    assert answer.status_code == 400
    page = answer.text
    # Everything that was typed is still there.
    for typed in ("http://127.0.0.1:9/", "nonsense", 'value="soon"', 'value="many"', "a while"):
        assert typed in page
    for problem in problems.values():
        assert problem in words_of(answer)
    assert page.count('aria-invalid="true"') == len(problems)
    assert re.search(r'id="url"[^>]* autofocus', page)
    assert page.count(" autofocus") == 1


async def test_bad_input_names_its_field(api: httpx.AsyncClient, web: WebClient) -> None:
    for fields, field, words in BAD_INPUT:
        checked = await web.check(**fields)
        assert list(checked["errors"]) == ([] if field is None else [field]), fields
        if field is not None:
            assert words in checked["errors"][field]
        assert "Duetime will" not in checked["says"]["send"]
        assert (await web.create(**fields)).status_code in (400, 404, 413), fields
    assert (await api.get("/api/v1/timers")).json()["timers"] == []


async def test_local_times_that_clocks_skip_or_repeat_are_told(
    api: httpx.AsyncClient, web: WebClient
) -> None:
    local = {"url": URL, "when": "at", "zone": "Europe/Berlin", "id": "local"}
    skipped = await web.check(**local, at="2030-03-31T02:30")
    assert "does not exist in Europe/Berlin" in skipped["errors"]["at"]
    twice = await web.check(**local, at="2030-10-27T02:30")
    assert twice["errors"] == {"occurrence": "must be chosen"}
    assert "00:30 and at 01:30 UTC" in twice["says"]["occurrence"]
    chosen = await web.check(**local, at="2030-10-27T02:30", occurrence="second")
    assert "on Sunday 27 Oct 2030, 02:30:00 Europe/Berlin (01:30:00 UTC)" in chosen["says"]["send"]
    answer = await web.create(**local, at="2030-07-01T12:00:05")
    assert answer.status_code == 303
    assert (await get_v1(api, "local"))["executeAt"] == "2030-07-01T10:00:05Z"


async def test_kinds_that_are_not_configured_say_why(web: WebClient) -> None:
    words = words_of(await web.get("/ui/create"))
    assert "NATS and the bus are not set up here" in words
    assert "NATS message: it needs a NATS server" in words
    assert "Bus event: it needs a broker" in words


async def test_messages_and_events_are_created_where_they_can_be_sent(
    tmp_path: Path, broker: RunningBroker
) -> None:
    settings = {"NATS_URL": broker.url, **broker.settings}
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        web = WebClient(api)
        await wait_for_bus(api, lambda bus: bus["connected"])
        nats = {"kind": "nats", "topic": "orders", "key": "eu", "ack": "on", "payload": "[1]"}
        says = (await web.check(**nats))["says"]["send"]
        assert "publish 3 bytes on orders.eu and wait until a stream has it, on " in says
        assert (
            "must not contain wildcards"
            in (await web.check(**nats | {"topic": "a.*"}))["errors"]["topic"]
        )
        assert (await web.create(**nats, id="n")).status_code == 303
        stored = (await api.get("/api/v1/timers/default/n")).json()
        assert stored["payload"] == [1]
        bus = {"kind": "bus", "payload": '{"a":1}', "id": "e"}
        assert "it tries until the bus has it" in (await web.check(**bus))["says"]["send"]
        assert (await web.create(**bus)).status_code == 303
        copy = (await web.get("/ui/create?from=default/n")).text
        assert 'name="topic" type="text" value="orders"' in copy


async def test_a_timer_is_duplicated_without_its_secrets(
    api: httpx.AsyncClient, web: WebClient
) -> None:
    body = {
        "id": "first/one",
        "executeAt": "2040-01-01T00:00:00Z",
        "callbackUrl": "https://user:s3cret@example.com/x",
        "callbackHeaders": {"X-Key": "s3cret too", "X-Tag": "seen"},
        "payload": {"a": "<b>"},
        "retryPolicy": {"maxRetries": 9},
    }
    assert (await api.post("/api/v1/timers", json=body)).is_success
    page = await web.get("/ui/create?from=default/first%2Fone")
    assert "s3cret" not in page.text
    assert "without its secrets: enter them again" in words_of(page)
    assert "lacks the value of X-Key: enter it again, since secrets are not copied" in words_of(
        page
    )
    assert "X-Key: \n" in page.text
    again = {"url": "https://user:[redacted]@example.com/x", "headers": "X-Key: [redacted]"}
    refused = (await web.check(**again))["errors"]
    assert "secrets are not copied" in (refused.get("headers") or refused["url"])
    assert "secrets=true" not in str(refused)
    assert "X-Tag: seen" in page.text
    assert "&lt;b&gt;" in page.text
    assert 'value="2040-01-01T00:00:00"' in page.text
    assert (await web.get("/ui/create?from=default/none")).status_code == 404
    # The space at the end belongs to the id: this is another timer, which does not exist.
    assert (await web.get("/ui/create?from=default/first%2Fone%20")).status_code == 404


async def test_the_query_fills_the_form(web: WebClient) -> None:
    page = await web.get(f"/ui/create?url={URL}&in=2+min&id=%22%3E%3Cscript%3E&nonsense=1")
    assert f'value="{URL}"' in page.text
    assert "<script>" not in page.text.replace('<script type="module"', "")
    assert "in 2 min; up to 4 tries" in words_of(page)


async def test_roles_and_namespaces_are_respected(api: httpx.AsyncClient, web: WebClient) -> None:
    for name in ("team-a", "team-b"):
        assert (await api.put(f"/api/v1/namespaces/{name}", json={})).is_success
    body = {"namespace": "team-b", "id": "t", "executeIn": "1h", "callbackUrl": URL}
    assert (await api.post("/api/v1/timers", json=body)).is_success
    async with key_for(api, "read", namespace="team-a") as reader:
        assert (await reader.get("/ui/create")).status_code == 403
        for path in ("/ui/create", "/ui/create/check"):
            answer = await reader.send(path, form(url=URL), page="/ui/receiver/token-of-mine")
            assert answer.status_code == 403
    async with key_for(api, "write", namespace="team-b") as blind:
        assert (await blind.check(url=URL, namespace="team-b"))["errors"] == {}
        assert (await blind.get("/ui/create?from=team-b/t")).status_code == 403
        created = await blind.create(url=URL, namespace="team-b")
        assert created.headers["location"] == "/ui/create", "it may not see the timer"
    async with key_for(api, "write", "read", namespace="team-a") as writer:
        page = (await writer.get("/ui/create")).text
        assert "team-a" in page
        assert "team-b" not in page
        problems = (await writer.check(url=URL, namespace="team-b"))["errors"]
        assert problems == {"namespace": "does not work: namespace 'team-b' does not exist"}
        assert (await writer.create(url=URL, namespace="team-b")).status_code == 404
        assert (await writer.get("/ui/create?from=team-b/t")).status_code == 404
        assert (await writer.create(url=URL, namespace="team-a", id="t")).status_code == 303
        # The id of another team's timer says nothing.
        assert (await writer.check(url=URL, namespace="team-a", id="new"))["errors"] == {}


async def test_a_form_of_another_site_is_refused(api: httpx.AsyncClient, web: WebClient) -> None:
    await web.get("/ui/create")
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-origin"}):
        for path in ("/ui/create", "/ui/create/check", "/ui/receiver/token-of-mine/send"):
            answer = await api.post(path, data=form(url=URL, csrf="0" * 32), headers=headers)
            assert answer.status_code == 403
    assert (await api.get("/api/v1/timers")).json()["timers"] == []
