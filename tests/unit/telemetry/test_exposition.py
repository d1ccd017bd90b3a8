"""Metrics as text, read by the parsers of Prometheus' own Python library."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus
from structlog.testing import capture_logs

from duetime.telemetry.metrics.catalogue import cluster, timers
from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS
from duetime.telemetry.metrics.exposition import Format
from duetime.telemetry.metrics.recording import (
    Counter,
    Exemplar,
    Gauge,
    Histogram,
    LabelValues,
    one,
)
from duetime.telemetry.metrics.registry import Registry


def families(
    registry: Registry,
    form: Format = Format.PROMETHEUS,
    others: Iterable[Mapping[str, str]] = (),
) -> dict[str, Any]:
    read = read_openmetrics if form is Format.OPENMETRICS else read_prometheus
    return {family.name: family for family in read(registry.render(form, others))}


def values(family: Any) -> dict[tuple[Any, ...], float]:
    return {(s.name, *sorted(s.labels.items())): s.value for s in family.samples}


@pytest.mark.parametrize("form", Format)
def test_a_counter_keeps_odd_label_values(form: Format) -> None:
    registry, created = Registry(), Counter(timers.CREATED)
    registry.add([created])
    odd = 'a"b\\c\nd €'
    created.add(odd, "http")
    created.add(odd, "http", count=2)

    found = families(registry, form)["duetime_timers_created"]

    (sample,) = found.samples
    assert sample.labels == {"namespace": odd, "type": "http"}
    assert sample.value == 3
    assert created.value(odd, "http") == 3


@pytest.mark.parametrize("form", Format)
def test_a_histogram_counts_values_up_to_and_including_each_bound(form: Format) -> None:
    registry, lateness = Registry(), Histogram(timers.LATENESS)
    registry.add([lateness])
    series = lateness.of("n", "http")
    for value in (0.0, 0.0005, 0.00051, 4_000.0):
        series.observe(value)

    found = families(registry, form)["duetime_lateness_seconds"]

    counts = {s.labels.get("le"): s.value for s in found.samples if s.name.endswith("_bucket")}
    assert counts["0.0005"] == 2
    assert counts["0.001"] == 3
    assert counts["3600.0"] == 3
    assert counts["+Inf"] == 4
    sums = {s.name.rpartition("_")[2]: s.value for s in found.samples}
    assert sums["count"] == 4
    assert sums["sum"] == pytest.approx(4_000.00101)


def test_exemplars_name_the_trace_in_openmetrics_only() -> None:
    registry, lateness = Registry(), Histogram(timers.LATENESS)
    registry.add([lateness])
    series = lateness.of("n", "http")
    series.observe(0.003)
    series.exemplify(Exemplar("0af7651916cd43dd8448eb211c80319c", 0.003, 1_700_000_000.25))

    found = families(registry, Format.OPENMETRICS)["duetime_lateness_seconds"]

    (sample,) = [s for s in found.samples if s.exemplar is not None]
    assert sample.labels["le"] == "0.005"
    assert sample.exemplar.labels == {"trace_id": "0af7651916cd43dd8448eb211c80319c"}
    assert sample.exemplar.value == 0.003
    assert float(sample.exemplar.timestamp) == 1_700_000_000.25
    assert "trace_id" not in registry.render(Format.PROMETHEUS)


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("value", [0, -1.5, math.inf, -math.inf, 1e300, 3])
def test_a_gauge_shows_any_number(form: Format, value: float) -> None:
    registry = Registry()
    registry.add([Gauge(cluster.CLOCK_OFFSET, lambda: [((), value)])])

    found = families(registry, form)["duetime_clock_offset_seconds"]

    assert [s.value for s in found.samples] == [value]


@pytest.mark.parametrize("form", Format)
def test_every_metric_of_the_catalogue_is_described_even_without_samples(form: Format) -> None:
    found = families(Registry(), form)

    assert {(f.name, f.type, f.documentation) for f in found.values()} == {
        (metric.family, metric.kind.value, metric.help) for metric in ALL_METRICS
    }


def test_one_exposition_has_the_samples_of_all_processes() -> None:
    first, second = Registry({"worker": "1"}), Registry({"worker": "2"})
    for registry, count in ((first, 1), (second, 5)):
        counter = Counter(cluster.RECOVERED)
        counter.add(count=count)
        registry.add([counter])

    found = families(first, others=[second.samples(Format.PROMETHEUS)])

    assert values(found["duetime_timers_recovered"]) == {
        ("duetime_timers_recovered_total", ("worker", "1")): 1,
        ("duetime_timers_recovered_total", ("worker", "2")): 5,
    }


def test_names_and_units_follow_the_rules_of_prometheus() -> None:
    for metric in ALL_METRICS:
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.name.startswith(("duetime_", "process_", "timer_")), metric.name
        assert not metric.name.endswith(("_ms", "_milliseconds", "_mb")), metric.name
        assert metric.help.endswith("."), metric.name
        assert bool(metric.buckets) == (metric.kind == "histogram"), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets)), metric.name
        assert not {"id", "timer", "url"} & set(metric.labels), metric.name
    assert len({metric.family for metric in ALL_METRICS}) == len(ALL_METRICS)


def test_a_metric_has_one_recorder() -> None:
    registry = Registry()
    registry.add([Counter(cluster.RECOVERED)])

    with pytest.raises(AssertionError, match="two recorders"):
        registry.add([Counter(cluster.RECOVERED)])


def test_label_values_beyond_the_limit_become_one() -> None:
    names = LabelValues(2)

    assert [names.of(each) for each in ("a", "b", "c", "a", "d")] == [
        "a",
        "b",
        "other",
        "a",
        "other",
    ]


def test_a_metric_that_cannot_be_read_hides_no_other() -> None:
    def broken() -> float:
        raise RuntimeError("a defect")

    def unknown() -> float:
        raise FileNotFoundError("/proc")

    registry = Registry()
    registry.add([one(cluster.MEMBERS, broken), one(cluster.SHARDS_OWNED, unknown)])
    registry.add([one(cluster.SHARDS, lambda: 16)])

    with capture_logs() as logs:
        families(registry)
        found = families(registry)

    assert [sample.value for sample in found["duetime_shards"].samples] == [16]
    assert found["duetime_cluster_members"].samples == []
    assert found["duetime_shards_owned"].samples == []
    (entry,) = logs
    assert (entry["event"], entry["metric"]) == ("metrics.unreadable", "duetime_cluster_members")
