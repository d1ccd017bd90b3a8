"""The table of figures beside their bare limits and bounds."""

import math
from statistics import median

from rich.console import Console, JustifyMethod
from rich.table import Table

from bench.limits.http_clients import ClientFigures
from bench.measurements.backup import BackupFigures
from bench.measurements.copy import CopyFigures
from bench.measurements.footprint import FootprintFigures
from bench.measurements.observed import ObservedFigures
from bench.measurements.scrape import ScrapeFigures
from bench.measurements.secured import SecuredFigures
from bench.measurements.ui import UiFigures
from bench.measurements.ui_timers import UiTimersFigures
from bench.report.bounds import BOUNDS, Bounds
from bench.report.bus_rows import bus_rows
from bench.report.postgres_rows import (
    audit_row,
    calls_rows,
    durability_row,
    held_rows,
    lists_rows,
    loaded_calls_rows,
    nodes_rows,
    server_lines,
    statements_rows,
)
from bench.report.rows import Row, Verdict, below, judge, percentiles_text, ratio_text
from bench.report.store_rows import burst_rows, judged_burst, loaded_rows, store_rows
from bench.report.v1_rows import v1_rows
from bench.results import Results

TABLE_WIDTH = 160
MOST_FOR_SAFETY = 1.1
"""CPU time with all safety, as a multiple of that without."""

MOST_FOR_OBSERVATION = 1.05
"""CPU time with metrics and traces, as a multiple of that without."""

MOST_MS_PER_SCRAPE = 50.0
LEAST_COPIED_PER_SECOND = 20_000

NUMERIC_COLUMNS = ("measured", "bare limit", "ratio")


def rows_of(results: Results) -> list[Row]:
    bounds = BOUNDS[results.store]
    rows = []
    if results.postgres is not None:
        rows.append(durability_row(results.postgres))
    if results.empty is not None:
        rows += store_rows(results.empty, bounds, results.limit)
    if results.calls is not None and results.limit is not None:
        rows += calls_rows(results.calls, results.limit)
    if results.workers is not None:
        least, peer = bounds.workers_burst_per_second, bounds.workers_burst_peer
        judged = judged_burst(results.workers, least, peer)
        rows += burst_rows("two workers: burst", results.workers, *judged)
    if results.nodes is not None:
        rows += nodes_rows(results.nodes)
    for held in results.held:
        rows += held_rows(held)
    for loaded in results.loaded:
        rows += loaded_rows(loaded, results.empty, bounds)
    if results.footprint is not None:
        rows += footprint_rows(results.footprint, bounds)
    if results.backup is not None:
        rows += backup_rows(results.backup)
    if results.copy is not None:
        rows += copy_rows(results.copy)
    if results.secured is not None:
        rows += secured_rows(results.secured)
    if results.scrape is not None:
        rows += scrape_rows(results.scrape)
    if results.observed is not None:
        rows += observed_rows(results.observed)
    if results.ui is not None:
        rows += ui_rows(results.ui, bounds)
    if results.ui_timers is not None:
        rows += ui_timers_rows(results.ui_timers, bounds)
    if results.lists:
        rows += lists_rows(results.lists)
    if results.loaded and results.loaded[-1].statements:
        rows += statements_rows(results.loaded[-1], results.empty)
    if results.loaded_calls is not None and results.calls is not None:
        rows += loaded_calls_rows(results.loaded_calls, results.calls, results.scale.stored)
    if results.clients:
        rows += clients_rows(results.clients)
    if results.store_audit is not None:
        rows.append(audit_row(results.store_audit))
    rows += v1_rows(results.v1, bounds)
    rows += bus_rows(results.bus, bounds)
    has_more = not (results.v1.is_empty and results.bus.is_empty)
    others = (
        results.nodes,
        results.backup,
        results.copy,
        results.secured,
        results.scrape,
        results.observed,
        results.ui,
        results.ui_timers,
        results.held,
    )
    if results.stores or any(others) or has_more:
        rows.append(
            Row(
                "lost, early, repeated",
                f"faults: {len(results.faults)}" if results.faults else "none",
                bound="none",
                verdict=Verdict.BROKEN if results.faults else Verdict.HELD,
            )
        )
    return rows


