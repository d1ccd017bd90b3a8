"""Rows of the bus."""

from bench.measurements.bus.commands import CommandsFigures
from bench.measurements.bus.firing import EventsBurstFigures, EventsSteadyFigures
from bench.measurements.bus.session import BusFigures
from bench.report.bounds import Bounds
from bench.report.rows import Row, judge, percentiles_text, ratio_text


def bus_rows(figures: BusFigures, bounds: Bounds) -> list[Row]:
    rows = []
    if figures.commands is not None:
        rows += commands_rows(figures.commands, bounds)
    if figures.burst is not None:
        rows += burst_rows(figures.burst, bounds)
    if figures.steady is not None:
        rows += steady_rows(figures.steady, bounds)
    return rows


def commands_rows(figures: CommandsFigures, bounds: Bounds) -> list[Row]:
    rate = figures.backlog.per_second
    live = figures.live
    return [
        Row(
            f"bus commands, backlog of {figures.count:,}, durable",
            f"{rate:,.0f}/s",
            f"{figures.limit.per_second:,.0f}/s client",
            f"{figures.ratio:.2f}",
            f"≥ {bounds.bus_commands_per_second:,}/s",
            judge(rate >= bounds.bus_commands_per_second),
        ),
        Row(
            "  while publishing",
            f"{live.per_second:,.0f}/s",
            f"{live.published.per_second:,.0f}/s published",
            ratio_text(live.per_second, live.published.per_second),
        ),
    ]


def burst_rows(figures: EventsBurstFigures, bounds: Bounds) -> list[Row]:
    rate, limit = figures.settled_per_second, figures.limit.per_second
    return [
        Row(
            f"bus burst of {figures.rounds[0].count:,}, settled",
            f"{rate:,.0f}/s",
            f"{limit:,.0f}/s client",
            f"{figures.ratio:.2f}",
            f"≥ {bounds.bus_burst_per_second:,}/s",
            judge(rate >= bounds.bus_burst_per_second),
        ),
        Row(
            "  arrived at a consumer",
            f"{figures.arrived_per_second:,.0f}/s",
            ratio=ratio_text(figures.arrived_per_second, limit),
        ),
        Row("  lateness p50 / p99 / max", percentiles_text(figures.lateness)),
    ]


def steady_rows(figures: EventsSteadyFigures, bounds: Bounds) -> list[Row]:
    return [
        Row(
            f"bus steady {figures.per_second}/s, late p50 / p99 / max",
            percentiles_text(figures.lateness),
            bound=f"p99 < {bounds.bus_steady_p99_ms:g} ms",
            verdict=judge(figures.lateness.p99_ms < bounds.bus_steady_p99_ms),
        ),
        Row("  when the server published them", percentiles_text(figures.round.announced)),
    ]
