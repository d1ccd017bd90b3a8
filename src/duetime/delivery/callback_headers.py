"""The headers of an HTTP callback: what a client may ask for and what is sent."""

from duetime import __version__
from duetime.delivery.header_rules import check_safe
from duetime.delivery.http_client import RESERVED_HEADERS
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.timer import Claim

USER_AGENT = f"duetime/{__version__} timer-platform/0.1.0"

_OURS = RESERVED_HEADERS | {"webhook-id", "webhook-timestamp", "webhook-signature", "timer-attempt"}
_DEFAULTS = {"content-type": "application/json", "user-agent": USER_AGENT}
_DEFAULT_LINES = b"Content-Type: application/json\r\nUser-Agent: %b\r\n" % USER_AGENT.encode()


def check_headers(headers: dict[str, str]) -> None:
    check_safe(headers, "latin-1", "ISO 8859-1")


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