def footprint_rows(figures: FootprintFigures, bounds: Bounds) -> list[Row]:
    rows = [
        Row(f"idle with {figures.pending:,} pending"),
        below("  start-up", figures.start_seconds, bounds.start_seconds, "s", digits=2),
        below("  memory", figures.memory_mb, bounds.memory_mb, "MB", digits=0),
        below("  idle CPU", figures.idle_cpu_percent, bounds.idle_cpu_percent, "%", digits=1),
    ]
    if figures.database_memory_mb is not None:
        rows.append(Row("  memory of the database", f"{figures.database_memory_mb:.0f} MB"))
    if figures.database_idle_cpu_percent is not None:
        rows.append(Row("  idle CPU of the database", f"{figures.database_idle_cpu_percent:.1f} %"))
    return rows


def backup_rows(figures: BackupFigures) -> list[Row]:
    creates = figures.creates
    rate = sum(each.accepted for each in creates) / sum(each.seconds for each in creates)
    slowest = max(each.latency.p99_ms for each in creates)
    return [
        Row(f"backup of {figures.megabytes:,.0f} MB, {figures.timers:,} timers"),
        Row("  backup", f"{figures.backup_seconds:.1f} s"),
        Row("  restore", f"{figures.restore_seconds:.1f} s"),
        Row("  creates beside it", f"{rate:,.0f}/s"),
        Row("  latency of creates, p99 of the slowest thousand", f"{slowest:.1f} ms"),
    ]


def scrape_rows(figures: ScrapeFigures) -> list[Row]:
    megabytes = f"{figures.size_bytes / 1e6:.1f} MB"
    bare = f"{figures.bare_ms:.2f} ms"
    return [
        Row(f"scrape of {figures.namespaces} namespaces, {figures.lines:,} lines, {megabytes}"),
        below("  median", figures.plain_ms, MOST_MS_PER_SCRAPE, "ms", 1)._replace(
            limit=bare, ratio=ratio_text(figures.plain_ms, figures.bare_ms)
        ),
        below("  median, compressed", figures.compressed_ms, MOST_MS_PER_SCRAPE, "ms", 1),
        Row("  longest", f"{figures.longest_ms:.1f} ms"),
        Row("  server CPU", f"{figures.cpu_ms:.1f} ms"),
    ]


def ui_rows(figures: UiFigures, bounds: Bounds) -> list[Row]:
    warm = figures.warm
    page, cpu, p99 = bounds.ui_page_ms, bounds.ui_tabs_cpu, bounds.ui_tabs_p99_ms
    grows, later = figures.cpu_grows_by, figures.p99_grows_by_ms
    return [
        below("first page of the UI, cold", figures.cold_ms, page, "ms", 1),
        Row(
            "  warm, p50 / p99 / max",
            percentiles_text(warm),
            bound=f"p99 < {page:g} ms",
            verdict=judge(warm.p99_ms < page),
        ),
        Row(f"{figures.tabs} open tabs", f"{figures.updates_per_second:.0f} updates/s"),
        Row(
            "  server CPU without and with them",
            f"{figures.cpu_alone:.1%}, {figures.cpu_beside:.1%} of a core",
            bound=f"+ {cpu:.0%}",
            verdict=judge(grows < cpu),
        ),
        Row(
            "  lateness p99 without and with them",
            ", ".join(
                f"{median(each.p99_ms for each in rounds):.2f} ms"
                for rounds in (figures.alone, figures.beside)
            ),
            bound=f"+ {p99:g} ms",
            verdict=judge(later < p99),
        ),
    ]


def ui_timers_rows(figures: UiTimersFigures, bounds: Bounds) -> list[Row]:
    """A search that no index serves is bounded by itself."""
    rows = [Row(f"page of timers of {figures.stored:,} pending and finished, p50 / p99 / max")]
    for each in figures.lists:
        row = Row(f"  {each.what}", percentiles_text(each.latency))
        if each.is_indexed:
            bound = bounds.ui_timers_p99_ms
            row = row._replace(
                bound=f"p99 < {bound:g} ms", verdict=judge(each.latency.p99_ms < bound)
            )
        rows.append(row)
    return rows


