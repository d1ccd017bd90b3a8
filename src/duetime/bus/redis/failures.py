"""Why a Redis server did not do what it was asked for, in words for people."""

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

from duetime.network_failures import connect_problem, format_seconds

_REASONS: dict[type[Exception], str] = {
    OutOfMemoryError: "has no memory left (maxmemory)",
    ReadOnlyError: "is a replica and takes no writes",
    BusyLoadingError: "is still loading its data",
}
_REASONS_BY_CODE = {
    "NOGROUP": "misses a stream or its consumer group, which are created when the bus is opened",
    "MISCONF": "cannot write to its disk",
    "WRONGTYPE": "has something else than a stream under the name of a channel",
    "NOPERM": "does not allow this user what is needed",
}


class Place(Struct, frozen=True, kw_only=True):
    """Where the server is. `secret` is the password, which is never told."""

    name: str
    host: str
    secret: str

    def words_of(self, error: Exception) -> str:
        words = str(error) or type(error).__name__
        return words.replace(self.secret, "***") if self.secret else words


def problem_of(error: Exception, place: Place, *, tls_begins: bool, answer_seconds: float) -> str:
    """The whole explanation. `tls_begins` if TLS is wanted and was not spoken yet."""
    name = place.name
    if isinstance(error, AuthenticationError):
        return f"{name} {_refusal(str(error))}"
    if isinstance(error, ResponseError | BusyLoadingError):
        words = place.words_of(error)
        reason = _REASONS.get(type(error)) or _REASONS_BY_CODE.get(words.partition(" ")[0])
        return f"{name}: {words}" if reason is None else f"{name} {reason}: {words}"
    if isinstance(error, InvalidResponse):
        return f"{name}: what answers there is no Redis server"
    if isinstance(error, TimeoutError | RedisTimeoutError):
        hint = " (does it speak TLS?)" if tls_begins else ""
        return f"{name}: no answer within {format_seconds(answer_seconds)}{hint}"
    return f"{name}: {_connection_problem(error, place, tls_begins)}"


def _refusal(words: str) -> str:
    if "required" in words:
        return "needs a password"
    if "without any password" in words:
        return "has no password, and was given one"
    return "does not accept the user or the password"


def _connection_problem(error: Exception, place: Place, tls_begins: bool) -> str:
    cause = _cause(error)
    if cause is not None:
        return connect_problem(cause, place.host, uses_tls=tls_begins)
    words = place.words_of(error).rstrip(".")
    if isinstance(error, RedisConnectionError) and words.startswith("Connection closed"):
        return "connection closed by the server"
    return words[:1].lower() + words[1:]


def _cause(error: BaseException) -> OSError | None:
    """What the library has made its own error of."""
    if isinstance(error, OSError):
        return error
    before = error.__cause__ or error.__context__
    return _cause(before) if isinstance(error, RedisError) and before is not None else None
