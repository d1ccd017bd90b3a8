"""Rows of creates, burst and steady, on empty and on loaded stores."""

from bench.limits.database import DatabaseLimit
from bench.measurements.creates import CreatesFigures
from bench.measurements.firing import BurstFigures, SteadyFigures
from bench.report.bounds import LATENESS_NOISE_MS, Bounds
from bench.report.rows import Row, Verdict, cpu_row, judge, percentiles_text, ratio_text
from bench.results import StoreFigures


def store_rows(figures: StoreFigures, bounds: Bounds, limit: DatabaseLimit | None) -> list[Row]:
    rows = []
    if figures.creates is not None:
        rows += creates_rows("creates", figures.creates, bounds, *judged_creates(figures, bounds))
        if limit is not None:
            rate = figures.creates.creates.per_second
            rows.append(
                Row(
                    "  the database alone",
                    limit=f"{limit.inserts_per_second:,.0f}/s by {limit.insert_batch}",
                    ratio=ratio_text(rate, limit.inserts_per_second),
                )
            )
    if figures.burst is not None:
        rows += burst_rows(
            "burst",
            figures.burst,
            *judged_burst(figures.burst, bounds.burst_per_second, bounds.burst_peer),
        )
        if limit is not None:
            rate = figures.burst.settled_per_second
            rows.append(
                Row(
                    "  the database alone",
                    limit=f"{limit.moves_per_second:,.0f}/s by {limit.move_batch}",
                    ratio=ratio_text(rate, limit.moves_per_second),
                )
            )
    if figures.steady is not None:
        lateness = figures.steady.lateness
        held = lateness.p50_ms < bounds.steady_p50_ms and lateness.p99_ms < bounds.steady_p99_ms
        bound = f"p50 < {bounds.steady_p50_ms:g}, p99 < {bounds.steady_p99_ms:g} ms"
        rows.append(steady_row("steady", figures.steady, bound, judge(held)))
    return rows


def loaded_rows(loaded: StoreFigures, empty: StoreFigures | None, bounds: Bounds) -> list[Row]:
    """The bounds compare the figures with those of the empty store."""
    rows = [Row(f"with {loaded.stored:,} pending and finished")]
    if loaded.creates is not None:
        before = empty.creates.creates.per_second if empty and empty.creates else 0.0
        rate = loaded.creates.creates.per_second
        rows += creates_rows("  creates", loaded.creates, bounds, *compared(rate, before, bounds))
    if loaded.scattered_creates is not None:
        what = "  creates due anywhere in 30 days"
        rows.append(creates_row(what, loaded.scattered_creates))
        rows.append(latency_row(what, loaded.scattered_creates))
    if loaded.burst is not None:
        before = empty.burst.settled_per_second if empty and empty.burst else 0.0
        rate = loaded.burst.settled_per_second
        rows += burst_rows("  burst", loaded.burst, *compared(rate, before, bounds))
    if loaded.steady is not None:
        steady = empty.steady if empty else None
        judged = compared_steady(loaded.steady, steady, bounds)
        rows.append(steady_row("  steady", loaded.steady, *judged))
    if loaded.memory_mb is not None:
        rows.append(
            Row(
                "  memory at the end",
                f"{loaded.memory_mb:.0f} MB",
                bound=f"< {bounds.memory_mb:.0f} MB",
                verdict=judge(loaded.memory_mb < bounds.memory_mb),
            )
        )
    return rows


def judged_creates(figures: StoreFigures, bounds: Bounds) -> tuple[str, Verdict]:
    assert figures.creates is not None
    rate, ratio = figures.creates.creates.per_second, figures.creates.ratio
    bound = f"≥ {bounds.creates_per_second:,}/s"
    if bounds.creates_echo_ratio:
        bound += f" and ≥ {bounds.creates_echo_ratio}"
    held = rate >= bounds.creates_per_second and ratio >= bounds.creates_echo_ratio
    return bound, judge(held)


def judged_burst(figures: BurstFigures, least: int, peer: str) -> tuple[str, Verdict]:
    bound = f"≥ {least:,}/s" + (f" ({peer})" if peer else "")
    return bound, judge(figures.settled_per_second >= least)


def compared(rate: float, rate_when_empty: float, bounds: Bounds) -> tuple[str, Verdict]:
    if not rate_when_empty:
        return "", Verdict.NONE
    ratio = rate / rate_when_empty
    least = 1 - bounds.loaded_tolerance
    return f"≥ {least:.2f} of empty: {ratio:.2f}", judge(ratio >= least)


def compared_steady(
    loaded: SteadyFigures, empty: SteadyFigures | None, bounds: Bounds
) -> tuple[str, Verdict]:
    if empty is None:
        return "", Verdict.NONE
    most = 1 + bounds.loaded_tolerance
    pairs = (
        (loaded.lateness.p50_ms, empty.lateness.p50_ms),
        (loaded.lateness.p99_ms, empty.lateness.p99_ms),
    )
    held = all(now <= max(most * before, before + LATENESS_NOISE_MS) for now, before in pairs)
    ratios = ", ".join(f"{now / before:.2f}" if before else "-" for now, before in pairs)
    return f"≤ {most:.2f} of empty: {ratios}", judge(held)


def creates_rows(
    what: str, figures: CreatesFigures, bounds: Bounds, bound: str, verdict: Verdict
) -> list[Row]:
    held = figures.creates.latency.p99_ms < bounds.creates_p99_ms
    return [
        creates_row(what, figures)._replace(bound=bound, verdict=verdict),
        latency_row(what, figures)._replace(
            bound=f"p99 < {bounds.creates_p99_ms:g} ms", verdict=judge(held)
        ),
        cpu_row(indent_below(what), figures.cpu_us_per_timer),
    ]


def creates_row(what: str, figures: CreatesFigures) -> Row:
    return Row(
        what,
        f"{figures.creates.per_second:,.0f}/s",
        f"{figures.echo.per_second:,.0f}/s echo",
        f"{figures.ratio:.2f}",
    )


def latency_row(what: str, figures: CreatesFigures) -> Row:
    return Row(
        f"{indent_below(what)}latency p50 / p99 / max",
        percentiles_text(figures.creates.latency),
        percentiles_text(figures.echo.latency),
    )


def burst_rows(what: str, figures: BurstFigures, bound: str, verdict: Verdict) -> list[Row]:
    indent = indent_below(what)
    count = figures.rounds[0].count
    return [
        Row(
            f"{what} of {count:,}, settled",
            f"{figures.settled_per_second:,.0f}/s",
            f"{figures.client_per_second:,.0f}/s client",
            f"{figures.ratio:.2f}",
            bound,
            verdict,
        ),
        Row(
            f"{indent}delivered",
            f"{figures.delivered_per_second:,.0f}/s",
            ratio=ratio_text(figures.delivered_per_second, figures.client_per_second),
        ),
        Row(f"{indent}lateness p50 / p99 / max", percentiles_text(figures.lateness)),
        cpu_row(indent, figures.cpu_us_per_timer),
    ]


def steady_row(what: str, figures: SteadyFigures, bound: str, verdict: Verdict) -> Row:
    return Row(
        f"{what} {figures.per_second}/s, late p50 / p99 / max",
        percentiles_text(figures.lateness),
        bound=bound,
        verdict=verdict,
    )


def indent_below(what: str) -> str:
    return " " * (len(what) - len(what.lstrip()) + 2)
