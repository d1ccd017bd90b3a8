"""The reference page of metrics, written from the catalogue.

`python -m duetime.telemetry.metrics.reference` rewrites it in the working directory.
"""

from pathlib import Path

from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS, GROUPS
from duetime.telemetry.metrics.metric import Kind, Metric

PAGE_PATH = Path("docs/reference/metrics.md")

_HEAD = """\
# Metrics

`GET /metrics` has these metrics, in the format of Prometheus or as OpenMetrics. [Monitor the
service](../how-to/monitor.md) tells how to scrape them, and which to look at first. The names, the
labels and their meaning are stable: a release that changes one says so in the changelog.

All are numbers of one process, unless their meaning says otherwise. A counter starts at 0 with its
process. With several workers every series has the label `worker`, the number of the worker.
Durations are in seconds and sizes in bytes.

`namespace` has at most `METRICS_NAMESPACES` values; further namespaces are `other`. Counters and
histograms tell apart the first namespaces that a process has seen. `duetime_timers` and
`duetime_timers_overdue` tell apart the first that exist, in their order. `endpoint` has at most
`METRICS_ENDPOINTS` values; further endpoints are `other`. No label has the id of a timer, a URL or
an attempt. A metric without a value, such as one of another store, is described in the scrape and
has no samples.
"""

_BUCKETS = """
## Buckets

Upper bounds of the buckets of each histogram. A last bucket has all larger values.

| name | upper bounds |
|---|---|
"""


def page_text() -> str:
    parts = [_HEAD]
    for heading, metrics in GROUPS.items():
        parts.append(f"\n## {heading}\n\n| name | type | labels | meaning |\n|---|---|---|---|\n")
        parts.extend(map(_row, metrics))
    parts.append(_BUCKETS)
    parts.extend(_bucket_row(metric) for metric in ALL_METRICS if metric.kind is Kind.HISTOGRAM)
    return "".join(parts)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{name}`" for name in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |\n"


def _bucket_row(metric: Metric) -> str:
    return f"| `{metric.name}` | {', '.join(f'{bound:g}' for bound in metric.buckets)} |\n"


def write_page(root: Path) -> None:
    (root / PAGE_PATH).write_text(page_text(), encoding="utf-8")


if __name__ == "__main__":
    write_page(Path.cwd())
