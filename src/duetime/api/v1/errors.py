"""Errors in the format of the v1 API: `{error, message, details, timestamp}`."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import structlog
from msgspec import json

from duetime.api.http.answers import JSON_TYPE, Answer, Headers, error_headers
from duetime.api.http.decoding import InvalidRequest
from duetime.api.v1.answer_types import Details, ErrorAnswer, ItemError
from duetime.domain.errors import (
    DuetimeError,
    ErrorKind,
    InvalidInput,
    LimitForbidden,
    NamespaceDiffers,
    NamespaceNotFound,
    StoreUnavailable,
    TimerDiffers,
    TooManyTimers,
)
from duetime.domain.instants import Instant, format_instant

STATUS_AND_ERROR: dict[ErrorKind, tuple[int, str]] = {
    ErrorKind.INVALID_INPUT: (400, "INVALID_INPUT"),
    ErrorKind.TOO_LARGE: (413, "PAYLOAD_TOO_LARGE"),
    ErrorKind.UNAUTHORIZED: (401, "UNAUTHORIZED"),
    ErrorKind.FORBIDDEN: (403, "FORBIDDEN"),
    ErrorKind.TOO_MANY_REQUESTS: (429, "TOO_MANY_REQUESTS"),
    ErrorKind.NAMESPACE_NOT_FOUND: (400, "NAMESPACE_NOT_FOUND"),
    ErrorKind.NO_SUCH_NAMESPACE: (404, "NAMESPACE_NOT_FOUND"),
    ErrorKind.TIMER_NOT_FOUND: (404, "TIMER_NOT_FOUND"),
    ErrorKind.TIMER_NOT_PENDING: (409, "TIMER_NOT_PENDING"),
    ErrorKind.TIMER_NOT_FAILED: (409, "TIMER_NOT_FAILED"),
    ErrorKind.TIMER_CONFLICT: (409, "TIMER_CONFLICT"),
    ErrorKind.NAMESPACE_NOT_EMPTY: (409, "NAMESPACE_NOT_EMPTY"),
    ErrorKind.NAMESPACE_CONFLICT: (409, "NAMESPACE_CONFLICT"),
    ErrorKind.OPERATION_NOT_FOUND: (404, "OPERATION_NOT_FOUND"),
    ErrorKind.OPERATION_NOT_RUNNING: (409, "OPERATION_NOT_RUNNING"),
    ErrorKind.TOO_MANY_OPERATIONS: (429, "TOO_MANY_OPERATIONS"),
    ErrorKind.SECRET_NOT_FOUND: (404, "SECRET_NOT_FOUND"),
    ErrorKind.SECRET_CONFIGURED: (409, "SECRET_CONFIGURED"),
    ErrorKind.TOO_MANY_SECRETS: (409, "TOO_MANY_SECRETS"),
    ErrorKind.TOO_MANY_TIMERS: (429, "TOO_MANY_TIMERS"),
    ErrorKind.KEY_NOT_FOUND: (404, "KEY_NOT_FOUND"),
    ErrorKind.KEY_NOT_ACTIVE: (409, "KEY_NOT_ACTIVE"),
    ErrorKind.TOO_MANY_KEYS: (409, "TOO_MANY_KEYS"),
    ErrorKind.ENDPOINT_NOT_PAUSED: (404, "ENDPOINT_NOT_PAUSED"),
    ErrorKind.TOO_MANY_PAUSES: (409, "TOO_MANY_PAUSES"),
    ErrorKind.UNREADABLE: (500, "INTERNAL_ERROR"),
    ErrorKind.UNAVAILABLE: (503, "SERVICE_UNAVAILABLE"),
    ErrorKind.STORAGE_FULL: (507, "INSUFFICIENT_STORAGE"),
}

ERRORS = dict.fromkeys(
    (*(error for _, error in STATUS_AND_ERROR.values()), "NOT_FOUND", "METHOD_NOT_ALLOWED")
)

_SNAKE = re.compile(r"[a-z]+(?:_[a-z]+)+")

# The service's names for fields, and this API's. Here all callbacks are made over HTTP, and a timer
# with a callback of another type has no URL.
_FIELDS = (
    ("callback.type", "callbackUrl"),
    ("callback.url", "callbackUrl"),
    ("callback.payload", "payload"),
    ("callback.headers", "callbackHeaders"),
    ("callback.timeout", "callbackTimeout"),
    ("callback.protocol", "callbackProtocol"),
)


def error_answer(error: Exception, scope: Mapping[str, Any], now: Instant) -> Answer:
    """The answer that explains an error. Errors that the client did not cause are logged, and
    answered without details."""
    if not isinstance(error, DuetimeError):
        structlog.get_logger().error(
            "api.request_failed", method=scope["method"], path=scope["path"], exc_info=error
        )
        return refusal(500, "INTERNAL_ERROR", "internal error", now)
    status, _ = STATUS_AND_ERROR[error.kind]
    # The store reports a full disk once; a line per request would fill it, too.
    if status >= 500 and error.kind is not ErrorKind.STORAGE_FULL:
        structlog.get_logger().error("api.unavailable", path=scope["path"], reason=error.message)
    item = item_error(error)
    headers = error_headers(error, status)
    return refusal(status, item.error, item.message, now, item.details, headers)


def code_of(error: Exception) -> str:
    """The code of an error, also of one that this API cannot raise."""
    return STATUS_AND_ERROR[error.kind][1] if isinstance(error, DuetimeError) else "INTERNAL_ERROR"


def refusal(
    status: int,
    error: str,
    message: str,
    now: Instant,
    details: Details | None = None,
    headers: Headers = (),
) -> Answer:
    body = ErrorAnswer(
        error=error, message=message, details=details or {}, timestamp=format_instant(now)
    )
    return Answer(status, json.encode(body), JSON_TYPE + headers)


def item_error(error: DuetimeError) -> ItemError:
    """The error without a timestamp, for a list of results."""
    _, code = STATUS_AND_ERROR[error.kind]
    message, details = _message_and_details(error)
    return ItemError(error=code, message=message, details=details)


def _message_and_details(error: DuetimeError) -> tuple[str, Details]:
    if isinstance(error, InvalidRequest):
        return error.message, {"field": error.field}
    if isinstance(error, InvalidInput):
        field, problem = _field_and_problem(error)
        return f"{field} {problem}", {"field": field}
    if isinstance(error, NamespaceNotFound):
        return error.message, {"field": "namespace"}
    if isinstance(error, LimitForbidden):
        return in_camel_case(error.message), {"field": in_camel_case(error.field)}
    if isinstance(error, NamespaceDiffers):
        fields = list(map(in_camel_case, error.fields))
        return in_camel_case(error.message), {"fields": fields}
    if isinstance(error, TimerDiffers):
        fields = [_renamed(field) or in_camel_case(field) for field in error.fields]
        return TimerDiffers(fields).message, {"fields": fields}
    if isinstance(error, TooManyTimers):
        details: Details = {"field": "namespace", "maxPending": error.max_pending}
        return error.message.replace("(max_pending)", "(maxPending)"), details
    status = getattr(error, "status", None)
    if status is not None:
        return error.message, {"status": status.label}
    return (error.public_message if isinstance(error, StoreUnavailable) else error.message), {}


def no_such_path(meant: str | None, now: Instant) -> Answer:
    advice = "" if meant is None else f"; did you mean {meant}?"
    return refusal(404, "NOT_FOUND", f"no such path{advice}", now)


def method_not_allowed(allowed: Collection[str], now: Instant) -> Answer:
    methods = ", ".join(sorted({*allowed, "HEAD"} if "GET" in allowed else allowed))
    message = f"method not allowed: this path takes {methods}"
    return refusal(405, "METHOD_NOT_ALLOWED", message, now, headers=((b"allow", methods.encode()),))


def _field_and_problem(error: InvalidInput) -> tuple[str, str]:
    """The error's field and problem in the spelling of this API."""
    renamed = _renamed(error.field)
    if renamed is not None:
        return renamed, error.problem
    return in_camel_case(error.field), in_camel_case(error.problem)


def _renamed(field: str) -> str | None:
    for name, ours in _FIELDS:
        if field == name or field.startswith(f"{name}."):
            return ours + field.removeprefix(name)
    return None


def in_camel_case(text: str) -> str:
    return _SNAKE.sub(_camel, text)


def _camel(match: re.Match[str]) -> str:
    first, *rest = match[0].split("_")
    return first + "".join(word.capitalize() for word in rest)
