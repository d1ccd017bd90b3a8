"""The list of networks and hosts that callbacks may go to, and how it judges an address."""

import difflib
import re
import socket
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from duetime.domain.limits import (
    MAX_CALLBACK_NETWORKS,
    MAX_CALLBACK_NETWORKS_CHARACTERS,
    MAX_HOST_CHARACTERS,
    MAX_PORT,
)
from duetime.domain.security.address_kinds import (
    Address,
    Kind,
    Network,
    SpecialRange,
    forms_of,
    kind_of,
)

AMBIGUOUS_IN_HOST = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
"""Characters that the standard library's IDNA 2003 maps to others, and IDNA 2008 does not. The two
results name different hosts, so the caller has to choose."""

_LITERALS_REMEMBERED = 4_096
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_BRACKETED = re.compile(r"\[([^\]]*)\](?::(.*))?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")


class InvalidNetworks(ValueError):
    """The text is no such list. The message completes the sentence "CALLBACK_NETWORKS must be"."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a callback may not go somewhere. `what` describes the place; the entry `remedy` would
    allow it."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry; exactly one of `kind`, `network` and `name` is set. A name that starts with a dot
    stands for all names that end with it."""

    port: int | None
    kind: Kind | None = None
    network: Network | None = None
    name: str | None = None

    def is_for_port(self, port: int) -> bool:
        return self.port is None or self.port == port

    def names(self, host: str) -> bool:
        if self.name is None:
            return False
        return host.endswith(self.name) if self.name.startswith(".") else host == self.name

    def allows(self, host: str, form: Address, kind: Kind | SpecialRange) -> bool:
        if isinstance(kind, SpecialRange):
            # A network around the range, such as 0.0.0.0/0, was not written with the range in mind.
            return self._contains(form) and _is_inside(self.network, kind.network)
        return self.kind is kind or self._contains(form) or self.names(host)

    def _contains(self, form: Address) -> bool:
        return self.network is not None and form in self.network


