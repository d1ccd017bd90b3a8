"""Content is returned as it was stored: every field, to the byte."""

from collections.abc import Iterable, Mapping

import pytest
from msgspec import UNSET, Raw

from duetime.domain import transitions
from duetime.domain.callback import (
    BusCallback,
    Callback,
    CallbackProtocol,
    HttpCallback,
    NatsCallback,
)
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer
from duetime.domain.transitions import Change
from duetime.testing.store_contract.steps import (
    Reopen,
    Store,
    at,
    claim,
    completion,
    create,
    fields_of,
    own_shards,
)
from duetime.testing.timers import make_timer

JSON_TEXTS = [
    b"null",
    b"true",
    b"0",
    b"-0.0",
    b'""',
    b"[]",
    b"{}",
    b"123456789012345678901234567890.000000000000000000001",
    b"1E400",
    b'{"b":1,"a":2,"b":3}',
    b'{ "spaces" : [ 1 , 2 ] }',
    b'"\\u00e9 \\u0000 \\ud83d\\ude00 \\/"',
    '"é 😀 \u2028"'.encode(),
    b'"it\'s \\"quoted\\" \\\\ ; -- $1 ? %s"',
    b"[" * 200 + b"]" * 200,
    b'{"deep":{"er":[{"and":{"deeper":null}}]}}',
    b'"' + b"x" * 100_000 + b'"',
]

CALLBACKS: list[Callback] = [
    HttpCallback(url="https://example.com"),
    HttpCallback(
        url="http://example.com:8080/a?b=c&d='e'#f",
        headers={"X-One": "1", "x-two": 'a "b" \\ c', "X-Empty": ""},
        payload=Raw(b'{"a":1}'),
        timeout_ms=1_234,
        protocol=CallbackProtocol.ANSWER,
    ),
    HttpCallback(url="https://example.com/" + "x" * 2_000, headers={}),
    NatsCallback(topic="orders.due"),
    NatsCallback(topic="orders", key="due", headers={"k": "v"}, payload=Raw(b"[1]"), timeout_ms=5),
    BusCallback(),
    BusCallback(timeout_ms=7),
]

POLICIES = [
    None,
    RetryPolicy(),
    RetryPolicy(max_retries=0),
    RetryPolicy(
        max_retries=1_000,
        max_duration_ms=31_536_000_000,
        initial_interval_ms=1,
        backoff_multiplier=1.1,
        max_interval_ms=7,
    ),
]


async def assert_kept(store: Store, reopen: Reopen, timers: Iterable[Timer]) -> None:
    """Every timer reads the same when pending, claimed, finished, and after the store reopened."""
    expected = {timer.key: timer for timer in timers}
    for result in await create(store, *expected.values()):
        assert result.timer == expected[result.timer.key]
    await assert_stored(store, expected)

    leases = await own_shards(store)
    for timer in expected.values():
        expected[timer.key] = transitions.claimed(timer, epoch=leases[timer.shard], now=at(0))
    claims = await claim(store, leases)
    for claimed in claims:
        executing = expected[TimerKey(claimed.namespace, claimed.id)]
        assert fields_of(claimed) == fields_of(transitions.claim_of(executing))
    await assert_stored(store, expected)

    settlements = [completion(claimed) for claimed in claims]
    assert await store.settle(settlements) == [True] * len(expected)
    for settlement in settlements:
        key = TimerKey(settlement.namespace, settlement.id)
        expected[key] = transitions.settled(expected[key], settlement)
    await assert_stored(store, expected)
    await assert_stored(await reopen(), expected)


async def assert_stored(store: Store, expected: Mapping[TimerKey, Timer]) -> None:
    for key, timer in expected.items():
        assert await store.get(key) == timer


@pytest.mark.asyncio
class ContentContract:
    async def test_payloads_are_kept_to_the_byte(self, store: Store, reopen: Reopen) -> None:
        callbacks = [
            HttpCallback(url="https://a.example", payload=Raw(text)) for text in JSON_TEXTS
        ]
        timers = [make_timer(f"t{n}", callback=each) for n, each in enumerate(callbacks)]
        await assert_kept(store, reopen, timers)

    async def test_metadata_is_kept_to_the_byte(self, store: Store, reopen: Reopen) -> None:
        timers = [make_timer(f"t{n}", metadata=Raw(text)) for n, text in enumerate(JSON_TEXTS)]
        await assert_kept(store, reopen, timers)

    async def test_a_json_null_is_not_the_absence_of_a_value(self, store: Store) -> None:
        null = Raw(b"null")
        absent = make_timer("absent", callback=HttpCallback(url="https://a.example"))
        given = make_timer(
            "given",
            callback=HttpCallback(url="https://a.example", payload=null),
            metadata=null,
        )
        nats = make_timer("nats", callback=NatsCallback(topic="t", payload=null))
        await create(store, absent, given, nats)
        for timer in (absent, given, nats):
            assert await store.get(timer.key) == timer
        claims = {claim.id: claim for claim in await claim(store, await own_shards(store))}
        for timer in (absent, given, nats):
            assert claims[timer.key.id].callback == timer.callback

    async def test_every_kind_of_callback_is_kept(self, store: Store, reopen: Reopen) -> None:
        timers = [make_timer(f"t{n}", callback=each) for n, each in enumerate(CALLBACKS)]
        await assert_kept(store, reopen, timers)

    async def test_all_other_content_is_kept(self, store: Store, reopen: Reopen) -> None:
        timers = [
            *(make_timer(f"policy-{n}", retry_policy=each) for n, each in enumerate(POLICIES)),
            *(
                make_timer(f"correlation-{n}", correlation_id=each)
                for n, each in enumerate(["", "c-1", "'\"\U0001f9ed"])
            ),
            *(
                make_timer(f"fingerprint-{n}", fingerprint=each)
                for n, each in enumerate([b"\x00\xff" * 16, b"text"])
            ),
        ]
        await assert_kept(store, reopen, timers)

    async def test_the_order_of_a_command_is_kept(self, store: Store, reopen: Reopen) -> None:
        timers = [make_timer("first"), make_timer("second", command_order=2**62 + 1)]
        await assert_kept(store, reopen, timers)

    async def test_instants_are_kept_to_the_microsecond(self, store: Store, reopen: Reopen) -> None:
        timers = [
            make_timer(f"t{n}", execute_at=Instant(each), created_at=at(0.000001))
            for n, each in enumerate([0, 1, 1_893_456_000_123_456, 253_402_300_799_999_999])
        ]
        results = await create(store, *timers)
        assert [result.timer for result in results] == timers
        await assert_stored(await reopen(), {timer.key: timer for timer in timers})

    @pytest.mark.parametrize("text", [None, *JSON_TEXTS[:3]])
    async def test_changed_content_is_kept(
        self, store: Store, reopen: Reopen, text: bytes | None
    ) -> None:
        timer = make_timer(metadata=Raw(b'"old"'), retry_policy=RetryPolicy())
        await create(store, timer)
        raw = None if text is None else Raw(text)
        change = Change(
            updated_at=at(1),
            delivery_id="second",
            execute_at=at(2),
            callback=NatsCallback(topic="new", payload=UNSET if raw is None else raw),
            metadata=raw,
            retry_policy=None,
        )
        result = await store.change_if_pending(timer.key, change)
        expected = transitions.changed(timer, change)
        assert result is not None
        assert result.timer == expected
        assert await (await reopen()).get(timer.key) == expected
