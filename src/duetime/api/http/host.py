"""The `Host` header: every request of HTTP/1.1 has exactly one."""

import re
from collections.abc import Iterable
from functools import lru_cache

from starlette.types import Scope

from duetime.domain.defaults import DEFAULT_PORT

HOST_HEADER = b"host"

_NAMED = re.compile(rb"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=:%\[\]-]*")


def host_problem(headers: Iterable[tuple[bytes, bytes]], version: str) -> str | None:
    """The reason to refuse a request, if its `Host` is one."""
    hosts = [value for name, value in headers if name == HOST_HEADER]
    if len(hosts) > 1:
        return "Host is given more than once"
    if not hosts:
        return "Host is required" if version == "1.1" else None
    return None if is_host(hosts[0]) else "Host must be a host name or an address"


@lru_cache(256)
def is_host(value: bytes) -> bool:
    """Whether the value has only characters that a host and port may have."""
    return len(value) <= 1_024 and _HOST.fullmatch(value) is not None


def base_url_of(scope: Scope) -> str:
    """The address by which the client reached the service, for commands that it can paste."""
    host = dict(scope["headers"]).get(HOST_HEADER, b"")
    known = host.decode() if _NAMED.fullmatch(host) else f"localhost:{DEFAULT_PORT}"
    return f"{'https' if scope['scheme'] == 'https' else 'http'}://{known}"
