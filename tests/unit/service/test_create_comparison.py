"""The fields in which an existing timer differs from a requested one."""

import pytest
from msgspec import UNSET, Raw
from msgspec.structs import replace

from duetime.domain.callback import (
    BusCallback,
    Callback,
    CallbackProtocol,
    HttpCallback,
    NatsCallback,
    Payload,
)
from duetime.domain.instants import plus_ms
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer
from duetime.service.create_comparison import differing_fields
from duetime.testing.timers import make_timer
from duetime.testing.virtual_clock import START_AT

TIMEOUT_MS = 30_000
LATER = plus_ms(START_AT, 60_000)
POLICY = RetryPolicy(max_retries=2)
STATUS = HttpCallback(
    url="https://example.com/due", headers={"X-A": "b"}, payload=Raw('{"a":1,"b":2}')
)
ANSWER = replace(STATUS, protocol=CallbackProtocol.ANSWER)
NATS = NatsCallback(topic="a.b", payload=Raw("1"))
TIMER = make_timer(callback=STATUS, retry_policy=POLICY, metadata=Raw("[1, 2]"))


def between(requested: Timer, existing: Timer) -> list[str]:
    """The differences, which are the same from either side."""
    fields = differing_fields(requested, existing, TIMEOUT_MS)
    assert differing_fields(existing, requested, TIMEOUT_MS) == fields
    return fields


def between_callbacks(requested: Callback, existing: Callback) -> list[str]:
    return between(make_timer(callback=requested), make_timer(callback=existing))


def test_an_equal_timer_differs_in_nothing() -> None:
    again = replace(TIMER, delivery_id="other", created_at=LATER, updated_at=LATER)
    assert between(again, TIMER) == []


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (replace(TIMER, execute_at=LATER), "execute_at"),
        (replace(TIMER, retry_policy=RetryPolicy(max_retries=3)), "retry_policy"),
        (replace(TIMER, retry_policy=None), "retry_policy"),
        (replace(TIMER, metadata=Raw("[2, 1]")), "metadata"),
        (replace(TIMER, metadata=None), "metadata"),
    ],
)
def test_each_differing_field_is_named(other: Timer, field: str) -> None:
    assert between(other, TIMER) == [field]


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (replace(STATUS, url="https://example.com/Due"), "callback.url"),
        (replace(STATUS, headers={"X-A": "c"}), "callback.headers"),
        (replace(STATUS, headers=None), "callback.headers"),
        (replace(STATUS, payload=Raw('{"a":1,"b":3}')), "callback.payload"),
        (replace(STATUS, payload=UNSET), "callback.payload"),
        (replace(STATUS, timeout_ms=29_999), "callback.timeout"),
        (ANSWER, "callback.protocol"),
        (NATS, "callback.type"),
        (BusCallback(), "callback.type"),
    ],
)
def test_each_differing_part_of_the_callback_is_named(other: Callback, field: str) -> None:
    assert between_callbacks(other, STATUS) == [field]


def test_callbacks_at_nats_are_compared_by_their_parts() -> None:
    assert between_callbacks(NATS, replace(NATS, headers={})) == []
    other = replace(NATS, topic="a", key="b", ack=True)
    assert between_callbacks(other, NATS) == ["callback.topic", "callback.key", "callback.ack"]


def test_all_differing_fields_are_named_in_a_fixed_order() -> None:
    callback = HttpCallback(
        url="https://example.com/", timeout_ms=1, protocol=CallbackProtocol.ANSWER
    )
    assert between(make_timer(callback=callback, execute_at=LATER), TIMER) == [
        "execute_at",
        "retry_policy",
        "callback.url",
        "callback.headers",
        "callback.payload",
        "callback.timeout",
        "callback.protocol",
        "metadata",
    ]


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (STATUS, replace(STATUS, payload=Raw(' { "b": 2, "a": 1 } '))),
        (STATUS, replace(STATUS, timeout_ms=TIMEOUT_MS)),
        (replace(STATUS, headers=None), replace(STATUS, headers={})),
        (replace(ANSWER, payload=UNSET), replace(ANSWER, payload=Raw("null"))),
        (BusCallback(), BusCallback(timeout_ms=TIMEOUT_MS)),
    ],
)
def test_other_words_for_the_same_callback_are_no_difference(one: Callback, same: Callback) -> None:
    assert between_callbacks(one, same) == []


def test_null_as_the_whole_body_differs_from_none() -> None:
    nothing, null = replace(STATUS, payload=UNSET), replace(STATUS, payload=Raw("null"))
    assert between_callbacks(nothing, null) == ["callback.payload"]


@pytest.mark.parametrize("status", [UNSET, Raw("null")])
@pytest.mark.parametrize("answer", [UNSET, Raw("null")])
def test_two_protocols_without_a_payload_differ_only_in_the_protocol(
    status: Payload, answer: Payload
) -> None:
    one, other = replace(STATUS, payload=status), replace(ANSWER, payload=answer)
    assert between_callbacks(one, other) == ["callback.protocol"]


def test_a_policy_without_retries_is_as_good_as_none() -> None:
    none = replace(TIMER, retry_policy=None)
    assert between(replace(TIMER, retry_policy=RetryPolicy(max_retries=0)), none) == []


def test_metadata_in_other_words_is_no_difference() -> None:
    assert between(replace(TIMER, metadata=Raw("[1,2]")), TIMER) == []


def test_a_repeat_with_the_first_instant_of_a_rescheduled_timer_is_recognised() -> None:
    first, retry = (
        Attempt(number=number, due_at=plus_ms(START_AT, late_ms), claimed_at=START_AT)
        for number, late_ms in ((1, 0), (2, 500))
    )
    moved = replace(TIMER, execute_at=LATER, attempts=(first, retry))
    assert differing_fields(TIMER, moved, TIMEOUT_MS) == []
    assert differing_fields(replace(TIMER, execute_at=LATER), moved, TIMEOUT_MS) == []
    retried = replace(TIMER, execute_at=retry.due_at)
    assert differing_fields(retried, moved, TIMEOUT_MS) == ["execute_at"]
