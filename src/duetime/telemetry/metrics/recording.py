"""The recorders of metrics: counters, gauges and histograms with their series.

Recording is cheap, since it lies on the path of every timer: see `docs/adr`. A series must be
recorded by one thread; any thread may read it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec import Struct

from duetime.telemetry.metrics.metric import Kind, Labels, Metric


class Counter:
    """A number for each set of label values, which only grows."""

    def __init__(self, metric: Metric) -> None:
        assert metric.kind is Kind.COUNTER
        self.metric = metric
        self._values: dict[Labels, float] = {} if metric.labels else {(): 0}

    def add(self, *labels: str, count: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + count

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0)

    def samples(self) -> list[tuple[Labels, float]]:
        return list(self._values.items())


Samples = Iterable[tuple[Labels, float]]


class Gauge:
    """Numbers that are read when they are asked for: `read` answers quickly, from memory. A counter
    that another part keeps is read like a gauge."""

    def __init__(self, metric: Metric, read: Callable[[], Samples]) -> None:
        assert metric.kind is not Kind.HISTOGRAM
        self.metric = metric
        self._read = read

    def samples(self) -> list[tuple[Labels, float]]:
        return list(self._read())


def one(metric: Metric, read: Callable[[], float | None]) -> Gauge:
    """A metric without labels. It has no sample while its value is unknown, or where the system
    does not tell it."""

    def samples() -> Samples:
        with suppress(OSError):
            value = read()
            if value is not None:
                yield (), value

    return Gauge(metric, samples)


class Exemplar(Struct, frozen=True):
    """An example of a bucket: the trace that a value belongs to."""

    trace_id: str
    value: float
    at_seconds: float
    """Seconds since 1970."""


class Series:
    """One series of a histogram. `counts` has the number of values in each bucket, the last one
    without an upper bound; `total` is the sum of all values."""

    __slots__ = ("_bounds", "counts", "exemplars", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.exemplars: dict[int, Exemplar] = {}

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def exemplify(self, exemplar: Exemplar) -> None:
        """Keep the example for the bucket of its value, which was observed."""
        self.exemplars[bisect_left(self._bounds, exemplar.value)] = exemplar


class Histogram:
    """The distribution of values for each set of label values. `before_reading` is called before
    they are read, in the reader's thread."""

    def __init__(self, metric: Metric, before_reading: Callable[[], None] = lambda: None) -> None:
        assert metric.kind is Kind.HISTOGRAM
        self.metric = metric
        self._before_reading = before_reading
        self._series: dict[Labels, Series] = {}
        if not metric.labels:
            self.of()

    def of(self, *labels: str) -> Series:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = Series(self.metric.buckets)
        return series

    def series(self) -> list[tuple[Labels, Series]]:
        self._before_reading()
        return list(self._series.items())


Recorder = Counter | Gauge | Histogram


class LabelValues:
    """The first values of a label; all further ones become `other`, so that nobody can make the
    number of series grow without end."""

    OTHER = "other"

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def of(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._limit:
            return self.OTHER
        self._known.add(value)
        return value
