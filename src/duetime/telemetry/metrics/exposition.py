"""Metrics as text: the format of Prometheus, and OpenMetrics, which has exemplars."""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import accumulate

from duetime.telemetry.metrics.metric import Labels, Metric
from duetime.telemetry.metrics.recording import Exemplar, Histogram, Recorder, Series

_NOT_FINITE = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}


class Format(Enum):
    """A format, as its media type."""

    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Renderer:
    """Renders recorders. The names and labels of each series are kept as text, because most of the
    work would be to make them again at every scrape. `constant` labels are added to all series."""

    def __init__(self, constant: Mapping[str, str] | None = None) -> None:
        self._constant = [f'{name}="{_escaped(value)}"' for name, value in (constant or {}).items()]
        self._prefixes: dict[tuple[str, Labels], str | list[str]] = {}

    def samples(self, recorder: Recorder, form: Format) -> str:
        """The lines of all series of one metric, without its description."""
        if isinstance(recorder, Histogram):
            return "".join(
                self._histogram(recorder.metric, labels, series, form)
                for labels, series in recorder.series()
            )
        metric = recorder.metric
        return "".join(
            f"{self._prefix(metric, labels)} {_number(value)}\n"
            for labels, value in recorder.samples()
        )

    def _prefix(self, metric: Metric, labels: Labels) -> str:
        key = (metric.name, labels)
        prefix = self._prefixes.get(key)
        if prefix is None:
            prefix = self._prefixes[key] = f"{metric.name}{self._braced(metric, labels)}"
        assert isinstance(prefix, str)
        return prefix

    def _histogram(self, metric: Metric, labels: Labels, series: Series, form: Format) -> str:
        prefixes = self._histogram_prefixes(metric, labels)
        counts = list(accumulate(series.counts))
        lines = [f"{prefix} {count}" for prefix, count in zip(prefixes, counts, strict=False)]
        if form is Format.OPENMETRICS:
            for bucket, exemplar in list(series.exemplars.items()):
                lines[bucket] += _exemplar(exemplar)
        return (
            "\n".join(lines)
            + f"\n{prefixes[-2]} {_number(series.total)}\n{prefixes[-1]} {counts[-1]}\n"
        )

    def _histogram_prefixes(self, metric: Metric, labels: Labels) -> list[str]:
        """The beginnings of the lines: all buckets, then sum and count."""
        key = (metric.name, labels)
        prefixes = self._prefixes.get(key)
        if prefixes is None:
            bounds = [*map(_number, metric.buckets), "+Inf"]
            prefixes = self._prefixes[key] = [
                *(f"{metric.name}_bucket{self._braced(metric, labels, bound)}" for bound in bounds),
                f"{metric.name}_sum{self._braced(metric, labels)}",
                f"{metric.name}_count{self._braced(metric, labels)}",
            ]
        assert isinstance(prefixes, list)
        return prefixes

    def _braced(self, metric: Metric, labels: Labels, bound: str | None = None) -> str:
        pairs = [
            *self._constant,
            *(
                f'{name}="{_escaped(value)}"'
                for name, value in zip(metric.labels, labels, strict=True)
            ),
            *([] if bound is None else [f'le="{bound}"']),
        ]
        return "{" + ",".join(pairs) + "}" if pairs else ""


def exposition(
    metrics: Sequence[Metric], samples: Iterable[Mapping[str, str]], form: Format
) -> str:
    """All metrics with their descriptions. `samples` are the lines by the names of their metrics,
    one mapping for each process. A metric without samples is described all the same."""
    processes = list(samples)
    parts = []
    for metric in metrics:
        name = metric.family if form is Format.OPENMETRICS else metric.name
        parts.append(f"# HELP {name} {_escaped_help(metric.help)}\n# TYPE {name} {metric.kind}\n")
        parts.extend(process.get(metric.name, "") for process in processes)
    if form is Format.OPENMETRICS:
        parts.append("# EOF\n")
    return "".join(parts)


def _exemplar(exemplar: Exemplar) -> str:
    value, at = _number(exemplar.value), f"{exemplar.at_seconds:.3f}"
    return f' # {{trace_id="{exemplar.trace_id}"}} {value} {at}'


def _number(value: float) -> str:
    return str(value) if math.isfinite(value) else _NOT_FINITE[str(value)]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
