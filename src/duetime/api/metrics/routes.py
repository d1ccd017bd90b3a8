"""The operation `GET /metrics`."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Receive, Scope

from duetime.api.http.answers import Answer, Headers
from duetime.api.http.operation import SERVICE, Operation, OperationGroup, Response
from duetime.api.metrics.negotiation import accepts_gzip, format_for
from duetime.api.platform.routes import FORBIDDEN, INTERNAL, TOO_MANY, UNAUTHORIZED, UNAVAILABLE
from duetime.telemetry.metrics.exposition import Format

PATH = "/metrics"

COMPRESSED_BYTES = 4_096
"""Size from which an answer is worth compressing."""

Scrape = Callable[[Format], Awaitable[str]]
"""All metrics as text. Never waits for the store."""


class ScrapeAnswers:
    """Reads memory only, so that the metrics can tell of an absent store, too."""

    def __init__(self, scrape: Scrape) -> None:
        self._scrape = scrape

    async def metrics(self, scope: Scope, receive: Receive) -> Answer:
        form = format_for(scope["headers"])
        content = (await self._scrape(form)).encode()
        headers: Headers = ((b"content-type", form.value.encode()), (b"cache-control", b"no-store"))
        if len(content) >= COMPRESSED_BYTES and accepts_gzip(scope["headers"]):
            content = await asyncio.to_thread(gzip.compress, content, 1)
            headers += ((b"content-encoding", b"gzip"),)
        return Answer(200, content, headers)


_EXAMPLE = """\
# HELP duetime_slots_in_use Attempts under way.
# TYPE duetime_slots_in_use gauge
duetime_slots_in_use 3
"""

_OPERATIONS: tuple[Operation[ScrapeAnswers], ...] = (
    Operation(
        id="metrics",
        method="GET",
        path=PATH,
        handler=ScrapeAnswers.metrics,
        needs_store=False,
        for_all_namespaces=True,
        tag=SERVICE,
        summary="Metrics for Prometheus",
        description="The format of Prometheus, or OpenMetrics if `Accept` prefers that. Needs a "
        "key with the role `read` for all namespaces, unless the service runs with "
        "`METRICS_PUBLIC=true`. Answers while the store is away, while the service starts, and "
        "while it stops. With `METRICS_PORT` the metrics are on that port, and here is a 404.",
        responses=(
            Response(
                "200",
                "All metrics of the service.",
                {"type": "string"},
                {"One of them": _EXAMPLE},
                media=tuple(form.value.partition(";")[0] for form in Format),
            ),
            UNAUTHORIZED,
            FORBIDDEN,
            TOO_MANY,
            INTERNAL,
            UNAVAILABLE,
        ),
    ),
)

METRICS: tuple[OperationGroup[Any], ...] = (OperationGroup(ScrapeAnswers, _OPERATIONS),)
