"""Kinds of IP addresses: public, private, loopback, and ranges that no callback should reach."""

from collections.abc import Iterator
from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import NamedTuple

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Kind(StrEnum):
    """The kinds of addresses that a list may allow by a word."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"


class SpecialRange(NamedTuple):
    """A range that is refused unless a CIDR inside it is listed."""

    network: Network
    name: str


_KINDS: tuple[tuple[Network, Kind], ...] = (
    (ip_network("127.0.0.0/8"), Kind.LOOPBACK),
    (ip_network("::1/128"), Kind.LOOPBACK),
    (ip_network("10.0.0.0/8"), Kind.PRIVATE),
    (ip_network("172.16.0.0/12"), Kind.PRIVATE),
    (ip_network("192.168.0.0/16"), Kind.PRIVATE),
    (ip_network("fc00::/7"), Kind.PRIVATE),
)

# The first range that contains an address counts. From the IANA registries of special-purpose
# addresses, and from the manuals of cloud providers.
_SPECIAL_RANGES = tuple(
    SpecialRange(ip_network(text), name)
    for text, name in (
        ("0.0.0.0/8", "unspecified"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("168.63.129.16/32", "cloud metadata"),
        ("169.254.0.0/16", "link-local and cloud metadata"),
        ("192.0.0.0/24", "IETF protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("64:ff9b:1::/48", "local-use NAT64"),
        ("100::/64", "discard-only"),
        ("2001:2::/48", "benchmarking"),
        ("2001:10::/28", "ORCHID"),
        ("2001:20::/28", "ORCHID"),
        ("2001:30::/28", "drone identifiers"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("fd00:ec2::/32", "cloud metadata"),
        ("fd00:42::42/128", "cloud metadata"),
        ("fd20:ce::254/128", "cloud metadata"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)

_GLOBAL_UNICAST = ip_network("2000::/3")
_MAPPED = ip_network("::ffff:0:0/96")
_NAT64 = ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_COMPATIBLE = ip_network("::/96")
_ISATAP_INTERFACES = (0x0000_5EFE, 0x0200_5EFE)


def kind_of(address: Address) -> Kind | SpecialRange:
    """The kind of the address itself, whatever it may contain."""
    for special in _SPECIAL_RANGES:
        if address in special.network:
            return special
    for network, kind in _KINDS:
        if address in network:
            return kind
    if address.version == 4 or address in _GLOBAL_UNICAST or address in _NAT64:
        return Kind.PUBLIC
    return SpecialRange(IPv6Network((int(address), 8), strict=False), "reserved")


def forms_of(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 addresses that packets to it may end up at: those in IPv4-mapped,
    IPv4-compatible, NAT64, 6to4, Teredo and ISATAP addresses.

    An IPv4-mapped address is only another way to write the one in it, which is given alone.
    """
    if isinstance(address, IPv4Address):
        yield address
        return
    number = int(address)
    if address in _MAPPED:
        yield _ipv4(number)
        return
    # Without the scope of a link-local address.
    yield IPv6Address(number)
    if address in _NAT64 or address in _LOCAL_NAT64 or (address in _COMPATIBLE and number > 1):
        yield _ipv4(number)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if (number >> 32) & 0xFFFF_FFFF in _ISATAP_INTERFACES:
        yield _ipv4(number)


def address_of(text: str) -> Address:
    """The address that a resolver returned; it may have a scope, as in `fe80::1%eth0`. Raises
    ValueError."""
    return ip_address(text.partition("%")[0])


def _ipv4(number: int) -> IPv4Address:
    return IPv4Address(number & 0xFFFF_FFFF)
