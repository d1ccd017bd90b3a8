"""Counting and timing the requests that pass through an application."""

from starlette.types import ASGIApp, Receive, Scope, Send

from duetime.api.http.body import answered_status, explained_error
from duetime.api.http.operation import noted_operation
from duetime.telemetry.metrics.requests import NO_OPERATION, RequestMetrics


async def measured(
    requests: RequestMetrics, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Let the application answer the request, and count the answer."""
    began = requests.now()
    try:
        await app(scope, receive, send)
    finally:
        status = answered_status(scope)
        if status is not None:
            operation = noted_operation(scope)
            name = NO_OPERATION if operation is None else operation.id
            requests.of(name).answered(status, began)
        error = explained_error(scope)
        if error is not None:
            requests.failed(error)
