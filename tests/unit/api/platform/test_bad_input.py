"""Bad input gets a 4xx that names the field, and nothing is written."""

import pytest

from tests.unit.api.asgi_client import API_KEY, ApiBench, call, create_body, make_api_rules
from tests.unit.service.service_bench import timer_rules

URL = "https://example.com"
DEEP = b"[" * 100_000


def with_callback(**changes: object) -> dict[str, object]:
    return create_body(callback={"type": "http", "url": URL, **changes})


def with_policy(**policy: object) -> dict[str, object]:
    return create_body(retry_policy=policy)


def with_text(member: bytes) -> bytes:
    """A complete body with one more member, byte for byte."""
    return (
        b'{"execute_at":"2030-01-01T00:00:10Z",'
        b'"callback":{"type":"http","url":"https://example.com"},' + member + b"}"
    )


NOT_JSON = "body is not valid JSON"
OBJECT_WANTED = "body must be an object"
DURATION = "must be a duration such as"

BODIES: list[tuple[str, object, str]] = [
    ("empty", b"", "body is empty"),
    ("blank", b" ", NOT_JSON),
    ("no JSON", b"hello", NOT_JSON),
    ("form", b"execute_at=2030-01-01", NOT_JSON),
    ("cut off", with_text(b'"metadata":1')[:-1], NOT_JSON),
    ("two values", with_text(b'"metadata":1') * 2, NOT_JSON),
    ("array", [create_body()], OBJECT_WANTED),
    ("string", "text", OBJECT_WANTED),
    ("null", None, OBJECT_WANTED),
    ("number", 7, OBJECT_WANTED),
    ("single quotes", b"{'execute_at':1}", NOT_JSON),
    ("byte order mark", b"\xef\xbb\xbf{}", NOT_JSON),
    ("UTF-16", '{"a":1}'.encode("utf-16"), "body is not valid UTF-8"),
    ("NaN", with_text(b'"metadata":NaN'), NOT_JSON),
    ("Infinity", with_text(b'"metadata":[-Infinity]'), NOT_JSON),
    ("NaN multiplier", with_text(b'"retry_policy":{"backoff_multiplier":NaN}'), NOT_JSON),
    ("bad UTF-8 in metadata", with_text(b'"metadata":"\xff"'), "body is not valid UTF-8"),
    ("overlong UTF-8", with_text(b'"metadata":"\xc0\x80"'), "body is not valid UTF-8"),
    ("surrogate in UTF-8", with_text(b'"metadata":"\xed\xa0\x80"'), "body is not valid UTF-8"),
    ("bad UTF-8 in ignored", with_text(b'"ignored":"\xff"'), "body is not valid UTF-8"),
    ("bad UTF-8 in key", with_text(b'"idempotency_key":"\xff"'), "body is not valid UTF-8"),
    ("lone surrogate", with_text(b'"metadata":"\\ud800"'), NOT_JSON),
    ("lone surrogate in key", with_text(b'"idempotency_key":"\\udc00"'), NOT_JSON),
    ("control character", with_text(b'"metadata":"\x01"'), NOT_JSON),
    ("trailing comma", with_text(b'"metadata":[1,]'), NOT_JSON),
    ("leading zero", with_text(b'"metadata":01'), NOT_JSON),
    ("deep metadata", with_text(b'"metadata":' + b"[" * 64 + b"]" * 64), "body is nested deeper"),
    ("deep objects", with_text(b'"metadata":' + b'{"a":' * 64 + b"1" + b"}" * 64), "body is nes"),
    ("very deep", with_text(b'"metadata":' + DEEP + b"]" * 100_000), "body is nested deeper"),
    ("deep and open", b'{"metadata":' + DEEP, "body is nested deeper"),
    ("no execute_at", {"callback": {"type": "http", "url": URL}}, "execute_at or execute_in is re"),
    ("no callback", {"execute_at": "2030-01-01T00:00:10Z"}, "callback is required"),
    ("number as instant", create_body(execute_at=1893456010), "execute_at must be a string"),
    ("null as instant", create_body(execute_at=None), "execute_at must be a string"),
    ("naive", create_body(execute_at="2030-01-01T00:00:10"), "execute_at must have a UTC offset"),
    ("words", create_body(execute_at="tomorrow"), "execute_at must be a date and time in ISO"),
    ("empty instant", create_body(execute_at=""), "execute_at must be a date and time"),
    ("date only", create_body(execute_at="2030-01-01"), "execute_at must be a date and time"),
    ("no such day", create_body(execute_at="2030-02-30T00:00:00Z"), "execute_at must be a date"),
    ("long instant", create_body(execute_at="2" * 9_999), "execute_at must be a date and time"),
    (
        "other digits",
        create_body(execute_at="\uff12\uff10\uff13\uff10-01-01T00:00:10Z"),
        "execute_at must be a",
    ),
    ("past", create_body(execute_at="2029-12-31T23:59:59Z"), "execute_at must be in the future"),
    ("before 1970", create_body(execute_at="1912-06-23T00:00:00Z"), "execute_at must be in the fu"),
    ("year 1", create_body(execute_at="0001-01-01T00:00:00+23:59"), "execute_at must be in the fu"),
    (
        "too close",
        create_body(execute_at="2030-01-01T00:00:04Z"),
        "execute_at must be at least 5 s",
    ),
    ("year 9999", create_body(execute_at="9999-12-31T23:59:59-23:59"), "execute_at is too far in"),
    ("year 10000", create_body(execute_at="10000-01-01T00:00:00Z"), "execute_at must be a date"),
    ("callback text", create_body(callback="x"), "callback must be an object"),
    ("callback null", create_body(callback=None), "callback must be an object"),
    ("no type", create_body(callback={"url": URL}), "callback.type is required"),
    ("unknown type", with_callback(type="smtp"), "callback.type must be 'http' or 'nats'"),
    ("bus type", create_body(callback={"type": "bus"}), "callback.type must be 'http' or 'nats'"),
    ("number as type", with_callback(type=1), "callback.type must be a string"),
    ("no url", create_body(callback={"type": "http"}), "callback.url is required"),
    ("number as url", with_callback(url=7), "callback.url must be a string"),
    ("no http url", with_callback(url="ftp://example.com"), "callback.url "),
    ("NUL in url", with_callback(url=URL + "/\0"), "callback.url "),
    ("long url", with_callback(url=URL + "/" + "x" * 2048), "callback.url "),
    (
        "misspelt member",
        with_callback(haeders={}),
        "callback.haeders is not a known field; did you mean 'headers'?",
    ),
    (
        "member of the other type",
        create_body(callback={"type": "nats", "topic": "a", "url": URL}),
        "callback.url is not a known field: this object takes type, topic, key, headers, payload",
    ),
    (
        "member of the other API",
        create_body(executeIn="30s"),
        "executeIn is not a known field; did you mean 'execute_in'?",
    ),
    ("number as duration", create_body(execute_in=30), 'execute_in must be a string such as "30s"'),
    ("domain's member", with_callback(timeout_ms=1), "callback.timeout_ms is not a known field"),
    ("headers list", with_callback(headers=[]), "callback.headers must be an object or null"),
    ("number header", with_callback(headers={"A": 1}), "callback.headers.A must be a string"),
    ("header injection", with_callback(headers={"A": "x\r\nB: y"}), "callback.headers.A "),
    ("injected name", with_callback(headers={"A\r\nB": "x"}), "callback.headers "),
    ("many headers", with_callback(headers={f"A{n}": "" for n in range(999)}), "callback.headers "),
    (
        "NATS without a server",
        create_body(callback={"type": "nats", "topic": "a"}),
        "callback.type 'nats' needs a NATS server",
    ),
    ("no topic", create_body(callback={"type": "nats"}), "callback.topic is required"),
    ("key number", create_body(idempotency_key=1), "idempotency_key must be a string or null"),
    ("empty key", create_body(idempotency_key=""), "idempotency_key must have 1 to 255"),
    ("long key", create_body(idempotency_key="x" * 256), "idempotency_key must have 1 to 255"),
    ("NUL in key", create_body(idempotency_key="a\0"), "idempotency_key must not contain"),
    ("policy list", create_body(retry_policy=[]), "retry_policy must be an object or null"),
    ("policy member", with_policy(retries=1), "retry_policy.retries is not a known field"),
    ("policy text", with_policy(max_retries="3"), "retry_policy.max_retries must be a whole"),
    ("policy fraction", with_policy(max_retries=1.5), "retry_policy.max_retries must be a whole"),
    ("negative retries", with_policy(max_retries=-1), "retry_policy.max_retries must be from 0"),
    ("many retries", with_policy(max_retries=101), "retry_policy.max_retries must be from 0"),
    (
        "endless retries",
        with_text(b'"retry_policy":{"max_retries":' + b"9" * 5_000 + b"}"),
        "retry_policy.max_retries is out of range",
    ),
    ("no attempts", with_policy(max_attempts=0), "retry_policy.max_attempts must be from 1"),
    (
        "counts that differ",
        with_policy(max_attempts=2, max_retries=2),
        "retry_policy.max_attempts and max_retries contradict each other",
    ),
    (
        "durations that differ",
        with_policy(max_attempts_duration="1h", max_retry_attempts_duration="61m"),
        "retry_policy.max_attempts_duration and max_retry_attempts_duration contradict each other",
    ),
    ("interval number", with_policy(initial_interval=5), "retry_policy.initial_interval must be a"),
    (
        "interval text",
        with_policy(initial_interval="soon"),
        f"retry_policy.initial_interval {DURATION}",
    ),
    (
        "interval zero",
        with_policy(initial_interval="0s"),
        "retry_policy.initial_interval must be f",
    ),
    ("interval sum", with_policy(max_interval="31d"), "retry_policy.max_interval must be from 1ms"),
    (
        "interval order",
        with_policy(initial_interval="2s", max_interval="1s"),
        "retry_policy.initial_interval must not be longer than max_interval",
    ),
    ("duration", with_policy(max_attempts_duration="999d"), "retry_policy.max_retry_attempts_dura"),
    ("multiplier", with_policy(backoff_multiplier=0.5), "retry_policy.backoff_multiplier must be"),
    (
        "infinite multiplier",
        with_text(b'"retry_policy":{"backoff_multiplier":1e999}'),
        "retry_policy.backoff_multiplier is out of range",
    ),
]

