"""Errors of the driver as errors of the store."""

import ssl

import asyncpg

from duetime.domain.errors import StorageFull, StoreUnavailable, StoreUnreachable
from duetime.stores.postgres.options import PostgresOptions

# SQLSTATEs, and classes of them, for which the statement is not at fault: the connection, the
# server or its operator keeps it from being executed now.
_CONNECTION_LOST = "08"
_REFUSED_ENTRY = "28"
_CONFLICT = "40"
_RESOURCES = "53"
_INTERVENTION = "57"
_SYSTEM = "58"
_NOT_NOW = (_CONNECTION_LOST, _REFUSED_ENTRY, _CONFLICT, _RESOURCES, _INTERVENTION, _SYSTEM)
_READ_ONLY = "25006"
_DISK_FULL = "53100"
_IDLE_IN_TRANSACTION = "25P03"
_NO_SUCH_DATABASE = "3D000"
_NO_PRIVILEGE = "42501"
_LOCK_NOT_AVAILABLE = "55P03"
_NOT_NOW_EITHER = {
    _READ_ONLY,
    _IDLE_IN_TRANSACTION,
    _NO_SUCH_DATABASE,
    _NO_PRIVILEGE,
    _LOCK_NOT_AVAILABLE,
}

_QUOTED_ARGUMENT = "invalid input for query argument"

# States of a server that starts, stops or has no connection left, and of lost connections.
_PASSING = (_CONNECTION_LOST, "53300", "57P01", "57P02", "57P03")

DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Raised for a connection that the server ended while it was idle.
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


def store_error(error: Exception, options: PostgresOptions) -> Exception:
    """`StoreUnavailable` if a retry or an operator can help, `StoreUnreachable` if time alone may
    help; otherwise the error itself, which is a fault in Duetime's code, even if PostgreSQL found
    it. The error has lost the values that it quoted: it may be logged."""
    if isinstance(error, asyncpg.PostgresError):
        _forget_values(error)
    problem = _problem(error)
    if problem is None:
        return error
    if isinstance(error, asyncpg.PostgresError) and error.sqlstate == _DISK_FULL:
        return StorageFull(
            f"PostgreSQL ({options.place}): {problem}",
            public_message="the disk of the database is full, try again later",
        )
    kind = StoreUnreachable if _may_pass(error) else StoreUnavailable
    return kind(
        f"PostgreSQL ({options.place}): {problem}",
        public_message="the database is not available, try again later",
    )


def _forget_values(error: asyncpg.PostgresError) -> None:
    """The detail quotes the row at fault, and the driver quotes an argument that it cannot send."""
    error.detail = None
    start, quoted, _ = str(error).partition(_QUOTED_ARGUMENT)
    if quoted:
        error.args = (f"{start}{quoted}",)


def _may_pass(error: Exception) -> bool:
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_PASSING)
    if isinstance(error, asyncpg.InternalClientError | TimeoutError):
        return True
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError | PermissionError)


def _problem(error: Exception) -> str | None:
    if isinstance(error, asyncpg.PostgresError):
        return _postgres_problem(str(error), error.sqlstate or "")
    if isinstance(error, asyncpg.InterfaceError):
        # Values that cannot be sent are InterfaceErrors too, and a fault in the code.
        return None if isinstance(error, ValueError) else str(error)
    if isinstance(error, asyncpg.InternalClientError):
        return "the connection was lost"
    if isinstance(error, TimeoutError):
        return "it did not answer in time; is it overloaded or cut off?"
    if isinstance(error, OSError):
        return f"{error.strerror or error}; is it running, and reachable?"
    return None


def _postgres_problem(text: str, state: str) -> str | None:
    if not (state.startswith(_NOT_NOW) or state in _NOT_NOW_EITHER):
        return None
    # Messages may have details in further lines; this one has a single line.
    message = text.partition("\n")[0]
    if state.startswith(_REFUSED_ENTRY):
        return f"{message}; check the user name and the password in the database URL"
    if state == _NO_SUCH_DATABASE:
        return f"{message}; create it, or correct the database URL"
    if state == _NO_PRIVILEGE:
        return f"{message}; grant it, or use a role that may"
    if state == _READ_ONLY:
        return f"{message}; the URL must lead to the primary server"
    return message