@dataclass(frozen=True, slots=True)
class CallbackNetworks:
    """An address is allowed if an entry for its port allows it.

    `public`, `private` and `loopback` allow addresses of that kind, a CIDR the addresses in it, and
    a host name whatever public, private or loopback address the name resolves to. Special ranges,
    such as link-local and cloud metadata, are allowed only by a CIDR that is a part of the range.
    An address that contains another one, such as a NAT64 address, is allowed only if both are.
    """

    text: str
    _entries: tuple[_Entry, ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> "CallbackNetworks":
        """Raises InvalidNetworks, which names the entry that is wrong."""
        if len(text) > MAX_CALLBACK_NETWORKS_CHARACTERS:
            raise InvalidNetworks(f"at most {MAX_CALLBACK_NETWORKS_CHARACTERS} characters long")
        items = [item.strip() for item in text.split(",")]
        if len(items) > MAX_CALLBACK_NETWORKS:
            raise InvalidNetworks(f"a list of at most {MAX_CALLBACK_NETWORKS} entries")
        return cls(",".join(items), tuple(_entry(item) for item in items))

    def refusal(self, host: str, port: int, address: Address) -> Refusal | None:
        """Why a connection to the address of `host` is refused; None if it is allowed."""
        for form in forms_of(address):
            kind = kind_of(form)
            name = host.rstrip(".")
            allowing = [each for each in self._entries if each.allows(name, form, kind)]
            if not any(each.is_for_port(port) for each in allowing):
                return _refusal(address, form, kind, port if allowing else None)
        return None

    def refusal_of_name(self, host: str, port: int) -> Refusal | None:
        """Why no address of the host name can ever be allowed; None if that depends on its
        addresses. `localhost` and names below it are loopback by definition (RFC 6761)."""
        name = host.rstrip(".")
        if name == "localhost" or name.endswith(".localhost"):
            return self.refusal(host, port, IPv4Address("127.0.0.1"))
        possible = [each for each in self._entries if each.name is None or each.names(name)]
        if any(each.is_for_port(port) for each in possible):
            return None
        if possible:
            return Refusal(f"port {port}", f"{name}:{port}")
        return Refusal("a host that is not listed", name)

    def lists_exactly(self, address: Address, port: int) -> bool:
        """Whether an entry names this address and this port, both explicitly."""
        return any(
            each.port == port
            and each.network is not None
            and each.network.num_addresses == 1
            and address in each.network
            for each in self._entries
        )


@lru_cache(_LITERALS_REMEMBERED)
def literal_address(host: str) -> Address | None:
    """The address that the host of a URL is, in any notation that resolvers take: dotted, decimal,
    octal, hexadecimal, with one to four parts, or IPv6. None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    if all(_NUMERIC_LABEL.fullmatch(label) for label in host.split(".")):
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            pass
    return None


def _refusal(
    address: Address, form: Address, kind: Kind | SpecialRange, listed_port: int | None
) -> Refusal:
    is_itself = form == address
    if listed_port is not None:
        return Refusal(f"port {listed_port}", exact_entry(form, listed_port))
    if isinstance(kind, SpecialRange):
        contained = "an address" if is_itself else f"which contains {form}"
        what = f"{contained} of {kind.network} ({kind.name})"
        return Refusal(what, exact_entry(form))
    what = f"a {kind} address" if is_itself else f"which contains the {kind} address {form}"
    return Refusal(what, f"{kind} or {exact_entry(form)}")


def exact_entry(address: Address, port: int | None = None) -> str:
    """The entry that lists this address only, and this port only if one is given."""
    network = f"{address}/{address.max_prefixlen}"
    if port is None:
        return network
    return f"[{network}]:{port}" if address.version == 6 else f"{network}:{port}"


def _is_inside(network: Network | None, other: Network) -> bool:
    if isinstance(network, type(other)):
        return bool(network.subnet_of(other))  # type: ignore[arg-type]
    return False


def _entry(item: str) -> _Entry:
    text = item.lower()
    if not text:
        raise InvalidNetworks(f"{_EXPECTED}: there is an empty entry")
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        inside, port_text = bracketed.groups()
        if ":" not in inside:
            raise _invalid(item, "only IPv6 goes into brackets")
        return _Entry(_port(item, port_text), network=_network(item, inside))
    base, slash, rest = text.partition("/")
    if slash:
        prefix, colon, port_text = rest.partition(":")
        if colon and ":" in base:
            raise _invalid(item, f"write [{base}/{prefix}]:{port_text}")
        port = _port(item, port_text if colon else None)
        return _Entry(port, network=_network(item, f"{base}/{prefix}"))
    if text.count(":") > 1:
        return _Entry(None, network=_network(item, text))
    name, colon, port_text = text.partition(":")
    port = _port(item, port_text if colon else None)
    if name in _KINDS:
        return _Entry(port, kind=Kind(name))
    if name in _NO_ENTRIES:
        raise _invalid(item, f"did you mean {Kind.PUBLIC.value!r}?")
    address = literal_address(name)
    if address is not None:
        return _Entry(port, network=_network(item, name))
    return _Entry(port, name=_name(item, name))


_KINDS = frozenset(Kind)
_NO_ENTRIES = frozenset({"all", "any", "none", "*"})
"""Words that would be host names, though nobody means a host by them."""

_EXPECTED = (
    "a list of public, private, loopback, CIDRs such as 10.0.0.0/8, host names and *.suffixes, "
    "each optionally with :port"
)


def _invalid(item: str, problem: str) -> InvalidNetworks:
    shown = item if len(item) <= 60 else item[:57] + "..."
    return InvalidNetworks(f"{_EXPECTED}: {shown!r}: {problem}")


def _port(item: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= MAX_PORT):
        raise _invalid(item, f"a port is a number from 1 to {MAX_PORT}")
    return int(text)


def _network(item: str, text: str) -> Network:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise _invalid(item, "is not an IP network") from None
    if "%" in text:
        raise _invalid(item, "a network has no scope")
    if ip_address(text.partition("/")[0]) != network.network_address:
        raise _invalid(item, f"an address within that network; write {network}")
    if isinstance(network.network_address, IPv6Address) and network.network_address.ipv4_mapped:
        prefix = max(network.prefixlen - 96, 0)
        raise _invalid(item, f"write {network.network_address.ipv4_mapped}/{prefix}")
    return network


def _name(item: str, text: str) -> str:
    name = text.removeprefix("*.").removesuffix(".")
    if not name.isascii():
        if AMBIGUOUS_IN_HOST.search(name):
            raise _invalid(item, "is an ambiguous host name; write it in its xn-- form")
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            name = ""
    if len(name) > MAX_HOST_CHARACTERS or not _NAME.fullmatch(name):
        raise _invalid(item, "is none of them")
    if name.rpartition(".")[2].isdigit():
        raise _invalid(item, "is not an address")
    for kind in difflib.get_close_matches(text, map(str, Kind), n=1, cutoff=0.8):
        raise _invalid(item, f"did you mean {kind!r}?")
    return f".{name}" if text.startswith("*.") else name
