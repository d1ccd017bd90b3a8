"""Hosts that `public` must never allow: addresses, and the many ways to write them."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

_WRITTEN_IN_MANY_WAYS = (
    "127.0.0.1",
    "169.254.169.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.100.100.200",
    "0.0.0.0",
)

_EDGES_OF_RANGES = (
    *("0.0.0.1", "0.255.255.255", "10.255.255.255", "100.64.0.0", "100.127.255.255"),
    *("127.0.0.0", "127.255.255.255", "168.63.129.16", "169.254.0.0", "169.254.255.255"),
    *("172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.1", "192.88.99.1"),
    *("192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.255"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255"),
)

_IPV6 = (
    *("::", "::1", "::2", "fe80::1", "febf:ffff::1", "fec0::1", "fc00::1", "fd12:3456::1"),
    *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "ff02::1", "ff0e::1"),
    *("100::1", "100:0:0:1::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:30::1"),
    *("2001:db8::1", "3fff::1", "4000::1", "5f00::1", "8000::1", "e000::1", "64:ff9b:1::808:808"),
    # The server of a Teredo address counts, too.
    *("2001:0:a9fe:a9fe:0:f227:f7f7:f7f7", "2001:0:808:808:0:f227:80ff:fffe"),
)


def _notations(text: str) -> Iterator[str]:
    address = IPv4Address(text)
    number, (a, b, c, d) = int(address), address.packed
    yield text
    yield from (f"{number}", f"{number:#x}", f"0{number:o}", f"{number:#010X}")
    yield f"{a:#x}.{b:#x}.{c:#x}.{d:#x}"
    yield f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"
    yield f"{a}.{number & 0xFFFFFF}"
    yield f"{a}.{b}.{number & 0xFFFF}"
    yield f"{a:#x}.{b}.0{number & 0xFFFF:o}"
    # Full-width digits mean the same to a resolver that takes names of all languages.
    yield text.translate({ord(digit): ord(digit) + 0xFEE0 for digit in "0123456789"})


def _wrapped(text: str) -> Iterator[str]:
    number = int(IPv4Address(text))
    for prefix in ("::ffff:0:0", "::", "64:ff9b::", "64:ff9b:1::", "2606:4700::5efe:0:0"):
        yield str(IPv6Address(int(IPv6Address(prefix)) | number))
    yield str(IPv6Address((0x2002 << 112) | (number << 80) | 1))
    teredo = int(IPv6Address("2001:0:808:808::")) | (number ^ 0xFFFFFFFF)
    yield str(IPv6Address(teredo))


def _refused_hosts() -> Iterator[str]:
    for text in _WRITTEN_IN_MANY_WAYS:
        yield from _notations(text)
        yield from (f"[{each}]" for each in _wrapped(text))
    yield from _EDGES_OF_RANGES
    yield from (f"[{each}]" for each in _IPV6)


REFUSED_HOSTS = tuple(dict.fromkeys(_refused_hosts()))
"""As they stand in a URL."""
