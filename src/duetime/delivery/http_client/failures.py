"""Why a request got no answer, in words for the person who reads a timer's last error."""

import errno
import os
import re
import socket
import ssl


class DeliveryFailure(Exception):
    """The request got no complete answer. `str(failure)` is the whole explanation."""


class TimedOut(DeliveryFailure):
    """The total timeout of the request ended first."""

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(f"timed out after {format_seconds(timeout_seconds)}")


class NotConnected(DeliveryFailure):
    """No connection came about, so nothing was sent."""


class TlsFailed(DeliveryFailure):
    """The other side could not be trusted, or did not speak TLS with us."""


class ConnectionLost(DeliveryFailure):
    """The connection ended before the answer did; the request may have been processed."""


class StaleConnection(ConnectionLost):
    """A kept-alive connection ended before any byte of the answer.

    Most likely the peer closed it while the request was on its way and never saw it, so the
    caller may well send it again. But that is not certain, and so it is the caller's choice.
    """


class InvalidAnswer(DeliveryFailure):
    """What came back is not HTTP/1.x, or has an unreasonably large head."""

    def __init__(self) -> None:
        super().__init__("not a valid HTTP answer")


class ClientClosed(DeliveryFailure):
    """`HttpClient.close` was called before the answer arrived. Not the endpoint's fault."""

    def __init__(self) -> None:
        super().__init__("the HTTP client was closed")


def format_seconds(seconds: float) -> str:
    text = f"{seconds:.3f}".rstrip("0").rstrip(".")
    return f"{text} s"


def name_not_found(host: str) -> NotConnected:
    return NotConnected(f"host name not found: {host}")


def connecting_timed_out(connect_timeout_seconds: float) -> NotConnected:
    return NotConnected(
        f"could not connect: timed out after {format_seconds(connect_timeout_seconds)}"
    )


def resolve_failure(error: OSError, host: str) -> NotConnected:
    """Explain why the resolver gave no address."""
    if not isinstance(error, socket.gaierror):
        return NotConnected(f"could not connect: {_reason(error)}")
    if error.errno in _NAME_NOT_FOUND:
        return name_not_found(host)
    text = error.strerror or "name resolution failed"
    return NotConnected(f"could not connect: {text[:1].lower()}{text[1:]}")


def connect_failure(error: OSError, scheme: str) -> NotConnected | TlsFailed:
    """Explain why an address could not be connected to."""
    if isinstance(error, ssl.SSLError):
        return tls_failure(error)
    error = _first_of_several(error)
    if error.errno == errno.ECONNREFUSED:
        return NotConnected("connection refused")
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return NotConnected("no route to host")
    if isinstance(error, ConnectionError):
        # TCP was established by then, as its failure would have been a refusal.
        if scheme == "https":
            return TlsFailed("TLS handshake failed: connection closed by the other side")
        return NotConnected("connection reset")
    return NotConnected(f"could not connect: {_reason(error)}")


def tls_failure(error: ssl.SSLError) -> TlsFailed:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message or error.reason or "verification failed"
        return TlsFailed(f"TLS certificate not accepted: {reason}")
    reason = (error.reason or error.strerror or "unknown reason").replace("_", " ").lower()
    return TlsFailed(f"TLS handshake failed: {reason}")


def loss_failure(error: Exception | None, answer_started: bool) -> DeliveryFailure:
    """Explain why an established connection ended. `error` is None when the peer closed it."""
    if isinstance(error, ssl.SSLError):
        # With TLS 1.3 a refused client certificate is only reported after the handshake.
        return tls_failure(error)
    if isinstance(error, ConnectionError):
        return ConnectionLost("connection reset")
    if isinstance(error, OSError):
        return ConnectionLost(f"connection lost: {_reason(error)}")
    if answer_started:
        return ConnectionLost("connection closed in the middle of the answer")
    return ConnectionLost("connection closed before an answer")


def _first_of_several(error: OSError) -> OSError:
    """asyncio makes one text of the failures, one for each address of a name."""
    found = _ERROR_NUMBER.search(str(error)) if error.errno is None else None
    return error if found is None else OSError(int(found[1]), "")


def _reason(error: OSError) -> str:
    # asyncio puts the address into strerror, so the text is looked up by number.
    if error.errno is None:
        return str(error) or type(error).__name__
    text = os.strerror(error.errno)
    return text[:1].lower() + text[1:]


_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]")
_NAME_NOT_FOUND = frozenset(
    number
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
    if (number := getattr(socket, name, None)) is not None
)
