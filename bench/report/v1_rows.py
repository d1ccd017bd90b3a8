"""Rows of the Timer API v1."""

from statistics import median

from bench.harness.percentiles import Percentiles
from bench.measurements.v1.batches import BatchesFigures
from bench.measurements.v1.busy_api import BusyApiFigures
from bench.measurements.v1.crowd import CrowdFigures
from bench.measurements.v1.hanging import HangingFigures
from bench.measurements.v1.imports import SAMPLED_PERCENTS, ImportFigures
from bench.measurements.v1.listing import PAGE
from bench.measurements.v1.pages import PageFigures, PagesFigures, Place
from bench.measurements.v1.retries import ATTEMPTS, RetriesFigures
from bench.measurements.v1.session import V1Figures
from bench.measurements.v1.slow_clients import SlowClientsFigures
from bench.report.bounds import Bounds
from bench.report.rows import Row, Verdict, below, cpu_row, judge, percentiles_text, ratio_text
from duetime.domain.namespace import DEFAULT_NAMESPACE


def v1_rows(figures: V1Figures, bounds: Bounds) -> list[Row]:
    rows = []
    if figures.batches is not None:
        rows += batches_rows(figures.batches, bounds)
    if figures.imported is not None:
        rows += import_rows(figures.imported, bounds)
    if figures.pages is not None:
        rows += pages_rows(figures.pages, bounds)
    if figures.hanging is not None:
        rows += hanging_rows(figures.hanging, bounds)
    if figures.crowd is not None:
        rows += crowd_rows(figures.crowd, bounds)
    if figures.busy_api is not None:
        rows += busy_api_rows(figures.busy_api)
    if figures.slow_clients is not None:
        rows += slow_clients_rows(figures.slow_clients, bounds)
    if figures.retries is not None:
        rows += retries_rows(figures.retries)
    return rows


def batches_rows(figures: BatchesFigures, bounds: Bounds) -> list[Row]:
    return [
        Row(
            f"v1 batches of {figures.batch}, {figures.connections} connections",
            f"{figures.per_second:,.0f}/s",
            f"{figures.limit.per_second:,.0f}/s bare table",
            f"{figures.ratio:.2f}",
            *judged_inserts(figures.per_second, figures.ratio, bounds),
        ),
        Row("  latency of a batch p50 / p99 / max", percentiles_text(figures.load.latency)),
        cpu_row("  ", figures.cpu_us_per_timer),
        memory_row("  memory right after", figures.memory_mb, bounds),
        first_page_row(figures.first_page, bounds),
    ]


def judged_inserts(rate: float, ratio: float, bounds: Bounds) -> tuple[str, Verdict]:
    parts = []
    if bounds.batches_per_second:
        parts.append(f"≥ {bounds.batches_per_second:,}/s")
    if bounds.batches_limit_ratio:
        parts.append(f"≥ {bounds.batches_limit_ratio} of limit")
    held = rate >= bounds.batches_per_second and ratio >= bounds.batches_limit_ratio
    return " and ".join(parts), judge(held)


def memory_row(what: str, memory_mb: float, bounds: Bounds) -> Row:
    if bounds.batches_memory_mb is None:
        return Row(what, f"{memory_mb:.0f} MB")
    return below(what, memory_mb, bounds.batches_memory_mb, "MB", digits=0)


def first_page_row(latency: Percentiles, bounds: Bounds) -> Row:
    return Row(
        "  first page right after p50 / p99 / max",
        percentiles_text(latency),
        bound=f"p99 < {bounds.page_p99_ms:g} ms",
        verdict=judge(latency.p99_ms < bounds.page_p99_ms),
    )


def import_rows(figures: ImportFigures, bounds: Bounds) -> list[Row]:
    half, whole = figures.memory_at(50), figures.memory_at(100)
    sampled = " / ".join(f"{figures.memory_at(each):.0f}" for each in SAMPLED_PERCENTS)
    most_mb = bounds.import_growth_mb
    return [
        Row(
            f"v1 import of {figures.count:,} lines",
            f"{figures.per_second:,.0f}/s",
            f"{figures.limit.per_second:,.0f}/s bare table",
            f"{figures.ratio:.2f}",
            *judged_inserts(figures.per_second, figures.ratio, bounds),
        ),
        cpu_row("  ", figures.cpu_us_per_timer),
        Row(
            f"  memory at {', '.join(map(str, SAMPLED_PERCENTS))} %",
            f"{sampled} MB",
            bound=f"≤ {most_mb:g} MB above 50 %",
            verdict=judge(whole - half <= most_mb),
        ),
        memory_row("  peak memory", figures.peak_mb, bounds),
        first_page_row(figures.first_page, bounds),
    ]


