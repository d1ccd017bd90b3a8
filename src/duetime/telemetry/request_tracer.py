"""The tracer of requests, as the API sees it."""

from typing import Protocol

from duetime.telemetry.current_work import CurrentWork


class RequestSpan(Protocol):
    def end(
        self, operation: str | None, route: str | None, namespace: str | None, status: int | None
    ) -> None:
        """`operation` is absent for a path that does not exist, and `status` if nobody was there to
        be answered. Never raises."""
        ...


class RequestTracer(Protocol):
    def begin_request(self, work: CurrentWork, method: str) -> RequestSpan | None:
        """A span whose parent is the caller's, if it has one. The work belongs to the new span.
        None if the request is not sampled. Never raises."""
        ...
