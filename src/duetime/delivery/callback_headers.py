"""The headers of an HTTP callback: what a client may ask for and what is sent."""

import re

from duetime import __version__
from duetime.delivery.http_client import RESERVED_HEADERS
from duetime.domain.errors import InvalidInput, TooLarge
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.timer import Claim

MAX_HEADERS = 64
MAX_HEADER_BYTES = 16_384

USER_AGENT = f"duetime/{__version__} timer-platform/0.1.0"

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_OURS = RESERVED_HEADERS | {"webhook-id", "webhook-timestamp", "webhook-signature", "timer-attempt"}
_DEFAULTS = {"content-type": "application/json", "user-agent": USER_AGENT}
_DEFAULT_LINES = b"Content-Type: application/json\r\nUser-Agent: %b\r\n" % USER_AGENT.encode()


def check_headers(headers: dict[str, str]) -> None:
    """Refuse what could not be sent, or could be read as something else than a header."""
    field = "callback.headers"
    if len(headers) > MAX_HEADERS:
        raise InvalidInput(field, f"must not have more than {MAX_HEADERS} entries")
    size = 0
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise InvalidInput(field, f"has an entry {name[:64]!r} that is not a valid header name")
        if _UNSAFE_VALUE.search(value):
            raise InvalidInput(f"{field}.{name}", "must not contain control characters")
        try:
            size += len(name) + len(value.encode("latin-1")) + 4
        except UnicodeEncodeError:
            raise InvalidInput(
                f"{field}.{name}", "must contain characters of ISO 8859-1 only"
            ) from None
    if size > MAX_HEADER_BYTES:
        raise TooLarge(field, f"must not be larger than {MAX_HEADER_BYTES} bytes in all")


def header_lines(claim: Claim, headers: dict[str, str] | None, sent_at: Instant) -> bytes:
    """The lines to send: the client's headers over our defaults, then those that are ours alone.

    Headers that frame the request, and those that identify the delivery, are never the client's.
    """
    ours = b"webhook-id: %b\r\nwebhook-timestamp: %d\r\nTimer-Attempt: %d\r\n" % (
        claim.delivery_id.encode(),
        sent_at // MICROSECONDS_PER_SECOND,
        claim.attempt,
    )
    if not headers:
        return _DEFAULT_LINES + ours
    chosen = dict(_DEFAULTS)
    for name, value in headers.items():
        lower = name.lower()
        if lower in _DEFAULTS:
            chosen[lower] = value
        elif lower not in _OURS:
            chosen[name] = value
    lines = "".join(f"{name}: {value.strip()}\r\n" for name, value in chosen.items())
    return lines.encode("latin-1") + ours
