"""The SDK's pipeline from the variables: resource, exporters, and their queue."""

import threading
from collections.abc import Sequence
from importlib.metadata import entry_points

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer

from duetime import __version__
from duetime.telemetry.traces.configuration import EXPORTER, EXTRA, ExportQueue, WrongTracing
from duetime.telemetry.traces.library_log import LibraryLog
from duetime.telemetry.traces.sampling import Sampling

LAST_EXPORT_SECONDS = 1.0
"""Time that the last spans may take at the stop. A collector that does not answer loses them."""

_GROUP = "opentelemetry_traces_exporter"


class Exporting:
    """Exports spans in threads of their own, from a bounded queue; spans beyond it are dropped."""

    def __init__(
        self,
        names: Sequence[str],
        queue: ExportQueue,
        sampling: Sampling,
        instance: str,
        log: LibraryLog,
    ) -> None:
        """The log is that of the SDK. Raises `WrongTracing`."""
        self._log = log
        exporters = [_exporter(name, log) for name in names]
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=_resource(instance),
            shutdown_on_exit=False,
            id_generator=_SampledIds(sampling),
        )
        for exporter in exporters:
            self._provider.add_span_processor(
                BatchSpanProcessor(
                    exporter,
                    max_queue_size=queue.max_spans,
                    max_export_batch_size=queue.max_batch,
                    schedule_delay_millis=queue.delay_ms,
                )
            )
        self.tracer: Tracer = self._provider.get_tracer("duetime", __version__)
        self._log.start()

    def stop(self) -> threading.Thread:
        """Export what is left, in a thread that keeps nobody from ending."""
        self._log.stop()
        last = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        last.start()
        return last


class _SampledIds(RandomIdGenerator):
    """Ids of traces that a sampler would sample, because only such traces are begun."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling

    def generate_trace_id(self) -> int:
        return self._sampling.sampled_trace_id()


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
