"""Peers: clients of one host or network, and the one that has most places."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from duetime.server.places import PeerPlaces, peer_of


class NamedTransport(asyncio.Transport):
    def __init__(self, peername: object) -> None:
        super().__init__({"peername": peername})


class Connection:
    has_sent_no_request = True
    transport: Any = None

    def __init__(self, peer: str) -> None:
        self.peer = peer

    def is_unused(self, now: float) -> bool:
        return False


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (("10.0.0.1", 1), ("10.0.0.1", 2), True),
        (("10.0.0.1", 1), ("10.0.0.2", 1), False),
        (("::ffff:10.0.0.1", 1, 0, 0), ("10.0.0.1", 1), True),
        (("::ffff:10.0.0.1", 1, 0, 0), ("::ffff:10.0.0.2", 1, 0, 0), False),
        (("2001:db8:1:2::1", 1, 0, 0), ("2001:db8:1:2:ffff::1", 1, 0, 0), True),
        (("2001:db8:1:2::1", 1, 0, 0), ("2001:db8:1:3::1", 1, 0, 0), False),
        (("fe80::1%eth0", 1, 0, 2), ("fe80::2%eth0", 1, 0, 2), True),
        ("", "", True),
        (None, "/run/x.sock", True),
        (("somewhere", 1), ("somewhere", 2), True),
    ],
)
def test_a_peer_is_a_host_or_a_network(one: object, other: object, are_same: bool) -> None:
    assert (peer_of(NamedTransport(one)) == peer_of(NamedTransport(other))) is are_same


def test_the_greediest_peer_is_known_after_every_change() -> None:
    choices = random.Random(7)
    places = PeerPlaces()
    present: list[Connection] = []
    for _ in range(5_000):
        if present and choices.random() < 0.5:
            gone = present.pop(choices.randrange(len(present)))
            places.remove(gone)
            places.remove(gone)
        else:
            present.append(Connection(choices.choice("abcdefg")))
            places.add(present[-1])
        counts = Counter(each.peer for each in present)
        if present:
            assert len(places.greediest()[1]) == max(counts.values())
        assert all(len(places.of(peer)) == counts[peer] for peer in "abcdefgh")
