"""The SDK's pipeline from the variables: resource, exporters, their queue, and their own log."""

import logging
import threading
from collections.abc import Sequence
from importlib.metadata import entry_points

import structlog
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Tracer

from duetime import __version__
from duetime.ports.clock import Clock
from duetime.telemetry.traces.configuration import EXPORTER, EXTRA, WrongTracing
from duetime.telemetry.traces.sampling import Sampling

LAST_EXPORT_SECONDS = 1.0
"""Time that the last spans may take at the stop. A collector that does not answer loses them."""

REMIND_SECONDS = 60.0
"""Time between two log lines about exports."""

_GROUP = "opentelemetry_traces_exporter"
_LIBRARY = "opentelemetry"

_log = structlog.get_logger()


class Exporting:
    """Exports spans in threads of their own, from a bounded queue; spans beyond it are dropped."""

    def __init__(
        self,
        names: Sequence[str],
        sampling: Sampling | None,
        instance: str,
        clock: Clock,
    ) -> None:
        """Raises `WrongTracing`."""
        exporters = [_exporter(name) for name in names]
        self._provider = TracerProvider(
            sampler=None if sampling is None else ALWAYS_ON,
            resource=_resource(instance),
            shutdown_on_exit=False,
            id_generator=None if sampling is None else _SampledIds(sampling),
        )
        self._handler = _ExporterLog(clock)
        library = logging.getLogger(_LIBRARY)
        library.handlers[:] = [self._handler]
        library.propagate = False
        for exporter in exporters:
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.tracer: Tracer = self._provider.get_tracer("duetime", __version__)

    def stop(self) -> threading.Thread:
        """Export what is left, in a thread that keeps nobody from ending."""
        self._handler.is_quiet = True
        last = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        last.start()
        return last


class _SampledIds(RandomIdGenerator):
    """Ids of traces that a sampler would sample, because only such traces are begun."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling

    def generate_trace_id(self) -> int:
        return self._sampling.sampled_trace_id()


class _ExporterLog(logging.Handler):
    """Warnings of the library as one of our events, at most once a minute: a collector that is away
    fails every few seconds, and a full queue with every span."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(logging.WARNING)
        self._clock = clock
        self._remind_seconds = -REMIND_SECONDS
        self._count = 0
        self.is_quiet = False
        """Whether nothing more is logged, because the service stops."""

    def emit(self, record: logging.LogRecord) -> None:
        self._count += 1
        now_seconds = self._clock.monotonic()
        if self.is_quiet or now_seconds < self._remind_seconds:
            return
        self._remind_seconds = now_seconds + REMIND_SECONDS
        problem = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            problem += f" {record.exc_info[1]}"
        _log.warning("traces.export_troubled", problem=problem, count=self._count)
        self._count = 0


def _resource(instance: str) -> Resource:
    """The description of this process. Variables take precedence."""
    ours = {
        "service.name": "duetime",
        "service.version": __version__,
        "service.instance.id": instance,
    }
    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


def _exporter(name: str) -> SpanExporter:
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
        raise WrongTracing(f"traces cannot be exported by {name}: {error}") from None
    return exporter
