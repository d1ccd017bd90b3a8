"""The reference page has every metric of the catalogue."""

import re
from pathlib import Path

from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS
from duetime.telemetry.metrics.metric import Kind
from duetime.telemetry.metrics.reference import PAGE_PATH, page_text

ROOT = Path(__file__).resolve().parents[3]
NAME = re.compile(r"(duetime|timer|process)(_[a-z]+)+")


def test_the_page_is_as_the_code_says() -> None:
    written = (ROOT / PAGE_PATH).read_text(encoding="utf-8")
    assert written == page_text(), "run: python -m duetime.telemetry.metrics.reference"


def test_names_and_labels_follow_the_rules_of_prometheus() -> None:
    assert len({metric.name for metric in ALL_METRICS}) == len(ALL_METRICS)
    for metric in ALL_METRICS:
        assert NAME.fullmatch(metric.name), metric.name
        assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER), metric.name
        assert metric.help.endswith("."), metric.name
        assert not {"id", "timer", "url", "le", "worker"} & set(metric.labels), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets)), metric.name
        assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM), metric.name


def test_the_lateness_is_told_from_half_a_millisecond_to_an_hour() -> None:
    (lateness,) = [each for each in ALL_METRICS if each.name == "duetime_lateness_seconds"]
    assert (lateness.buckets[0], lateness.buckets[-1]) == (0.0005, 3600)
