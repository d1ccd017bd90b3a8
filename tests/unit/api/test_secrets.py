"""Secrets of callbacks: hidden in every answer, shown on request, and kept when they come back."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Raw, json

from duetime.api.http import auth
from duetime.domain.callback import HttpCallback
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import Access, Role
from duetime.domain.timer import Timer
from tests.unit.api.v1.v1_bench import BASE, V1Bench, create_body, error_of, path_of

MARK = "m4rked-secret"
URL = f"https://user:{MARK}@example.com/due"
HEADERS = {"Authorization": f"Bearer {MARK}", "x-api-KEY": MARK, "X-Tag": "plain"}
SHOWN_URL = "https://user:[redacted]@example.com/due"
SHOWN = {"Authorization": "[redacted]", "x-api-KEY": "[redacted]", "X-Tag": "plain"}
ADVICE = (
    "is [redacted], but there is no stored value to keep: give the value itself (secrets=true, or "
    "--with-secrets on the command line, shows it where it is stored)"
)


@pytest.fixture
async def bench() -> V1Bench:
    return await V1Bench().open()


def v1_body(id: str = "one", **changes: object) -> dict[str, object]:
    return create_body(id, **{"callbackUrl": URL, "callbackHeaders": HEADERS, **changes})


def shown_body(id: str = "one", **changes: object) -> dict[str, object]:
    return v1_body(id, **{"callbackUrl": SHOWN_URL, "callbackHeaders": SHOWN, **changes})


async def stored(bench: V1Bench, id: str = "one") -> HttpCallback:
    timer = await bench.store.get(TimerKey("default", id))
    assert timer is not None
    assert isinstance(timer.callback, HttpCallback)
    return timer.callback


async def imported(bench: V1Bench, *lines: object) -> Any:
    content = b"".join(json.encode(line) + b"\n" for line in lines)
    return (await bench.request("POST", f"{BASE}/import", content)).json


def callback(**changes: object) -> dict[str, object]:
    return {"type": "http", "url": URL, "headers": HEADERS, **changes}


async def created_on_platform(bench: V1Bench) -> str:
    created = await bench.create(callback=callback())
    assert created.status == 201, created.content
    return str(created.data["id"])


async def test_no_answer_shows_them_unless_it_is_asked_to(bench: V1Bench) -> None:
    id = await created_on_platform(bench)
    one = path_of("default", id)
    selection = {"timerId": id}
    reads: Sequence[tuple[str, str, object]] = (
        ("GET", f"/timers/{id}", b""),
        ("GET", "/timers", b""),
        ("GET", one, b""),
        ("GET", BASE, b""),
        ("GET", f"{BASE}/export", b""),
        ("POST", f"{BASE}/get", selection),
    )
    for method, path, body in reads:
        reply = await bench.request(method, path, body)
        assert reply.status == 200
        assert MARK.encode() not in reply.content
        assert b"[redacted]" in reply.content
        assert (await bench.request(method, f"{path}?secrets=false", body)).content == reply.content
        assert MARK.encode() in (await bench.request(method, f"{path}?secrets=true", body)).content
    writes: Sequence[tuple[str, str, object]] = (
        ("PUT", f"/timers/{id}", {"metadata": 1}),
        ("PUT", one, {"payload": 1}),
        ("POST", f"{BASE}/update", {**selection, "payload": 2}),
        ("POST", BASE, v1_body("two")),
        ("POST", BASE, v1_body("two")),
        ("POST", f"{BASE}/create", v1_body("two")),
        ("POST", f"{BASE}/batch", {"timers": [v1_body("three"), v1_body("two", payload=3)]}),
        ("POST", f"{one}/cancel", b""),
        ("POST", f"{BASE}/cancel", selection),
        ("DELETE", f"/timers/{id}", b""),
    )
    for method, path, body in writes:
        reply = await bench.request(method, path, body)
        assert reply.status == 200, reply.content
        assert MARK.encode() not in reply.content


async def test_the_parameter_is_checked(bench: V1Bench) -> None:
    await bench.request("POST", BASE, v1_body())
    reply = await bench.request("GET", f"{path_of('default', 'one')}?secrets=1")
    assert error_of(reply) == (400, "INVALID_INPUT", "secrets must be one of false, true")
    reply = await bench.request("GET", f"{path_of('default', 'one')}?limit=1")
    message = "limit is not a known parameter: this operation takes secrets"
    assert error_of(reply) == (400, "INVALID_INPUT", message)


async def test_they_are_for_admins_only(bench: V1Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    id = await created_on_platform(bench)
    others = frozenset({Role.READ, Role.WRITE})
    monkeypatch.setattr(auth, "EVERYTHING", Access(name="other", roles=others))
    message = "this key lacks the role 'admin'"
    for path in (path_of("default", id), BASE, f"{BASE}/export"):
        reply = await bench.request("GET", f"{path}?secrets=true")
        assert error_of(reply) == (403, "FORBIDDEN", message)
    for path in (f"/timers/{id}", "/timers"):
        assert (await bench.request("GET", f"{path}?secrets=true")).error == (403, 4, message)


async def test_an_update_keeps_what_comes_back_as_shown(bench: V1Bench) -> None:
    await bench.request("POST", BASE, v1_body())
    sent = {"callbackUrl": SHOWN_URL, "callbackHeaders": {**SHOWN, "X-Token": "new"}, "payload": 1}
    reply = await bench.request("PUT", path_of("default", "one"), sent)
    assert reply.status == 200, reply.content
    kept = await stored(bench)
    assert (kept.url, kept.headers) == (URL, {**HEADERS, "X-Token": "new"})


async def test_a_replaced_callback_keeps_what_comes_back_as_shown(bench: V1Bench) -> None:
    id = await created_on_platform(bench)
    detail = (await bench.request("GET", f"/timers/{id}")).data["callback_config"]
    body = {"callback": {**detail, "payload": [1]}, "metadata": {"a": 1}}
    reply = await bench.request("PUT", f"/timers/{id}", body)
    assert reply.status == 200, reply.content
    kept = await stored(bench, id)
    assert (kept.url, kept.headers) == (URL, HEADERS)
    assert (await bench.request("GET", f"/timers/{id}")).data["metadata"] == {"a": 1}


async def test_an_update_that_names_nothing_stored_is_refused(bench: V1Bench) -> None:
    id = await created_on_platform(bench)
    before = await stored(bench, id)
    headers = {"X-Other-Token": "[redacted]"}
    changed = callback(headers=headers)
    reply = await bench.request("PUT", f"/timers/{id}", {"callback": changed})
    assert reply.error == (400, 2, f"callback.headers.X-Other-Token {ADVICE}")
    reply = await bench.request("PUT", path_of("default", id), {"callbackHeaders": headers})
    message = f"callbackHeaders.X-Other-Token {ADVICE}"
    assert error_of(reply) == (400, "INVALID_INPUT", message)
    assert await stored(bench, id) == before
    await bench.request("DELETE", f"/timers/{id}")
    reply = await bench.request("PUT", f"/timers/{id}", {"callback": changed})
    assert reply.error == (400, 2, "cannot update timer with status 'canceled'")
    missing = "01a1e000-0000-7000-8000-000000000000"
    reply = await bench.request("PUT", f"/timers/{missing}", {"callback": changed})
    assert reply.error == (404, 3, "timer not found")


async def test_a_repeat_as_shown_is_a_repeat(bench: V1Bench) -> None:
    await bench.request("POST", BASE, v1_body())
    reply = await bench.request("POST", BASE, shown_body())
    assert (reply.status, reply.headers["timer-existence"]) == (200, "existing")
    reply = await bench.request("POST", BASE, shown_body(payload=1))
    assert reply.json["details"] == {"fields": ["payload"]}
    reply = await bench.request("POST", f"{BASE}/batch", {"timers": [shown_body()]})
    assert reply.json["results"][0]["status"] == "existing"
    assert (await imported(bench, shown_body()))["existing"] == 1
    assert (await stored(bench)).headers == HEADERS


async def test_an_upsert_keeps_what_comes_back_as_shown(bench: V1Bench) -> None:
    await bench.request("POST", BASE, v1_body())
    reply = await bench.request("POST", f"{BASE}/create", shown_body(payload=[2]))
    assert (reply.status, reply.headers["timer-existence"]) == (200, "replaced")
    kept = await stored(bench)
    assert (kept.url, kept.headers, kept.payload) == (URL, HEADERS, Raw(b"[2]"))


async def test_new_timers_need_the_values_themselves(bench: V1Bench) -> None:
    message = f"callbackHeaders.Authorization {ADVICE}"
    for path in (BASE, f"{BASE}/create"):
        reply = await bench.request("POST", path, shown_body())
        assert error_of(reply) == (400, "INVALID_INPUT", message)
    timers = [shown_body(), v1_body("fine"), shown_body(callbackHeaders=None)]
    reply = await bench.request("POST", f"{BASE}/batch", {"timers": timers})
    first, second, third = reply.json["results"]
    assert first["error"]["message"] == message
    assert second["status"] == "created"
    assert third["error"]["message"] == f"callbackUrl {ADVICE}"
    answer = await imported(bench, shown_body())
    assert [each["message"] for each in answer["errors"]] == [message]
    reply = await bench.create(callback=callback(headers=SHOWN))
    assert reply.error == (400, 2, f"callback.headers.Authorization {ADVICE}")


async def test_an_idempotency_key_needs_the_values_themselves(bench: V1Bench) -> None:
    assert (await bench.create(callback=callback(), idempotency_key="k")).status == 201
    reply = await bench.create(callback=callback(headers=SHOWN), idempotency_key="k")
    assert reply.error == (400, 2, f"callback.headers.Authorization {ADVICE}")


async def test_a_copy_without_secrets_is_for_timers_that_exist(bench: V1Bench) -> None:
    await bench.request("POST", BASE, v1_body())
    (full,) = (await bench.request("GET", f"{BASE}/export")).json["timers"]
    assert full["callback"]["headers"] == SHOWN
    line = {"full": 1, "timer": full}
    assert (await imported(bench, line))["existing"] == 1
    elsewhere = await V1Bench().open()
    answer = await imported(elsewhere, line)
    assert (answer["created"], answer["invalid"]) == (0, 1)
    message = f"timer.callback.headers.Authorization {ADVICE}"
    assert answer["errors"][0]["message"] == message
    (full,) = (await bench.request("GET", f"{BASE}/export?secrets=true")).json["timers"]
    assert (await imported(elsewhere, {"full": 1, "timer": full}))["created"] == 1
    assert await stored(elsewhere) == await stored(bench)


@pytest.mark.parametrize(
    ("changes", "has_secrets"),
    [
        ({"headers": {}}, True),
        ({"url": "https://example.com/"}, True),
        ({"url": "https://example.com/@", "headers": {"X-Tag": "a"}}, False),
    ],
)
async def test_nothing_in_a_copy_without_secrets_follows_from_them(
    bench: V1Bench, changes: dict[str, object], has_secrets: bool
) -> None:
    """Somebody who knows the rest of a create could try secrets until its fingerprint is right."""
    body = callback(**changes)
    first = await bench.create(callback=body, idempotency_key="k")
    (shown,) = (await bench.request("GET", f"{BASE}/export")).json["timers"]
    assert ("fingerprint" not in shown) is has_secrets
    (whole,) = (await bench.request("GET", f"{BASE}/export?secrets=true")).json["timers"]
    assert len(whole["fingerprint"]) == 32
    assert (await imported(bench, {"full": 1, "timer": shown}))["existing"] == 1
    again = await bench.create(callback=body, idempotency_key="k")
    assert (again.status, again.data["id"]) == (200, first.data["id"])


async def test_errors_do_not_repeat_them(bench: V1Bench) -> None:
    await bench.request("POST", BASE, v1_body())
    for body in (
        v1_body(callbackHeaders={"Authorization": f"{MARK}\n"}),
        v1_body(callbackHeaders={"Authorization": f"{MARK}\u20ac"}),
        v1_body(callbackHeaders={"Authorization": [MARK]}),
        v1_body(callbackHeaders=MARK),
        v1_body(callbackUrl=f"ftp://user:{MARK}@example.com"),
        v1_body(callbackUrl=f"https://{MARK}@{MARK}@example.com"),
        v1_body(callbackHeaders={"Authorization": f"other-{MARK}"}),
        json.encode(v1_body())[:-1],
    ):
        reply = await bench.request("POST", BASE, body)
        assert reply.status in (400, 409)
        assert MARK.encode() not in reply.content


MOVES = (
    ("PUT", path_of("default", "one"), {"callbackUrl": "https://other.example/due"}),
    ("PUT", path_of("default", "one"), {"callbackUrl": "http://example.com/due"}),
    ("PUT", path_of("default", "one"), {"callbackUrl": "https://example.com:8443/due"}),
    ("PUT", path_of("default", "one"), {"callbackUrl": "https://example.com@other.example/due"}),
    (
        "PUT",
        path_of("default", "one"),
        {"callbackUrl": "https://other.example/", "callbackHeaders": SHOWN},
    ),
    ("POST", f"{BASE}/create", shown_body(callbackUrl="https://other.example/due")),
)


@pytest.mark.parametrize(("method", "path", "body"), MOVES)
async def test_a_writer_cannot_have_a_hidden_secret_sent_elsewhere(
    bench: V1Bench,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: dict[str, object],
) -> None:
    await bench.request("POST", BASE, v1_body())
    writer = Access(name="writer", roles=frozenset({Role.READ, Role.WRITE}))
    with monkeypatch.context() as changed:
        changed.setattr(auth, "EVERYTHING", writer)
        reply = await bench.request(method, path, body)
        assert error_of(reply)[:2] == (400, "INVALID_INPUT")
        assert reply.json["details"] == {"field": "callbackHeaders.Authorization"}
        assert (await stored(bench)).url == URL
        # With a value of their own they may, and on the same host as well.
        given = {**body, "callbackHeaders": {"Authorization": "Bearer own"}}
        assert (await bench.request(method, path, given)).status == 200
    assert (await stored(bench)).headers == {"Authorization": "Bearer own"}


def delete_once_read(bench: V1Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a timer is deleted as soon as it has been read, as by a racing request."""
    read = bench.store.get

    async def read_and_delete(key: TimerKey) -> Timer | None:
        timer = await read(key)
        await bench.store.remove_if_pending(key)
        return timer

    monkeypatch.setattr(bench.store, "get", read_and_delete)


