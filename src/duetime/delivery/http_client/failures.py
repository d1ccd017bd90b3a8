"""Why a request got no answer, in words for the person who reads a timer's last error."""

import ssl

from duetime.network_failures import (
    connect_problem,
    format_seconds,
    os_error_text,
    tls_problem,
)

_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})
"""Codes of OpenSSL for certificates that are self-signed or of an unknown issuer."""


class DeliveryFailure(Exception):
    """The request got no complete answer. `str(failure)` is the whole explanation."""


class TimedOut(DeliveryFailure):
    """The total timeout of the request ended first."""

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(f"timed out after {format_seconds(timeout_seconds)}")


class LacksResource(Exception):
    """This process lacks descriptors, ports or memory, so nothing was sent. Not a failure of the
    request: neither the peer nor the network is to blame."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"out of {resource}")
        self.resource = resource


LATE_SECONDS = 0.1
"""Lateness of a timeout that shows that this process stood still, and not the peer."""


def is_late(now: float, due_at: float) -> bool:
    """Whether a timeout that was due at `due_at` comes so late that this process must have stood
    still meanwhile."""
    return now - due_at > LATE_SECONDS


def check_punctual(now: float, due_at: float) -> None:
    """Raise LacksResource if the timeout is late. For timeouts before anything was sent."""
    if is_late(now, due_at):
        raise LacksResource("processor time")


class NotConnected(DeliveryFailure):
    """No connection was established, or its TLS handshake failed, so nothing was sent."""


class RefusedAddress(DeliveryFailure):
    """The guard of the route allows no address of the host, so nothing was sent."""


class ConnectionLost(DeliveryFailure):
    """The connection ended before the answer did; the request may have been processed."""


class StaleConnection(ConnectionLost):
    """A kept-alive connection ended right after the request, before any byte of the answer.

    Most likely the peer closed it while the request was on its way and never saw the request.
    That is not certain, so the caller decides whether to send it again.
    """


class InvalidAnswer(DeliveryFailure):
    """The bytes received are not HTTP/1.x, or their head is unreasonably large."""

    def __init__(self) -> None:
        super().__init__("not a valid HTTP answer")


class ClientClosed(DeliveryFailure):
    """`HttpClient.close` was called before the answer arrived. Not the endpoint's fault."""

    def __init__(self) -> None:
        super().__init__("the HTTP client was closed")


def connection_problem(error: OSError, host: str, *, uses_tls: bool) -> str:
    """Why no connection was established, with the setting that may help."""
    problem = connect_problem(error, host, uses_tls=uses_tls)
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _UNKNOWN_AUTHORITY:
        problem += "; CALLBACK_CA_FILE can add its authority"
    return problem


def loss_problem(error: Exception | None, answer_started: bool) -> str:
    """Why an established connection ended. `error` is None when the peer closed it."""
    if isinstance(error, ssl.SSLError):
        # With TLS 1.3 a refused client certificate is only reported after the handshake.
        return tls_problem(error)
    if isinstance(error, ConnectionError):
        return "connection reset"
    if isinstance(error, OSError):
        return f"connection lost: {os_error_text(error)}"
    if answer_started:
        return "connection closed in the middle of the answer"
    return "connection closed before an answer"
