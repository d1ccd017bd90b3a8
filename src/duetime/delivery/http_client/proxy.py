"""Tunnels through an HTTP proxy (RFC 9110, CONNECT)."""

import asyncio
import re
import socket
from dataclasses import dataclass, field

from duetime.delivery.http_client.failures import LacksResource, NotConnected
from duetime.delivery.http_client.target import authority_of
from duetime.network_failures import os_error_text

MAX_HEAD_BYTES = 16_384
"""Size of the largest head of a proxy's answer."""

CALLBACK_PROXY = "callback proxy"
"""The resource that is lacking while no tunnel can be asked for."""

_PIECE_BYTES = 4_096
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: ([^\r\n]{0,200}))?[\r\n]")
_WRONG_CREDENTIALS = 407


@dataclass(frozen=True, slots=True)
class HttpProxy:
    """A proxy that is asked for a tunnel to each target. With `gets_addresses` the target's name
    is resolved here, and the proxy learns the address only; else the proxy resolves the name."""

    host: str
    port: int
    authorization: bytes | None = field(default=None, repr=False)
    """The value of `Proxy-Authorization`."""
    gets_addresses: bool = False

    @property
    def name(self) -> str:
        """The proxy for people to read, without credentials."""
        return f"http://{authority_of(self.host, self.port)}"


class TunnelRefused(NotConnected):
    """The proxy did not open a tunnel to this target."""


def proxy_away(proxy: HttpProxy, reason: str) -> LacksResource:
    """The proxy cannot be used for any target. That is a matter of this service's own network, so
    no target is to blame."""
    return LacksResource(f"{CALLBACK_PROXY} ({proxy.name}: {reason})")


async def open_tunnel(connected: socket.socket, proxy: HttpProxy, host: str, port: int) -> None:
    """Ask for a tunnel through a socket that is connected to the proxy, and wait for the answer. On
    return the socket leads to the target. Sets no limit of time.

    Raises TunnelRefused, and LacksResource if the proxy does not accept our credentials or hangs up
    without a word, as one does that starts, stops or is overloaded.
    """
    loop = asyncio.get_running_loop()
    authority = authority_of(host, port).encode("ascii")
    lines = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (authority, authority)
    if proxy.authorization is not None:
        lines += b"Proxy-Authorization: %b\r\n" % proxy.authorization
    head = b""
    try:
        await loop.sock_sendall(connected, lines + b"\r\n")
        while (end := _END_OF_HEAD.search(head)) is None:
            if len(head) > MAX_HEAD_BYTES:
                raise _refused(proxy, "did not end the head of its answer")
            piece = await loop.sock_recv(connected, _PIECE_BYTES)
            if not piece:
                raise _gone(proxy, head, "closed the connection before it had answered")
            head += piece
    except OSError as error:
        raise _gone(proxy, head, f"broke the connection: {os_error_text(error)}") from None
    _check_answer(proxy, head, end.end())


def _check_answer(proxy: HttpProxy, head: bytes, end: int) -> None:
    found = _STATUS_LINE.match(head)
    if found is None:
        raise _refused(proxy, "gave no valid HTTP answer")
    status = int(found[1])
    answer = f"{status} {(found[2] or b'').decode('ascii', 'replace')}".rstrip()
    if status == _WRONG_CREDENTIALS:
        raise proxy_away(proxy, f"it does not accept the credentials of CALLBACK_PROXY: {answer}")
    if not 200 <= status < 300:
        raise _refused(proxy, f"opened no tunnel: {answer}")
    if len(head) > end:
        # The target waits for our first byte, so the proxy made these up.
        raise _refused(proxy, "sent data before the tunnel was used")


def _gone(proxy: HttpProxy, head: bytes, problem: str) -> TunnelRefused | LacksResource:
    """The failure of a connection that the proxy ended when it had sent this much of an answer."""
    return _refused(proxy, problem) if head else proxy_away(proxy, f"it {problem}")


def _refused(proxy: HttpProxy, problem: str) -> TunnelRefused:
    return TunnelRefused(f"the proxy {proxy.name} {problem}")