@pytest.mark.parametrize("door", ["batch", "import", "copy"])
async def test_a_race_with_a_delete_moves_no_secret(
    bench: V1Bench, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    await bench.request("POST", BASE, v1_body())
    (full,) = (await bench.request("GET", f"{BASE}/export")).json["timers"]
    elsewhere = "https://other.example/due"
    moved = shown_body(callbackUrl=elsewhere)
    full["callback"]["url"] = elsewhere
    writer = Access(name="writer", roles=frozenset({Role.WRITE}))
    with monkeypatch.context() as racing:
        racing.setattr(auth, "EVERYTHING", writer)
        delete_once_read(bench, racing)
        if door == "batch":
            reply = await bench.request("POST", f"{BASE}/batch", {"timers": [moved]})
            message = reply.json["results"][0]["error"]["message"]
        else:
            line = moved if door == "import" else {"full": 1, "timer": full}
            message = (await imported(bench, line))["errors"][0]["message"]
    assert "is [redacted], but the callback goes elsewhere now" in message
    assert await bench.store.get(TimerKey("default", "one")) is None


async def test_a_writer_may_change_the_path_and_keep_the_secrets(
    bench: V1Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.request("POST", BASE, v1_body())
    writer = Access(name="writer", roles=frozenset({Role.WRITE}))
    monkeypatch.setattr(auth, "EVERYTHING", writer)
    reply = await bench.request(
        "PUT", path_of("default", "one"), {"callbackUrl": "https://example.com/new"}
    )
    assert reply.status == 200
    assert (await stored(bench)).headers == HEADERS


async def test_an_admin_may_move_secrets(bench: V1Bench) -> None:
    await bench.request("POST", BASE, v1_body())
    reply = await bench.request(
        "PUT", path_of("default", "one"), {"callbackUrl": "https://other.example/"}
    )
    assert reply.status == 200
    assert (await stored(bench)).headers == HEADERS


async def test_a_writer_of_the_platform_cannot_move_secrets(
    bench: V1Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await created_on_platform(bench)
    writer = Access(name="writer", roles=frozenset({Role.WRITE}))
    monkeypatch.setattr(auth, "EVERYTHING", writer)
    moved = {"callback": callback(url="https://other.example/", headers=SHOWN)}
    status, code, message = (await bench.request("PUT", f"/timers/{id}", moved)).error
    assert (status, code) == (400, 2)
    assert message.startswith("callback.headers.Authorization is [redacted], but the callback goes")
