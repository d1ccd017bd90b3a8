"""The figures beside their bare limits and bounds, as a table for people."""

from enum import Enum
from typing import NamedTuple

from rich.console import Console, JustifyMethod
from rich.table import Table

from bench.client_limit import ClientFigures
from bench.creates import CreatesFigures
from bench.due import BurstFigures, SteadyFigures
from bench.figures import Spread
from bench.footprint import FootprintFigures
from bench.session import Results, StoreFigures

CREATES_PER_SECOND = 12_000
CREATES_ECHO_RATIO = 0.5
CREATES_P99_MS = 25.0
BURST_PER_SECOND = 14_000
STEADY_P50_MS = 2.0
STEADY_P99_MS = 8.0
LOADED_TOLERANCE = 0.20
# Differences of lateness below this are the machine's, not the store's.
LATENESS_NOISE_MS = 0.5
MEMORY_MB = 250.0
START_SECONDS = 2.0
IDLE_CPU_PERCENT = 2.0

TABLE_WIDTH = 140
NUMERIC_COLUMNS = ("measured", "bare limit", "ratio")


class Verdict(Enum):
    HELD = "[green]held[/]"
    MISSED = "[yellow]missed[/]"
    BROKEN = "[bold red]BROKEN[/]"
    NONE = ""


class Row(NamedTuple):
    what: str
    measured: str
    limit: str = ""
    ratio: str = ""
    bound: str = ""
    verdict: Verdict = Verdict.NONE


def judge(held: bool) -> Verdict:
    return Verdict.HELD if held else Verdict.MISSED


def rows_of(results: Results) -> list[Row]:
    rows = []
    if results.empty is not None:
        rows += store_rows(results.empty)
    if results.loaded is not None:
        rows += loaded_rows(results.loaded, results.empty)
    if results.footprint is not None:
        rows += footprint_rows(results.footprint)
    if results.clients:
        rows += clients_rows(results.clients)
    if results.empty is not None or results.loaded is not None:
        rows.append(
            Row(
                "lost, early, repeated",
                f"{len(results.faults)} faults" if results.faults else "none",
                bound="none",
                verdict=Verdict.BROKEN if results.faults else Verdict.HELD,
            )
        )
    return rows


def store_rows(figures: StoreFigures) -> list[Row]:
    rows = []
    if figures.creates is not None:
        rate = figures.creates.creates.per_second
        p99_ms = figures.creates.creates.latency.p99_ms
        held = rate >= CREATES_PER_SECOND and figures.creates.ratio >= CREATES_ECHO_RATIO
        bound = f"≥ {CREATES_PER_SECOND:,}/s and ≥ {CREATES_ECHO_RATIO}"
        rows.append(creates_row("creates", figures.creates, bound, judge(held)))
        rows.append(
            Row(
                "  latency p50 / p99 / max",
                spread_text(figures.creates.creates.latency),
                spread_text(figures.creates.echo.latency),
                bound=f"p99 < {CREATES_P99_MS:g} ms",
                verdict=judge(p99_ms < CREATES_P99_MS),
            )
        )
    if figures.burst is not None:
        held = figures.burst.settled_per_second >= BURST_PER_SECOND
        rows += burst_rows("burst", figures.burst, f"≥ {BURST_PER_SECOND:,}/s", judge(held))
    if figures.steady is not None:
        lateness = figures.steady.lateness
        held = lateness.p50_ms < STEADY_P50_MS and lateness.p99_ms < STEADY_P99_MS
        bound = f"p50 < {STEADY_P50_MS:g}, p99 < {STEADY_P99_MS:g} ms"
        rows.append(steady_row("steady", figures.steady, bound, judge(held)))
    return rows


def loaded_rows(loaded: StoreFigures, empty: StoreFigures | None) -> list[Row]:
    """Each with its ratio to the empty store, which is what the bound is about."""
    title = f"with {loaded.stored:,} pending and finished"
    rows = [Row(title, "")]
    if loaded.creates is not None:
        before = empty.creates.creates.per_second if empty and empty.creates else 0.0
        rows.append(
            creates_row(
                "  creates",
                loaded.creates,
                *compared(loaded.creates.creates.per_second, before),
            )
        )
        rows.append(
            Row(
                "    latency p50 / p99 / max",
                spread_text(loaded.creates.creates.latency),
                spread_text(loaded.creates.echo.latency),
                bound=f"p99 < {CREATES_P99_MS:g} ms",
                verdict=judge(loaded.creates.creates.latency.p99_ms < CREATES_P99_MS),
            )
        )
    if loaded.burst is not None:
        before = empty.burst.settled_per_second if empty and empty.burst else 0.0
        rows += burst_rows(
            "  burst", loaded.burst, *compared(loaded.burst.settled_per_second, before)
        )
    if loaded.steady is not None:
        steady = empty.steady if empty else None
        rows.append(steady_row("  steady", loaded.steady, *compared_steady(loaded.steady, steady)))
    if loaded.memory_mb is not None:
        rows.append(
            Row(
                "  memory after all that",
                f"{loaded.memory_mb:.0f} MB",
                bound=f"< {MEMORY_MB:.0f} MB",
                verdict=judge(loaded.memory_mb < MEMORY_MB),
            )
        )
    return rows


