"""The connections with a place at the door: those of all clients, and those of each peer."""

import asyncio
from ipaddress import IPv6Address, ip_address
from typing import Protocol

MOST_EXAMINED = 32
"""Connections that are examined for one that can be closed in favour of a new one."""

UNUSED_SECONDS = 1.0
"""Time since its last answer after which a connection can be closed in favour of a new one."""

_NETWORK_BYTES = 8
"""Leading bytes of an IPv6 address that name one network: its owner has all addresses in it."""


class Occupant(Protocol):
    """A connection with a place."""

    @property
    def peer(self) -> str: ...

    @property
    def transport(self) -> asyncio.Transport: ...

    @property
    def has_sent_no_request(self) -> bool: ...

    def is_unused(self, now: float) -> bool:
        """Whether the connection may be closed in favour of a new one, at that time of the loop."""
        ...


class Places:
    """Connections, in the order of their arrival."""

    def __init__(self) -> None:
        self._silent: dict[Occupant, None] = {}
        self._known: dict[Occupant, None] = {}
        """Connections that have sent a request, those examined longest ago first."""

    def __len__(self) -> int:
        return len(self._silent) + len(self._known)

    def add(self, occupant: Occupant) -> None:
        self._silent[occupant] = None

    def remove(self, occupant: Occupant) -> None:
        self._silent.pop(occupant, None)
        self._known.pop(occupant, None)

    def find_unused(self, now: float) -> Occupant | None:
        """The oldest connection that has not sent a request; otherwise one that is not in use."""
        while self._silent:
            oldest = next(iter(self._silent))
            if oldest.has_sent_no_request:
                return oldest
            del self._silent[oldest]
            self._known[oldest] = None
        for _ in range(min(MOST_EXAMINED, len(self._known))):
            first = next(iter(self._known))
            if first.is_unused(now):
                return first
            del self._known[first]
            self._known[first] = None
        return None

    def find_any(self, now: float) -> Occupant:
        """One with nothing under way if there is one, however lately it was used."""
        return self.find_unused(now + UNUSED_SECONDS) or next(iter(self._known))


class PeerPlaces:
    """The places of each peer, and the peer that has most. Each change takes the same short time,
    however many peers there are."""

    def __init__(self) -> None:
        self._by_peer: dict[str, Places] = {}
        self._peers_with: dict[int, dict[str, None]] = {}
        """Peers by the number of their places."""
        self._most = 0

    def of(self, peer: str) -> Places:
        return self._by_peer.get(peer) or Places()

    def greediest(self) -> tuple[str, Places]:
        """The peer that has most places, with its places. There must be one."""
        peer = next(iter(self._peers_with[self._most]))
        return peer, self._by_peer[peer]

    def add(self, occupant: Occupant) -> None:
        peer = occupant.peer
        places = self._by_peer.setdefault(peer, Places())
        before = len(places)
        places.add(occupant)
        self._move(peer, before, before + 1)

    def remove(self, occupant: Occupant) -> None:
        peer = occupant.peer
        places = self.of(peer)
        before = len(places)
        places.remove(occupant)
        if len(places) < before:
            self._move(peer, before, before - 1)

    def _move(self, peer: str, before: int, after: int) -> None:
        if before:
            peers = self._peers_with[before]
            del peers[peer]
            if not peers:
                del self._peers_with[before]
        if after:
            self._peers_with.setdefault(after, {})[peer] = None
        else:
            del self._by_peer[peer]
        if after > self._most or self._most not in self._peers_with:
            self._most = after


def peer_of(transport: asyncio.Transport) -> str:
    """The address of the client, or its network with IPv6. Behind a load balancer all clients are
    one peer."""
    name = transport.get_extra_info("peername")
    if not isinstance(name, tuple):
        return ""
    try:
        address = ip_address(name[0].partition("%")[0])
    except ValueError:
        return str(name[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            network = IPv6Address(address.packed[:_NETWORK_BYTES].ljust(16, b"\0"))
            return f"{network}/64"
        address = address.ipv4_mapped
    return str(address)
