"""Errors as pages, and as JSON for scripts."""

import structlog
from msgspec import json
from starlette.types import Scope

from duetime.api.http.answers import JSON_TYPE, Answer, error_headers
from duetime.api.v1.errors import STATUS_AND_ERROR
from duetime.domain.errors import DuetimeError, ErrorKind, InvalidInput, StoreUnavailable
from duetime.web.forms.labels import in_words
from duetime.web.rendering.view import View

_NOT_THE_CLIENTS = "internal error: the log of the service has the reason"

_TITLES = {
    400: "That does not work",
    401: "Sign in",
    403: "Not allowed",
    404: "Not found",
    409: "That does not work now",
    413: "Too large",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Not available",
    507: "The disk is full",
}


class NoSuchPage(Exception):
    """Nothing is at the path, or not for this method."""


def status_of(error: Exception) -> int:
    """The status of the answer. It is 404 for a namespace that does not exist: here it is in the
    path."""
    if isinstance(error, NoSuchPage):
        return 404
    if not isinstance(error, DuetimeError):
        return 500
    if error.kind is ErrorKind.NAMESPACE_NOT_FOUND:
        return 404
    return STATUS_AND_ERROR[error.kind][0]


def words_of(error: Exception) -> str:
    """The error in words that a user may see."""
    if isinstance(error, NoSuchPage):
        return "there is no such page"
    if isinstance(error, StoreUnavailable):
        return error.public_message
    if isinstance(error, InvalidInput):
        return in_words(error)
    return error.message if isinstance(error, DuetimeError) else _NOT_THE_CLIENTS


def log_error(error: Exception, scope: Scope) -> None:
    """Log an error that the client did not cause."""
    if isinstance(error, NoSuchPage):
        return
    if not isinstance(error, DuetimeError):
        structlog.get_logger().error(
            "api.request_failed", method=scope["method"], path=scope["path"], exc_info=error
        )
    elif status_of(error) in (500, 503):
        structlog.get_logger().error("api.unavailable", path=scope["path"], reason=error.message)


def error_view(error: Exception) -> View:
    status = status_of(error)
    return View(
        template="pages/error.html",
        title=_TITLES.get(status, _TITLES[400]),
        values={"words": words_of(error), "is_ours": status >= 500},
        status=status,
    )


def error_json(error: Exception) -> Answer:
    """The error for a script: the words, and the field if there is one."""
    status = status_of(error)
    content: dict[str, object] = {"message": words_of(error)}
    if isinstance(error, InvalidInput):
        content |= {"field": error.field, "problem": error.problem}
    headers = JSON_TYPE
    if isinstance(error, DuetimeError):
        headers = (*JSON_TYPE, *error_headers(error, status))
    return Answer(status, json.encode(content), headers)
