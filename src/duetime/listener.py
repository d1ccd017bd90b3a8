"""Listening sockets: bound early, so that an address in use is noticed before anything starts."""

import contextlib
import errno
import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from duetime.domain.errors import DuetimeError, ErrorKind
from duetime.domain.limits import MAX_PORT

# Addresses for documentation, which no machine has.
_FOREIGN = {4: ip_address("192.0.2.1"), 6: ip_address("2001:db8::1")}


class AddressUnavailable(DuetimeError):
    """The address cannot be listened on; `in_use` if another process listens on it."""

    kind = ErrorKind.UNAVAILABLE

    def __init__(self, host: str, port: int, reason: str, in_use: bool = False) -> None:
        self.problem = f"cannot listen on {_address(host, port)}: {reason}"
        """The message without advice."""
        super().__init__(self.problem + ("; choose another with --port" if in_use else ""))
        self.in_use = in_use


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on the address. Names are not looked up."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class OwnAddresses:
    """The addresses on which this process listens: numeric address and port each."""

    def __init__(self, listening: Iterable[tuple[str, int]] = ()) -> None:
        self._hosts_of_port: dict[int, list[IPv4Address | IPv6Address]] = {}
        for host, port in listening:
            address = ip_address(host)
            if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
                address = address.ipv4_mapped
            self._hosts_of_port.setdefault(port, []).append(address)

    def use_port(self, port: int) -> bool:
        """Whether this process listens on the port of some address."""
        return port in self._hosts_of_port

    def include(self, address: IPv4Address | IPv6Address, port: int) -> bool:
        """Whether a connection to (address, port) would reach this process. A listener on the
        unspecified address is reached by every address of this machine. Connections to the
        unspecified address go to the loopback address. Raises OSError if this process lacks a
        descriptor to tell."""
        hosts = self._hosts_of_port.get(port, ())
        if address.is_unspecified:
            return any(each.is_unspecified or each.is_loopback for each in hosts)
        return address in hosts or (
            any(each.is_unspecified for each in hosts) and _is_ours(address)
        )


def own_addresses(*listeners: socket.socket | None) -> OwnAddresses:
    return OwnAddresses(
        listener.getsockname()[:2] for listener in listeners if listener is not None
    )


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket bound to the address but not listening: connections are refused until it does.

    Other processes of the same user may bind the address of a `shared` socket too, if they share
    it as well; the system distributes connections among the listeners. Raises
    `AddressUnavailable`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise _unavailable(host, port, error) from None
    listener.setblocking(False)
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """A socket that keeps the address for workers that share it, and accepts no connections.

    Port 0 picks a free port. An address on which unrelated processes already listen is refused,
    even if they share it among themselves. Raises `AddressUnavailable`.
    """
    if port:
        bind(host, port).close()
    return bind(host, port, shared=True)


class MetricsPortUnavailable(DuetimeError):
    """The address of the metrics cannot be listened on."""

    kind = ErrorKind.UNAVAILABLE


@contextlib.contextmanager
def naming_metrics_port() -> Iterator[None]:
    """Turns `AddressUnavailable` into an error that names the setting."""
    try:
        yield
    except AddressUnavailable as error:
        raise MetricsPortUnavailable(f"METRICS_PORT: {error.problem}") from None


def take_connections(listener: socket.socket, backlog: int) -> None:
    """Start to listen. Several sockets may be bound to one port, but only one of them can listen
    unless they share it. Raises `AddressUnavailable`."""
    try:
        listener.listen(backlog)
    except OSError as error:
        host, port = listener.getsockname()[:2]
        raise _unavailable(host, port, error) from None


def bind_next_free(host: str, first_port: int, tries: int = 50) -> socket.socket:
    """A socket that listens on the first free port at or after `first_port`."""
    last_port = min(first_port + tries, MAX_PORT)
    for port in range(first_port, last_port + 1):
        try:
            listener = bind(host, port)
            take_connections(listener, backlog=128)
        except AddressUnavailable as error:
            if not error.in_use or port == last_port:
                raise
        else:
            return listener
    raise AssertionError("the range of ports is never empty")


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{_address(host, port)}"


def _is_ours(address: IPv4Address | IPv6Address) -> bool:
    """Whether this machine has the address. Sends nothing. Raises OSError if this process lacks a
    descriptor to tell."""
    if address.is_loopback:
        return True
    if not _can_bind(address):
        return False
    # Some machines may bind addresses that they do not have (ip_nonlocal_bind). But connections to
    # an own address come from an own address, most often from the same.
    foreign = _FOREIGN[address.version]
    return not _can_bind(foreign) or _comes_from_itself(address)


def _can_bind(address: IPv4Address | IPv6Address) -> bool:
    with socket.socket(_family(address), socket.SOCK_DGRAM) as bound:
        try:
            bound.bind((str(address), 0))
        except OSError:
            return False
        return True


def _comes_from_itself(address: IPv4Address | IPv6Address) -> bool:
    with socket.socket(_family(address), socket.SOCK_DGRAM) as towards_it:
        try:
            towards_it.connect((str(address), 9))
        except OSError:
            return False
        return bool(ip_address(towards_it.getsockname()[0]) == address)


def _family(address: IPv4Address | IPv6Address) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _unavailable(host: str, port: int, error: OSError) -> AddressUnavailable:
    if error.errno == errno.EADDRINUSE:
        reason = f"port {port} is already in use"
        return AddressUnavailable(host, port, reason, in_use=True)
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return AddressUnavailable(host, port, f"{host} is not an address of this machine")
    return AddressUnavailable(host, port, str(error.strerror or error))
