"""The SDK's pipeline from the variables: resource, exporters, and their queue."""

import threading
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Final, cast

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    StatusCode,
    set_span_in_context,
)

from duetime import __version__
from duetime.telemetry.traces.configuration import EXPORTER, EXTRA, ExportQueue, WrongTracing
from duetime.telemetry.traces.library_log import LibraryLog
from duetime.telemetry.traces.span_record import SpanRecord

LAST_EXPORT_SECONDS = 1.0
"""Time that the last spans may take at the stop. A collector that does not answer loses them."""

_GROUP = "opentelemetry_traces_exporter"
_NANOSECONDS: Final = 1_000
"""Nanoseconds in a microsecond."""

_NO_PARENT: Final = set_span_in_context(INVALID_SPAN)


class Exporting:
    """Exports spans in threads of their own, from a bounded queue; spans beyond it are dropped."""

    def __init__(
        self, names: Sequence[str], queue: ExportQueue, instance: str, log: LibraryLog
    ) -> None:
        """The log is that of the SDK. Raises `WrongTracing`."""
        self._log = log
        exporters = [_exporter(name, log) for name in names]
        resource = _resource(instance)
        self._processors = [
            BatchSpanProcessor(
                _BuildingExporter(exporter, SpanBuilder(resource)),
                max_queue_size=queue.max_spans,
                max_export_batch_size=queue.max_batch,
                schedule_delay_millis=queue.delay_ms,
            )
            for exporter in exporters
        ]
        self._log.start()

    def export(self, span: SpanRecord) -> None:
        """Returns at once."""
        for processor in self._processors:
            # It asks for nothing but the flags before the exporter gets the span.
            processor.on_end(cast(ReadableSpan, span))

    def stop(self) -> threading.Thread:
        """Export what is left, in a thread that keeps nobody from ending."""
        self._log.stop()
        last = threading.Thread(target=self._export_last, name="last-spans", daemon=True)
        last.start()
        return last

    def _export_last(self) -> None:
        for processor in self._processors:
            processor.shutdown()  # type: ignore[no-untyped-call]


class _BuildingExporter(SpanExporter):
    """Builds the SDK's spans in the thread that exports them. On the event loop an SDK span takes
    a hundred microseconds, here a third of that: its code is in the cache for the next one."""

    def __init__(self, exporter: SpanExporter, builder: "SpanBuilder") -> None:
        self._exporter = exporter
        self._builder = builder

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        records = cast(Sequence[SpanRecord], spans)
        return self._exporter.export([self._builder.build(each) for each in records])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class SpanBuilder:
    """Builds spans of the SDK. One thread at a time may use it."""

    def __init__(self, resource: Resource) -> None:
        self._ids = _GivenIds()
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False, id_generator=self._ids
        )
        self._tracer = provider.get_tracer("duetime", __version__)

    def build(self, record: SpanRecord) -> ReadableSpan:
        self._ids.trace_id, self._ids.span_id = record.trace_id, record.span_id
        parent, link = record.parent, record.link
        span = self._tracer.start_span(
            record.name,
            _NO_PARENT if parent is None else set_span_in_context(NonRecordingSpan(parent)),
            record.kind,
            record.attributes,
            None if link is None else [Link(link)],
            record.began_at * _NANOSECONDS,
        )
        if record.is_error:
            span.set_status(StatusCode.ERROR)
        span.end(record.ended_at * _NANOSECONDS)
        assert isinstance(span, ReadableSpan)
        return span


class _GivenIds(IdGenerator):
    """The ids that a span already has: its endpoint knows them."""

    trace_id = 0
    span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


def _resource(instance: str) -> Resource:
    """The description of this process. Variables take precedence."""
    ours = {
        "service.name": "duetime",
        "service.version": __version__,
        "service.instance.id": instance,
    }
    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


def _exporter(name: str, log: LibraryLog) -> SpanExporter:
    found = next(iter(entry_points(group=_GROUP, name=name)), None)
    if found is None:
        needs = (
            "install opentelemetry-exporter-otlp-proto-grpc"
            if name == "otlp_proto_grpc"
            else f"{EXPORTER}={name} is not installed"
        )
        raise WrongTracing(f"traces cannot be exported: {needs} ({EXTRA} brings otlp and console)")
    try:
        exporter: SpanExporter = found.load()()
    except Exception as error:
        reason = log.cleaned(str(error))
        raise WrongTracing(f"traces cannot be exported by {name}: {reason}") from None
    return exporter
