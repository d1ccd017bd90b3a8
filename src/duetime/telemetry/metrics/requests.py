"""Metrics of the requests to the API."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from duetime.domain.errors import DuetimeError, ErrorKind
from duetime.telemetry.metrics.catalogue.process import (
    REQUEST_DURATION,
    REQUESTS,
    REQUESTS_REFUSED,
)
from duetime.telemetry.metrics.metric import Labels
from duetime.telemetry.metrics.recording import Counter, Gauge, Histogram, Recorder, Series

NO_OPERATION = "none"
"""The operation of requests that were for none: unknown paths, and requests that the server itself
refused."""

_REFUSALS = {
    ErrorKind.UNAUTHORIZED: "unauthorized",
    ErrorKind.FORBIDDEN: "forbidden",
    ErrorKind.TOO_MANY_REQUESTS: "throttled",
}


class OperationRequests:
    """The requests for one operation."""

    __slots__ = ("_observe", "now", "statuses")

    def __init__(self, now: Callable[[], float], series: Series) -> None:
        self.now = now
        self.statuses: defaultdict[int, int] = defaultdict(int)
        self._observe = series.observe

    def answered(self, status: int, began: float) -> None:
        """Count a request that began at that time by `now`."""
        self.statuses[status] += 1
        self._observe(self.now() - began)

    def refused(self, status: int) -> None:
        """Count a request that was answered before it could be timed."""
        self.statuses[status] += 1


class RequestMetrics:
    """The requests to the API by operation, and those that were refused because of their key."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._durations = Histogram(REQUEST_DURATION)
        self._refused = Counter(REQUESTS_REFUSED)
        for reason in _REFUSALS.values():
            self._refused.add(reason, count=0)
        self._operations: dict[str, OperationRequests] = {}

    def of(self, operation: str) -> OperationRequests:
        found = self._operations.get(operation)
        if found is None:
            found = OperationRequests(self.now, self._durations.of(operation))
            self._operations[operation] = found
        return found

    def failed(self, error: Exception) -> None:
        """Count the request if its key was refused."""
        if isinstance(error, DuetimeError) and error.kind in _REFUSALS:
            self._refused.add(_REFUSALS[error.kind])

    def recorders(self) -> list[Recorder]:
        return [Gauge(REQUESTS, self._counts), self._durations, self._refused]

    def _counts(self) -> Iterator[tuple[Labels, float]]:
        for operation, requests in self._operations.items():
            for status, count in requests.statuses.items():
                yield (operation, str(status)), count
