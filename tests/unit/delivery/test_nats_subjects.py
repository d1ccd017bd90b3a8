"""Subjects and headers that a NATS callback may have."""

import pytest

from duetime.delivery.nats import check_callback
from duetime.domain.callback import NatsCallback
from duetime.domain.errors import InvalidInput, TooLarge


@pytest.mark.parametrize(
    "subject", ["orders", "orders.created.eu-1", "a_b.C/d", "größe.ü", "x" * 255, "orders.$price"]
)
def test_a_plain_subject_is_accepted(subject: str) -> None:
    check_callback(NatsCallback(topic=subject))


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("", "must not be empty"),
        ("orders created", "white space"),
        ("orders\tcreated", "white space"),
        ("orders\r\nPUB other 0\r\n", "white space"),
        ("orders\x00", "control characters"),
        ("orders\u00a0", "white space"),
        ("orders.*", "wildcards"),
        ("orders.>", "wildcards"),
        ("ord*rs", "wildcards"),
        (">", "wildcards"),
        (".orders", "empty part"),
        ("orders.", "empty part"),
        ("orders..created", "empty part"),
        ("$SYS.REQ.SERVER.PING", r"must not start with \$"),
        ("$JS.API.STREAM.DELETE.orders", r"must not start with \$"),
        ("x" * 256, "longer than 255"),
        ("\ud800", "valid Unicode"),
    ],
)
def test_anything_else_is_refused(subject: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as refusal:
        check_callback(NatsCallback(topic=subject))
    assert refusal.value.field == "callback.topic"


@pytest.mark.parametrize(
    ("callback", "field"),
    [
        (NatsCallback(topic="orders.*"), "callback.topic"),
        (NatsCallback(topic="orders", key=""), "callback.key"),
        (NatsCallback(topic="orders", key="a b"), "callback.key"),
        (NatsCallback(topic="orders", key=">"), "callback.key"),
        (NatsCallback(topic="o" * 200, key="k" * 100), "callback.key"),
        (NatsCallback(topic="orders", headers={"X Tag": "a"}), "callback.headers"),
        (NatsCallback(topic="orders", headers={"X-Tag": "a\r\nb"}), "callback.headers.X-Tag"),
        (NatsCallback(topic="orders", headers={"X-Tag": "\ud800"}), "callback.headers.X-Tag"),
        (
            NatsCallback(topic="orders", headers={"nats-Expected-Stream": "a"}),
            "callback.headers.nats-Expected-Stream",
        ),
        (
            NatsCallback(topic="orders", headers={f"X-{n}": "a" for n in range(65)}),
            "callback.headers",
        ),
    ],
)
def test_the_refusal_names_the_field(callback: NatsCallback, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_callback(callback)
    assert refusal.value.field == field


def test_large_headers_are_refused_as_too_large() -> None:
    with pytest.raises(TooLarge):
        check_callback(NatsCallback(topic="orders", headers={"X-Tag": "ä" * 8_192}))


def test_headers_may_be_any_text() -> None:
    check_callback(NatsCallback(topic="orders", key="42", headers={"X-Tag": "größe € 💶"}))