UPDATES: list[tuple[str, object, str]] = [
    ("nothing", {}, "body has nothing to update"),
    ("read-only", {"status": "canceled"}, "status is not a known field"),
    *[
        (name, body, message)
        for name, body, message in BODIES
        if not message.startswith("idempotency_key")
        and name not in ("no execute_at", "no callback", "lone surrogate in key")
    ],
]


def ids(table: list[tuple[str, object, str]]) -> list[str]:
    return [name for name, _, _ in table]


@pytest.mark.parametrize(("name", "body", "message"), BODIES, ids=ids(BODIES))
async def test_a_bad_create_is_refused(
    api: ApiBench, name: str, body: object, message: str
) -> None:
    reply = await api.request("POST", "/timers", body)
    status, code, told = reply.error
    assert (status, code) == (400, 2)
    assert told.startswith(message)
    assert sum((await api.timers_stored()).values()) == 0


@pytest.mark.parametrize(("name", "body", "message"), UPDATES, ids=ids(UPDATES))
async def test_a_bad_update_is_refused(
    api: ApiBench, name: str, body: object, message: str
) -> None:
    created = await api.create(metadata=1)
    path = f"/timers/{created.data['id']}"
    before = (await api.request("GET", path)).content
    status, code, told = (await api.request("PUT", path, body)).error
    assert (status, code) == (400, 2)
    assert told.startswith(message)
    assert (await api.request("GET", path)).content == before


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("status=done", "status must be one of pending, executing, completed, failed, canceled"),
        ("status=", "status must be one of"),
        ("status=PENDING", "status must be one of"),
        ("status=pending&status=failed", "status is given more than once"),
        ("stauts=pending", "stauts is not a known parameter"),
        ("limit=0", "limit must be a whole number from 1 to 200"),
        ("limit=201", "limit must be a whole number from 1 to 200"),
        ("limit=-1", "limit must be"),
        ("limit=1.5", "limit must be"),
        ("limit=ten", "limit must be"),
        ("limit=", "limit must be"),
        ("limit=%D9%A3", "limit must be"),
        ("limit=" + "9" * 5_000, "limit must be"),
        ("offset=-1", "offset must be a whole number from 0"),
        (f"offset={2**63}", "offset must be"),
        ("sort=id", "sort must be one of created_at, execute_at"),
        ("order=down", "order must be one of asc, desc"),
        ("status=%ff", "query cannot be read"),
        ("status=\udcff", "query cannot be read"),
        ("a=1&" * 100, "query cannot be read"),
    ],
)
async def test_a_bad_query_is_refused(api: ApiBench, query: str, message: str) -> None:
    status, code, told = (await api.request("GET", f"/timers?{query}")).error
    assert (status, code) == (400, 2)
    assert told.startswith(message)


