"""The order in which addresses are tried."""

import socket

import pytest

from duetime.delivery.http_client.address_race import interleave
from duetime.delivery.http_client.resolver import Address

SIX, FOUR = socket.AF_INET6, socket.AF_INET


@pytest.mark.parametrize(
    ("addresses", "order"),
    [
        ([(SIX, "::1"), (SIX, "::2"), (FOUR, "1"), (FOUR, "2")], ["::1", "1", "::2", "2"]),
        ([(FOUR, "1"), (FOUR, "2"), (FOUR, "3"), (SIX, "::1")], ["1", "::1", "2", "3"]),
        ([(FOUR, "1"), (FOUR, "1"), (FOUR, "2")], ["1", "2"]),
        ([(SIX, "::1")], ["::1"]),
        ([], []),
    ],
)
def test_families_take_turns(addresses: list[Address], order: list[str]) -> None:
    assert [address for _, address in interleave(addresses)] == order