def copy_rows(figures: CopyFigures) -> list[Row]:
    """The limit is a COPY without indexes; the whole command is beside the limit with indexes."""
    timers, limit = figures.timers, figures.limit
    copied = timers / figures.copy_seconds
    bare = timers / limit.load_seconds
    whole = timers / figures.seconds
    bare_whole = timers / (limit.load_seconds + limit.index_seconds)
    database = figures.database_cpu_seconds
    cpu = [Row("  CPU of the command per timer", _per_timer(figures.command_cpu_seconds, timers))]
    if database is not None:
        cpu.append(Row("  CPU of the database per timer", _per_timer(database, timers)))
    return [
        Row(f"copy of {timers:,} timers from SQLite"),
        Row("  copied", f"{copied:,.0f}/s", f"{bare:,.0f}/s", ratio_text(copied, bare)),
        Row(
            "  copied, indexed and compared",
            f"{whole:,.0f}/s",
            f"{bare_whole:,.0f}/s",
            ratio_text(whole, bare_whole),
            f"> {LEAST_COPIED_PER_SECOND:,}/s",
            judge(whole > LEAST_COPIED_PER_SECOND),
        ),
        *cpu,
    ]


def _per_timer(seconds: float, timers: int) -> str:
    return f"{seconds / timers * 1e6:.1f} µs"


def secured_rows(figures: SecuredFigures) -> list[Row]:
    return [
        Row(f"{figures.keys} keys, {figures.secrets} signatures, own networks; CPU per timer"),
        _safe("  create", figures.create_us, figures.secured_create_us),
        _safe("  firing", figures.firing_us, figures.secured_firing_us),
    ]


def observed_rows(figures: ObservedFigures) -> list[Row]:
    create, firing, most = figures.create, figures.firing, MOST_FOR_OBSERVATION
    return [
        Row(f"metrics, traces at 1 %; CPU per timer, {figures.turns} turns with and without"),
        _priced("  create", create.bare_us, create.observed_us, create.ratio, most),
        _priced("  firing", firing.bare_us, firing.observed_us, firing.ratio, most),
    ]


def _safe(what: str, without_us: float, with_us: float) -> Row:
    ratio = with_us / without_us if without_us else math.inf
    return _priced(what, without_us, with_us, ratio, MOST_FOR_SAFETY)


def _priced(what: str, without_us: float, with_us: float, ratio: float, most: float) -> Row:
    return Row(
        what,
        f"{with_us:.1f} µs",
        f"{without_us:.1f} µs without",
        f"{ratio:.3f}",
        f"≤ {most}",
        judge(ratio <= most),
    )


def clients_rows(clients: list[ClientFigures]) -> list[Row]:
    rounds = clients[0].rounds
    title = f"clients, {rounds[0].concurrency} posters, best / median of {len(rounds)}"
    return [
        Row(title, ratio="of own"),
        *(
            Row(
                f"  {each.client}",
                f"{each.best_per_second:,.0f} / {each.median_per_second:,.0f}/s",
                ratio=f"{each.ratio:.2f}",
            )
            for each in clients
        ),
    ]


def print_report(results: Results, console: Console) -> None:
    machine = results.machine
    table = Table(
        title="Duetime beside its bare limits",
        caption=(
            f"{machine.cpus} CPUs, Python {machine.python}, {machine.store}, load average"
            f" {machine.load_average} before; load generator alone"
            f" {results.harness.per_second:,.0f}/s; {results.seconds:.0f} s in total"
        ),
    )
    for name in ("what", "measured", "bare limit", "ratio", "bound", "verdict"):
        justify: JustifyMethod = "right" if name in NUMERIC_COLUMNS else "left"
        table.add_column(name, justify=justify, no_wrap=True)
    for row in rows_of(results):
        table.add_row(*row[:-1], row.verdict.value)
    # In a file, rich would fold the columns into 80 characters.
    console.width = max(console.width, TABLE_WIDTH)
    console.print(table)
    if results.postgres is not None:
        for line in server_lines(results.postgres, results.stores):
            console.print(line, highlight=False)
    for fault in results.faults:
        console.print(f"[bold red]fault[/] {fault}", highlight=False)