def compared(rate: float, rate_when_empty: float) -> tuple[str, Verdict]:
    if not rate_when_empty:
        return "", Verdict.NONE
    ratio = rate / rate_when_empty
    least = 1 - LOADED_TOLERANCE
    return f"≥ {least:.2f} of empty: {ratio:.2f}", judge(ratio >= least)


def compared_steady(loaded: SteadyFigures, empty: SteadyFigures | None) -> tuple[str, Verdict]:
    if empty is None:
        return "", Verdict.NONE
    most = 1 + LOADED_TOLERANCE
    pairs = (
        (loaded.lateness.p50_ms, empty.lateness.p50_ms),
        (loaded.lateness.p99_ms, empty.lateness.p99_ms),
    )
    held = all(now <= max(most * before, before + LATENESS_NOISE_MS) for now, before in pairs)
    ratios = ", ".join(f"{now / before:.2f}" if before else "-" for now, before in pairs)
    return f"≤ {most:.2f} of empty: {ratios}", judge(held)


def creates_row(what: str, figures: CreatesFigures, bound: str, verdict: Verdict) -> Row:
    return Row(
        what,
        f"{figures.creates.per_second:,.0f}/s",
        f"{figures.echo.per_second:,.0f}/s echo",
        f"{figures.ratio:.2f}",
        bound,
        verdict,
    )


def burst_rows(what: str, figures: BurstFigures, bound: str, verdict: Verdict) -> list[Row]:
    indent = " " * (len(what) - len(what.lstrip()) + 2)
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
            ratio=f"{figures.delivered_per_second / figures.client_per_second:.2f}",
        ),
        Row(f"{indent}lateness p50 / p99 / max", spread_text(figures.lateness)),
    ]


def steady_row(what: str, figures: SteadyFigures, bound: str, verdict: Verdict) -> Row:
    return Row(
        f"{what} {figures.per_second}/s, late p50 / p99 / max",
        spread_text(figures.lateness),
        bound=bound,
        verdict=verdict,
    )


def footprint_rows(figures: FootprintFigures) -> list[Row]:
    return [
        Row(f"waiting for {figures.pending:,} pending", ""),
        Row(
            "  start-up",
            f"{figures.start_seconds:.2f} s",
            bound=f"< {START_SECONDS:g} s",
            verdict=judge(figures.start_seconds < START_SECONDS),
        ),
        Row(
            "  memory",
            f"{figures.memory_mb:.0f} MB",
            bound=f"< {MEMORY_MB:.0f} MB",
            verdict=judge(figures.memory_mb < MEMORY_MB),
        ),
        Row(
            "  idle CPU",
            f"{figures.idle_cpu_percent:.1f} %",
            bound=f"< {IDLE_CPU_PERCENT:g} %",
            verdict=judge(figures.idle_cpu_percent < IDLE_CPU_PERCENT),
        ),
    ]


def clients_rows(clients: list[ClientFigures]) -> list[Row]:
    rounds = clients[0].rounds
    title = f"clients, {rounds[0].concurrency} posters, best / median of {len(rounds)}"
    return [
        Row(title, "", ratio="to own"),
        *(
            Row(
                f"  {each.client}",
                f"{each.best_per_second:,.0f} / {each.median_per_second:,.0f}/s",
                ratio=f"{each.ratio:.2f}",
            )
            for each in clients
        ),
    ]


def spread_text(spread: Spread) -> str:
    return f"{spread.p50_ms:.1f} / {spread.p99_ms:.1f} / {spread.max_ms:.1f} ms"


def print_report(results: Results, console: Console) -> None:
    machine = results.machine
    table = Table(
        title="Duetime beside its bare limits",
        caption=(
            f"{machine.cpus} CPUs, Python {machine.python}, SQLite {machine.sqlite}, load average"
            f" {machine.load_average} before; load generator alone"
            f" {results.harness.per_second:,.0f}/s; {results.seconds:.0f} s in all"
        ),
    )
    for name in ("what", "measured", "bare limit", "ratio", "bound", "verdict"):
        justify: JustifyMethod = "right" if name in NUMERIC_COLUMNS else "left"
        table.add_column(name, justify=justify, no_wrap=True)
    for row in rows_of(results):
        table.add_row(*row[:-1], row.verdict.value)
    # Where the output goes into a file, rich would fold the columns into 80 characters.
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)
    for fault in results.faults:
        console.print(f"[bold red]fault[/] {fault}", highlight=False)
