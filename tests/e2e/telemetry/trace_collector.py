"""A collector of spans: a real receiver of OTLP over HTTP, which decodes what it gets."""

from collections.abc import Callable
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.polling import poll
from tests.real_server.callback_receiver import CallbackReceiver

Span = Any
"""A span of OTLP."""


class TraceCollector(CallbackReceiver):
    """Takes spans from `settings` of a server."""

    @property
    def settings(self) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}

    def exports(self) -> list[ExportTraceServiceRequest]:
        return [
            ExportTraceServiceRequest.FromString(request.body) for request in self.of("/v1/traces")
        ]

    def resources(self) -> list[dict[str, object]]:
        return [
            attributes_of(each.resource)
            for export in self.exports()
            for each in export.resource_spans
        ]

    def spans(self) -> list[Span]:
        return [
            span
            for export in self.exports()
            for resource in export.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    async def wait_for_spans(
        self, count: int, matches: Callable[[Span], bool] = lambda span: True
    ) -> list[Span]:
        async def matching() -> list[Span]:
            return [span for span in self.spans() if matches(span)]

        return await poll(matching, lambda spans: len(spans) >= count)


def attributes_of(described: Any) -> dict[str, object]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value"))
        for each in described.attributes
    }
