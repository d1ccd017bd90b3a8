"""Errors as answers of the platform API."""

from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from duetime.api.http.answers import RETRY_LATER, Answer, error_headers
from duetime.api.platform.envelope import Code, answer
from duetime.domain.errors import DuetimeError, ErrorKind, StoreUnavailable

STATUS_AND_CODE: dict[ErrorKind, tuple[int, Code]] = {
    ErrorKind.INVALID_INPUT: (400, Code.VALIDATION),
    ErrorKind.TOO_LARGE: (413, Code.VALIDATION),
    ErrorKind.UNAUTHORIZED: (401, Code.UNAUTHORIZED),
    ErrorKind.FORBIDDEN: (403, Code.UNAUTHORIZED),
    ErrorKind.TOO_MANY_REQUESTS: (429, Code.UNEXPECTED),
    ErrorKind.NAMESPACE_NOT_FOUND: (400, Code.VALIDATION),
    ErrorKind.NO_SUCH_NAMESPACE: (404, Code.NOT_FOUND),
    ErrorKind.TIMER_NOT_FOUND: (404, Code.NOT_FOUND),
    ErrorKind.TIMER_NOT_PENDING: (400, Code.VALIDATION),
    ErrorKind.TIMER_NOT_FAILED: (400, Code.VALIDATION),
    ErrorKind.TIMER_CONFLICT: (409, Code.VALIDATION),
    ErrorKind.TOO_MANY_TIMERS: (429, Code.VALIDATION),
    ErrorKind.UNREADABLE: (500, Code.UNEXPECTED),
    ErrorKind.UNAVAILABLE: (503, Code.UNEXPECTED),
    ErrorKind.STORAGE_FULL: (503, Code.UNEXPECTED),
}

_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD")


def error_answer(error: Exception, scope: Mapping[str, Any]) -> Answer:
    """The answer that explains an error. Errors that the client did not cause are logged, and
    answered without details."""
    if isinstance(error, DuetimeError):
        status, code = STATUS_AND_CODE[error.kind]
        # The store reports a full disk once; a line per request would fill it, too.
        if status >= 500 and error.kind is not ErrorKind.STORAGE_FULL:
            structlog.get_logger().error(
                "api.unavailable", path=scope["path"], reason=error.message
            )
        message = error.public_message if isinstance(error, StoreUnavailable) else error.message
        return answer(status, code, message, None, error_headers(error, status))
    structlog.get_logger().error(
        "api.request_failed", method=scope["method"], path=scope["path"], exc_info=error
    )
    return answer(500, Code.UNEXPECTED, "internal error", None)


def refusal_answer(status: int, message: str) -> Answer:
    """The answer to a request that never became one for the API."""
    if status == 503:
        return answer(status, Code.UNEXPECTED, message, None, RETRY_LATER)
    return answer(status, Code.VALIDATION, message, None)


def no_such_path() -> Answer:
    return answer(404, Code.NOT_FOUND, "no such path", None)


def method_not_allowed(allowed: Iterable[str]) -> Answer:
    methods = ", ".join(sorted(allowed, key=_METHODS.index))
    message = f"method not allowed: this path takes {methods}"
    return answer(405, Code.VALIDATION, message, None, ((b"allow", methods.encode()),))
