"""A callback URL, parsed once and ready to be written into requests."""

import base64
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote_to_bytes

from duetime.domain.limits import MAX_HOST_CHARACTERS, MAX_PORT, MAX_URL_CHARACTERS
from duetime.domain.security.callback_networks import AMBIGUOUS_IN_HOST

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SPACE_OR_CONTROL = re.compile(r"[\x00-\x20\x7f-\xa0]")
_HOST = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.?"
)
_PRINTABLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))


class InvalidUrl(ValueError):
    """The URL cannot be called. The text completes a sentence: "callback.url has no host"."""


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """Where a request goes. Build it with `parse_target` and keep it: parsing is slow.

    No field can carry a line break into a request, whatever the URL was.
    """

    scheme: str
    """`http` or `https`."""
    host: str
    """Lower case, ASCII (IDNA), without brackets; resolved and verified as is."""
    port: int
    origin: str
    """`scheme://host:port`, always with the port; the key of the pool and of fairness."""
    authorization: bytes | None = field(repr=False)
    """The value of `Authorization` for `user:password@` in the URL, else None."""
    head_start: bytes = field(repr=False)
    """The lines `POST /path?query HTTP/1.1` and `Host`, which has the port unless it is the
    scheme's own."""


def parse_target(url: str) -> HttpTarget:
    """Parse an http or https URL.

    The host is IDNA-encoded, non-ASCII characters of path and query are percent-encoded as
    UTF-8, the fragment is dropped, an empty path becomes `/`. Nothing else is rewritten: dot
    segments and percent-escapes reach the server as given.

    Raises InvalidUrl.
    """
    if len(url) > MAX_URL_CHARACTERS:
        raise InvalidUrl(f"is longer than {MAX_URL_CHARACTERS} characters")
    if _SPACE_OR_CONTROL.search(url):
        raise InvalidUrl("contains a space or control character")
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _DEFAULT_PORTS:
        raise InvalidUrl("must be an http or https URL")
    authority, path_and_query = _split_authority(rest)
    if "\\" in authority:
        # Browsers read a backslash as a slash, so a person may see a different host.
        raise InvalidUrl("contains a backslash in its host part")
    user_info, _, host_and_port = authority.rpartition("@")
    if "@" in user_info:
        raise InvalidUrl("contains more than one @ in its host part")
    host, port = _split_port(host_and_port, _DEFAULT_PORTS[scheme])
    name = _ipv6_host(host) if host.startswith("[") else _named_host(host)
    with_port = authority_of(name, port)
    host_value = with_port.rpartition(":")[0] if port == _DEFAULT_PORTS[scheme] else with_port
    head_start = f"POST {_encode(path_and_query)} HTTP/1.1\r\nHost: {host_value}\r\n"
    return HttpTarget(
        scheme=scheme,
        host=name,
        port=port,
        origin=f"{scheme}://{with_port}",
        authorization=_basic_authorization(user_info),
        head_start=head_start.encode("ascii"),
    )


def authority_of(host: str, port: int) -> str:
    """`host:port`, with brackets around IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split_authority(rest: str) -> tuple[str, str]:
    without_fragment = rest.partition("#")[0]
    end = re.search(r"[/?]", without_fragment)
    if end is None:
        return without_fragment, "/"
    authority, path_and_query = without_fragment[: end.start()], without_fragment[end.start() :]
    return authority, path_and_query if path_and_query.startswith("/") else f"/{path_and_query}"


def _split_port(host_and_port: str, default: int) -> tuple[str, int]:
    # The colons of an IPv6 literal are inside its brackets.
    bracket = host_and_port.rfind("]")
    if bracket == -1 and host_and_port.startswith("["):
        raise InvalidUrl("has an invalid IPv6 address")
    colon = host_and_port.find(":", bracket + 1)
    if colon == -1:
        return host_and_port, default
    host, digits = host_and_port[:colon], host_and_port[colon + 1 :]
    if not digits:
        return host, default
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidUrl("has a port that is not a number")
    port = int(digits)
    if not 1 <= port <= MAX_PORT:
        raise InvalidUrl("port is out of range")
    return host, port


def _ipv6_host(host: str) -> str:
    try:
        if not host.endswith("]") or "%" in host:
            raise ValueError
        return ipaddress.IPv6Address(host[1:-1]).compressed
    except ValueError:
        raise InvalidUrl("has an invalid IPv6 address") from None


def _named_host(host: str) -> str:
    if not host:
        raise InvalidUrl("has no host")
    name = host.lower()
    if not host.isascii():
        if AMBIGUOUS_IN_HOST.search(host):
            raise InvalidUrl("has an ambiguous host name; write it in its xn-- form")
        try:
            name = (
                host.encode("idna").decode("ascii").lower()
                if len(host) <= MAX_HOST_CHARACTERS
                else ""
            )
        except UnicodeError:
            name = ""
    if len(name.rstrip(".")) > MAX_HOST_CHARACTERS or not _HOST.fullmatch(name):
        raise InvalidUrl("has an invalid host name")
    return name


def _basic_authorization(user_info: str) -> bytes | None:
    if not user_info:
        return None
    user, _, password = user_info.partition(":")
    try:
        credentials = b"%b:%b" % (unquote_to_bytes(user), unquote_to_bytes(password))
    except UnicodeError:
        raise InvalidUrl("contains a character that is not valid Unicode") from None
    return b"Basic " + base64.b64encode(credentials)


def _encode(path_and_query: str) -> str:
    try:
        return quote(path_and_query, safe=_PRINTABLE_ASCII)
    except UnicodeError:
        raise InvalidUrl("contains a character that is not valid Unicode") from None
