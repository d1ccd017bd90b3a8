"""Texts and numbers that databases treat differently. Callers notice no difference."""

import json
from urllib.parse import quote

import httpx
import pytest

from duetime.domain.instants import format_instant
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.databases import on_every_database
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import count_timers, in_ms, timer_body, wait_for_status

pytestmark = [pytest.mark.e2e, on_every_database]

HOUR_MS = 3_600_000
ODD_TEXTS = {
    "a NUL": rb'"a\u0000b"',
    "half a surrogate pair": rb'"\ud800"',
    "a surrogate pair": rb'"\ud83d\ude00"',
    "beyond the first plane": '"\U0001f600"'.encode(),
    "characters that combine": '"e\u0301 \u212b \ufb01"'.encode(),
    "control characters": rb'"\u0001\u001f\u007f\u2028\ufeff\uffff"',
    "backslashes": rb'"\\ \\u0000 \\x41 \\. \\N"',
    "quotes": rb'"\' \'\' \" $$ $1 {} {1,2} %s ; --"'.replace(rb"\'", b"'"),
    "a key twice": b'{"a": 1, "a": 2}',
    "a number beyond 64 bits": b"123456789012345678901234567890",
    "a number beyond a double": b"1e400",
    "a negative zero": b"-0.0",
    "many digits": b"0.1000000000000000055511151231257827021181583404541015625",
    "deep nesting": b"[" * 500 + b"]" * 500,
}
# Pairs that some collations or normal forms take for the same are different keys.
ODD_KEYS = ["a\0b", "\U0001f600", "e\u0301", "\u00e9", " ", "\\", "'", "A", "a", "\u00df", "ss"]


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


async def test_content_is_kept_unchanged_or_refused(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    accepted: dict[str, tuple[str, bytes]] = {}
    for name, text in ODD_TEXTS.items():
        content = b'{"odd": [%s]}' % text
        if text.startswith(b'"'):
            content = b"{%s: %s}" % (text, text)
        answer = await api.post("/timers", content=_body(f"{receiver.url}/{quote(name)}", content))
        assert answer.status_code in (201, 400), (name, answer.text)
        if answer.status_code == 201:
            accepted[name] = (answer.json()["data"]["id"], content)
    assert len(accepted) > len(ODD_TEXTS) / 2
    for name, (timer_id, content) in accepted.items():
        timer = await wait_for_status(api, timer_id, "completed")
        (request,) = receiver.of(f"/{quote(name)}")
        assert request.body == content, name
        assert timer["callback_config"]["payload"] == json.loads(content), name
        assert timer["metadata"] == json.loads(content), name


async def test_only_equal_keys_are_the_same(api: httpx.AsyncClient) -> None:
    before = (await count_timers(api))["pending"]
    due_at = in_ms(HOUR_MS)
    ids = set()
    for key in ODD_KEYS:
        body = timer_body("https://example.com", due_at, idempotency_key=key)
        first, again = await api.post("/timers", json=body), await api.post("/timers", json=body)
        assert (first.status_code, again.status_code) in ((201, 200), (400, 400)), repr(key)
        if first.status_code == 201:
            assert first.json()["data"]["id"] == again.json()["data"]["id"], repr(key)
            ids.add(first.json()["data"]["id"])
    assert (await count_timers(api))["pending"] - before == len(ids) >= len(ODD_KEYS) - 1


def _body(url: str, content: bytes) -> bytes:
    """A create request, with the content as payload and as metadata."""
    callback = b'{"type": "http", "url": "%s", "payload": %s}' % (url.encode(), content)
    due_at = format_instant(in_ms(500)).encode()
    return b'{"execute_at": "%s", "callback": %s, "metadata": %s}' % (due_at, callback, content)
