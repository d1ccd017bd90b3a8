"""Nobody tries keys by the thousand, and nobody locks out a neighbour."""

from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

import pytest
from structlog.testing import capture_logs

from duetime.domain.errors import TooManyRequests
from duetime.service.security.wrong_keys import MAX_ADDRESSES, WRONG_KEYS, WrongKeys, source_of
from duetime.testing import VirtualClock


def reported(wrong_keys: WrongKeys) -> list[MutableMapping[str, Any]]:
    with capture_logs() as logs:
        wrong_keys.report()
    return logs


def tries_of(wrong_keys: WrongKeys, address: str | None, most: int = 1_000) -> int:
    """Wrong keys until the throttle refuses one."""
    for number in range(most):
        try:
            wrong_keys.count(address)
        except TooManyRequests:
            return number
    return most


def test_an_address_may_try_a_few_keys_and_then_one_a_second() -> None:
    clock = VirtualClock()
    wrong_keys = WrongKeys(clock)
    assert tries_of(wrong_keys, "192.0.2.1") == WRONG_KEYS.burst
    with pytest.raises(TooManyRequests) as refused:
        wrong_keys.count("192.0.2.1")
    assert refused.value.retry_after_seconds == 1
    clock.advance(3)
    assert tries_of(wrong_keys, "192.0.2.1") == 3
    assert tries_of(wrong_keys, "192.0.2.2") == WRONG_KEYS.burst


def test_the_addresses_of_one_ipv6_network_count_together() -> None:
    wrong_keys = WrongKeys(VirtualClock())
    for number in range(WRONG_KEYS.burst):
        wrong_keys.count(f"2001:db8:1:2::{number:x}")
    with pytest.raises(TooManyRequests):
        wrong_keys.count("2001:db8:1:2:ffff::1")
    wrong_keys.count("2001:db8:1:3::1")


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("/run/duetime.sock", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_sources(address: str | None, source: str) -> None:
    assert source_of(address) == source


def test_memory_is_bounded() -> None:
    wrong_keys = WrongKeys(VirtualClock())
    tries_of(wrong_keys, "192.0.2.1")
    for number in range(MAX_ADDRESSES - 1):
        wrong_keys.count(f"10.0.{number >> 8}.{number & 255}")
    assert tries_of(wrong_keys, "192.0.2.1") == 0, "the address is still remembered"
    for number in range(MAX_ADDRESSES):
        wrong_keys.count(f"10.1.{number >> 8}.{number & 255}")
    assert tries_of(wrong_keys, "192.0.2.1") == WRONG_KEYS.burst


def test_a_report_sums_up_the_tries_since_the_last_one() -> None:
    wrong_keys = WrongKeys(VirtualClock())
    assert reported(wrong_keys) == []
    tries = [("192.0.2.1", 2), ("2001:db8::1", 30), ("2001:db8::2", 5), (None, 3)]
    for address, number in tries:
        for _ in range(number):
            with suppress(TooManyRequests):
                wrong_keys.count(address)
                wrong_keys.note_refused(address)
    (line,) = reported(wrong_keys)
    assert line == {
        "event": "api.wrong_keys",
        "log_level": "warning",
        "refused": 2 + WRONG_KEYS.burst + 3,
        "throttled": 35 - WRONG_KEYS.burst,
        "address": "2001:db8::/64",
        "address_tries": 35,
    }
    assert reported(wrong_keys) == []


def test_a_report_of_very_many_addresses() -> None:
    wrong_keys = WrongKeys(VirtualClock())
    wrong_keys.note_refused("192.0.2.1")
    for number in range(MAX_ADDRESSES + 10):
        wrong_keys.note_refused(f"10.0.{number >> 8}.{number & 255}")
    wrong_keys.note_refused("192.0.2.1")
    (line,) = reported(wrong_keys)
    assert line["refused"] == MAX_ADDRESSES + 12
    assert (line["address"], line["address_tries"]) == ("192.0.2.1", 2)
