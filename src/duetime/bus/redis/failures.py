"""Why a Redis server did not do what it was asked to do, in words for people."""

from msgspec import Struct
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    InvalidResponse,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from duetime.network_failures import connect_problem, format_seconds, scarce_resource

_REASONS: dict[type[Exception], str] = {
    OutOfMemoryError: "has no memory left (maxmemory)",
    ReadOnlyError: "is a replica and takes no writes",
    BusyLoadingError: "is still loading its data",
}
_REASONS_BY_CODE = {
    "NOGROUP": "lacks a stream or its consumer group, which are created when the bus is opened",
    "MISCONF": "cannot write to its disk",
    "WRONGTYPE": "has a key with the name of a channel that is not a stream",
    "NOPERM": "does not grant this user the permissions that Duetime needs",
}


class Server(Struct, frozen=True, kw_only=True):
    """`secret` is the password, which no message contains."""

    name: str
    host: str
    secret: str

    def text_of(self, error: Exception) -> str:
        text = str(error) or type(error).__name__
        return text.replace(self.secret, "***") if self.secret else text


def problem_of(
    error: Exception, server: Server, *, in_handshake: bool, answer_seconds: float
) -> str:
    """The whole explanation. `in_handshake`: TLS is required and not yet established."""
    name = server.name
    if isinstance(error, AuthenticationError):
        return f"{name} {_refusal(str(error))}"
    if isinstance(error, ResponseError | BusyLoadingError):
        words = server.text_of(error)
        reason = _REASONS.get(type(error)) or _REASONS_BY_CODE.get(words.partition(" ")[0])
        return f"{name}: {words}" if reason is None else f"{name} {reason}: {words}"
    if isinstance(error, InvalidResponse):
        return f"{name}: the server there is not a Redis server"
    if isinstance(error, TimeoutError | RedisTimeoutError):
        hint = " (does it speak TLS?)" if in_handshake else ""
        return f"{name}: no answer within {format_seconds(answer_seconds)}{hint}"
    return f"{name}: {_connection_problem(error, server, in_handshake)}"


def resource_lacked(error: Exception) -> str | None:
    """The resource that this process lacked when it tried to connect, if any."""
    cause = _cause(error)
    return None if cause is None else scarce_resource(cause)


def _refusal(words: str) -> str:
    if "required" in words:
        return "needs a password"
    if "without any password" in words:
        return "has no password, but the URL gives one"
    return "does not accept the user or the password"


def _connection_problem(error: Exception, server: Server, in_handshake: bool) -> str:
    cause = _cause(error)
    if cause is not None:
        return connect_problem(cause, server.host, uses_tls=in_handshake)
    words = server.text_of(error).rstrip(".")
    if isinstance(error, RedisConnectionError) and words.startswith("Connection closed"):
        return "connection closed by the server"
    return words[:1].lower() + words[1:]


def _cause(error: BaseException) -> OSError | None:
    """The system error behind the library's own error, if any."""
    if isinstance(error, OSError):
        return error
    before = error.__cause__ or error.__context__
    return _cause(before) if isinstance(error, RedisError) and before is not None else None
