"""Any request gets a well-formed answer that does not blame the server."""

import asyncio

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.api.asgi_client import ApiBench, Reply

NAMES = st.sampled_from(
    [
        "execute_at", "callback", "metadata", "retry_policy", "idempotency_key", "type", "url",
        "headers", "payload", "topic", "key", "max_retries", "max_attempts", "initial_interval",
        "max_interval", "backoff_multiplier", "max_attempts_duration",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(
        ["http", "nats", "https://example.com", "2030-01-01T00:00:10Z", "10s", "1h", "\0", "[{"]
    ),
    st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=6),
    max_leaves=20,
)
BODIES = st.fixed_dictionaries(
    {
        "execute_at": TEXTS | st.just("2030-01-01T00:00:10Z"),
        "callback": st.fixed_dictionaries(
            {"type": st.sampled_from(["http", "nats", "x"]), "url": TEXTS},
            optional={"headers": VALUES, "payload": VALUES, "topic": TEXTS, "key": TEXTS},
        ),
    },
    optional={"metadata": VALUES, "retry_policy": VALUES, "idempotency_key": TEXTS | VALUES},
)
PIECES = st.sampled_from(
    [
        b'{"execute_at":"2030-01-01T00:00:10Z","callback":', b'{"type":"http","url":"https://a.b"}',
        b"}", b"{", b"[", b"]", b'"', b"\\", b"\\u", b"\\ud800", b",", b":", b"null", b"1e5", b"-",
        b'"metadata":', b"\xff", b"\xed\xa0\x80", b" ", b"NaN", b"[" * 2_000,
    ]
)  # fmt: skip


async def send_to_all(body: bytes) -> list[Reply]:
    api = ApiBench()
    await api.open()
    created = await api.create()
    path = f"/timers/{created.data['id']}"
    replies = [await api.request("POST", "/timers", body), await api.request("PUT", path, body)]
    # Every accepted timer can be read back, as valid JSON.
    for timer in (await api.request("GET", "/timers")).data["timers"]:
        detail = await api.request("GET", f"/timers/{timer['id']}")
        assert detail.status == 200
        msgspec.json.decode(detail.content, type=msgspec.Raw)
        detail.content.decode()
    return replies


def check(body: bytes) -> None:
    for reply in asyncio.run(send_to_all(body)):
        assert reply.status < 500, reply
        assert reply.status < 300 or reply.error


@settings(max_examples=150)
@given(st.binary())
def test_random_bytes(body: bytes) -> None:
    check(body)


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=12).map(b"".join))
def test_random_pieces_of_json(body: bytes) -> None:
    check(body)


@settings(max_examples=200)
@given(VALUES | BODIES)
def test_random_json(body: object) -> None:
    check(msgspec.json.encode(body))