async def test_64_levels_and_brackets_in_strings_are_accepted(api: ApiBench) -> None:
    assert (await api.create(metadata="[{" * 1_000)).status == 201
    assert (await api.create(metadata=[[]] * 1_000)).status == 201
    assert (await api.create(metadata=['\\"[' * 100] * 100)).status == 201
    fitting = with_text(b'"metadata":' + b"[" * 63 + b"]" * 63)
    assert (await api.request("POST", "/timers", fitting)).status == 201


async def test_oversize_values_are_413() -> None:
    rules = timer_rules(max_payload_bytes=100, max_metadata_bytes=100)
    api = ApiBench(rules=rules)
    await api.open()
    payload = await api.request("POST", "/timers", with_callback(payload="x" * 100))
    assert payload.error == (413, 2, "callback.payload must be at most 100 bytes of JSON")
    headers = await api.request("POST", "/timers", with_callback(headers={"A": "x" * 20_000}))
    assert headers.error[:2] == (413, 2)
    assert headers.error[2].startswith("callback.headers ")
    metadata = await api.create(metadata="x" * 100)
    assert metadata.error == (413, 2, "metadata must be at most 100 bytes of JSON")
    assert sum((await api.timers_stored()).values()) == 0


class TestBodySize:
    key = (b"x-api-key", API_KEY.encode())

    async def bench(self) -> ApiBench:
        api = ApiBench(api_rules=make_api_rules(max_body_bytes=1_000))
        await api.open()
        return api

    @pytest.mark.parametrize("length", [b"1001", b"9" * 19, b"9" * 5_000])
    async def test_a_declared_length_over_the_limit_is_refused_unread(self, length: bytes) -> None:
        api = await self.bench()
        reply = await call(api.app, "POST", "/timers", [], [self.key, (b"content-length", length)])
        assert reply.error == (413, 2, "body must be at most 1000 bytes")

    async def test_reading_stops_when_the_limit_is_passed(self) -> None:
        api = await self.bench()
        chunks = iter([b" " * 400] * 10)
        for method, path in (
            ("POST", "/timers"),
            ("PUT", f"/timers/{'0' * 8}-0000-0000-0000-{'0' * 12}"),
        ):
            reply = await call(api.app, method, path, chunks, [self.key])
            assert reply.error == (413, 2, "body must be at most 1000 bytes")
        assert len(list(chunks)) == 2

    async def test_a_body_in_chunks_is_joined(self) -> None:
        api = await self.bench()
        body = with_text(b'"metadata":1')
        chunks = [body[:10], b"", body[10:20], body[20:]]
        assert (await call(api.app, "POST", "/timers", chunks, [self.key])).status == 201
