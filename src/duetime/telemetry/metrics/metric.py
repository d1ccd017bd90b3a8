"""The description of a metric: its name, kind, labels and meaning."""

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """The kinds of metrics, in the words of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


Labels = tuple[str, ...]
"""The values of a series' labels, in the order of the metric's label names."""


class Metric(Struct, frozen=True, kw_only=True):
    """A metric of the catalogue. `buckets` are the upper bounds of a histogram, without infinity.

    Names of counters end in `_total`. Units are base units: seconds and bytes.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def family(self) -> str:
        """The name without the suffix of a counter."""
        return self.name.removesuffix("_total") if self.kind is Kind.COUNTER else self.name


def counter(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.COUNTER, help=help_, labels=labels)


def gauge(name: str, help_: str, *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, help=help_, labels=labels)


def histogram(name: str, help_: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name=name, kind=Kind.HISTOGRAM, help=help_, labels=labels, buckets=buckets)
