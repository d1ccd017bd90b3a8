"""Why a NATS server did not do what it was asked to do, in words for people."""

from nats.errors import Error, StaleConnectionError, UnexpectedEOF

from duetime.domain.errors import Unavailable
from duetime.network_failures import connect_problem, format_seconds


class NatsFailure(Unavailable):
    """`message` is the whole explanation. `blames_server` is False when the server is evidently
    alive and refuses only this request. `lacks` names the resource without which this process
    could not connect; then nothing was sent."""

    what = "nats"

    def __init__(
        self, message: str, *, blames_server: bool = True, lacks: str | None = None
    ) -> None:
        super().__init__(message)
        self.blames_server = blames_server
        self.lacks = lacks


class NatsTimeout(NatsFailure):
    """No answer arrived in time."""


def timed_out(server: str, timeout_seconds: float) -> NatsTimeout:
    return NatsTimeout(f"no answer from {server} within {format_seconds(timeout_seconds)}")


def connecting_problem(error: Exception, host: str, *, uses_tls: bool, seconds: float) -> str:
    """Why no connection was established."""
    if isinstance(error, NatsFailure):
        return error.message
    if isinstance(error, TimeoutError):
        return f"timed out after {format_seconds(seconds)}"
    if isinstance(error, Error):
        return ending_problem(error)
    if isinstance(error, OSError):
        return connect_problem(error, host, uses_tls=uses_tls)
    return str(error) or type(error).__name__


def ending_problem(error: Exception | None) -> str:
    """Why a connection ended."""
    if error is None or isinstance(error, UnexpectedEOF):
        return "connection closed by the server"
    if isinstance(error, StaleConnectionError):
        return "the server has stopped answering"
    if isinstance(error, OSError):
        return "connection reset"
    return str(error).removeprefix("nats: ").strip("' ").lower()