def pages_rows(figures: PagesFigures, bounds: Bounds) -> list[Row]:
    """One row per filter and page, over both orders."""
    places = dict.fromkeys((each.filter, each.place) for each in figures.pages)
    return [
        Row(
            f"v1 pages of {PAGE} with {figures.stored:,}, p50 / p99",
            limit="with 1,000",
            ratio="of p50",
        ),
        *(place_row(figures, name, place, bounds) for name, place in places),
    ]


def place_row(figures: PagesFigures, name: str, place: Place, bounds: Bounds) -> Row:
    pages = [each for each in figures.pages if (each.filter, each.place) == (name, place)]
    large = [each for each in pages if each.namespace == DEFAULT_NAMESPACE]
    small = [each for each in pages if each.namespace != DEFAULT_NAMESPACE]
    slowest_ms = max(each.latency.p99_ms for each in pages)
    return Row(
        f"  {name}, {place} page",
        pages_text(large),
        pages_text(small),
        ratio_text(middle_ms(large), middle_ms(small)),
        f"p99 < {bounds.page_p99_ms:g} ms",
        judge(slowest_ms < bounds.page_p99_ms),
    )


def pages_text(pages: list[PageFigures]) -> str:
    return f"{middle_ms(pages):.1f} / {max(each.latency.p99_ms for each in pages):.1f} ms"


def middle_ms(pages: list[PageFigures]) -> float:
    return median(each.latency.p50_ms for each in pages)


def hanging_rows(figures: HangingFigures, bounds: Bounds) -> list[Row]:
    lateness = figures.together.lateness
    return [
        Row(
            f"v1 {figures.healthy:,} timers beside {figures.hanging:,} that hang",
            limit="without them",
        ),
        Row(
            "  late p50 / p99 / max",
            percentiles_text(lateness),
            percentiles_text(figures.alone.lateness),
            f"{figures.ratio:.2f}",
            f"p99 < {bounds.hanging_p99_ms:,.0f} ms",
            judge(lateness.p99_ms < bounds.hanging_p99_ms),
        ),
        Row("  callbacks without an answer", f"{figures.hung:,}"),
    ]


def busy_api_rows(figures: BusyApiFigures) -> list[Row]:
    alone = percentiles_text(figures.alone)
    return [
        Row(
            f"v1 {figures.count:,} timers beside batches, late p50 / p99 / max",
            limit="without them",
        ),
        Row(
            f"  invalid batches, {figures.invalid_per_second:g}/s",
            percentiles_text(figures.beside_invalid),
            alone,
            ratio_text(figures.beside_invalid.p99_ms, figures.alone.p99_ms),
        ),
        Row(
            f"  repeated batches, {figures.repeated_per_second:g}/s",
            percentiles_text(figures.beside_repeated),
            alone,
            ratio_text(figures.beside_repeated.p99_ms, figures.alone.p99_ms),
        ),
    ]


def slow_clients_rows(figures: SlowClientsFigures, bounds: Bounds) -> list[Row]:
    return [
        Row(
            f"v1 {figures.count:,} timers beside {figures.connections:,} slow connections",
            limit="without them",
        ),
        Row(
            "  late p50 / p99 / max",
            percentiles_text(figures.beside),
            percentiles_text(figures.alone),
            f"{figures.p99_grows_by_ms:+.1f} ms",
            f"p99 + {bounds.slow_clients_p99_ms:g} ms",
            judge(figures.p99_grows_by_ms < bounds.slow_clients_p99_ms),
        ),
        Row(
            "  creates of another client p50 / p99 / max",
            percentiles_text(figures.creates_beside),
            percentiles_text(figures.creates_alone),
            bound="none refused",
            verdict=judge(not figures.creates_refused),
        ),
        Row("  slow connections opened", f"{figures.opened:,}"),
    ]


def retries_rows(figures: RetriesFigures) -> list[Row]:
    return [
        Row(
            f"v1 retries: {figures.count:,} timers that fail twice",
            f"{figures.seconds:.2f} s",
            f"{figures.limit_seconds:.2f} s client",
            f"{figures.ratio:.2f}",
        ),
        Row(
            f"  completed by attempt {ATTEMPTS}, never early",
            f"{figures.count - figures.audit.not_completed:,}",
            bound=f"all {figures.count:,}",
            verdict=Verdict.BROKEN if figures.faults else Verdict.HELD,
        ),
    ]


def crowd_rows(figures: CrowdFigures, bounds: Bounds) -> list[Row]:
    lateness = figures.lateness
    return [
        Row(f"v1 {figures.healthy:,} timers beside {figures.endpoints:,} endpoints that hang"),
        Row(
            "  late p50 / p99 / max",
            percentiles_text(lateness),
            bound=f"p99 < {bounds.crowd_p99_ms:,.0f} ms",
            verdict=judge(lateness.p99_ms < bounds.crowd_p99_ms),
        ),
        Row("  callbacks without an answer", f"{figures.hung:,}"),
    ]
