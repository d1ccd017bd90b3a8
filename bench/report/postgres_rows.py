"""Rows of the measurements that only PostgreSQL has."""

from bench.harness.percentiles import Percentiles
from bench.limits.database import INSERT_BATCH, MOVE_BATCH, DatabaseLimit
from bench.limits.store_calls import StoreCalls
from bench.measurements.held_snapshot import HeldFigures
from bench.measurements.lists import ListFigures
from bench.measurements.nodes import NodesFigures
from bench.measurements.store_audit import StoreAudit
from bench.report.rows import (
    Row,
    Verdict,
    below,
    cpu_row,
    judge,
    percentiles_text,
    ratio_text,
)
from bench.results import StoreFigures
from bench.stores.postgres_server import PostgresFacts

HELD_P99_MS = 20.0
HELD_BOUNDED_RATE = 1_500
"""Rate up to which the lateness beside a held snapshot has a bound."""

HELD_NOISE_MS = 5.0


def durability_row(facts: PostgresFacts) -> Row:
    off = [name for name, value in facts.durable.items() if value != "on"]
    return Row(
        "PostgreSQL's durability",
        f"not on: {', '.join(off)}" if off else "on",
        bound="on",
        verdict=judge(not off),
    )


def calls_rows(calls: StoreCalls, limit: DatabaseLimit) -> list[Row]:
    """The store's own calls, beside a bare loop that writes the same rows."""
    return [
        Row("the store alone"),
        Row(
            f"  create by {limit.insert_batch}",
            f"{calls.creates_per_second:,.0f}/s",
            f"{limit.inserts_per_second:,.0f}/s loop",
            ratio_text(calls.creates_per_second, limit.inserts_per_second),
        ),
        Row(
            f"  claim and settle by {limit.move_batch}",
            f"{calls.moves_per_second:,.0f}/s",
            f"{limit.moves_per_second:,.0f}/s loop",
            ratio_text(calls.moves_per_second, limit.moves_per_second),
        ),
    ]


def loaded_calls_rows(loaded: StoreCalls, empty: StoreCalls, stored: int) -> list[Row]:
    def row(what: str, now: Percentiles, then: Percentiles) -> Row:
        ratio = ratio_text(now.p50_ms, then.p50_ms)
        return Row(
            f"  {what}, p50 / p99 / max", percentiles_text(now), percentiles_text(then), ratio
        )

    return [
        Row(f"the store alone with {stored:,}", limit="empty"),
        row(f"create by {INSERT_BATCH}", loaded.create, empty.create),
        row(f"claim by {MOVE_BATCH}", loaded.claim, empty.claim),
        row(f"settle by {MOVE_BATCH}", loaded.settle, empty.settle),
    ]


def held_rows(figures: HeldFigures) -> list[Row]:
    """The second quarter is compared with the last: the first one includes the start."""
    what = f"snapshot held for {figures.seconds} s at {figures.per_second:,}/s"
    quarters = " / ".join(f"{each.p99_ms:.1f}" for each in figures.parts)
    growing = figures.parts[-1].p50_ms > 2 * figures.parts[1].p50_ms + HELD_NOISE_MS
    rows = [
        below(f"{what}, late p99", figures.lateness.p99_ms, HELD_P99_MS, "ms", 1)
        if figures.per_second <= HELD_BOUNDED_RATE
        else Row(f"{what}, late p99", f"{figures.lateness.p99_ms:.1f} ms")
    ]
    return [
        *rows,
        Row("  late p50 / p99 / max", percentiles_text(figures.lateness)),
        Row(
            "  p99 of each quarter",
            f"{quarters} ms",
            bound="no growing backlog",
            verdict=judge(not growing),
        ),
        cpu_row("  ", figures.cpu_us_per_timer),
    ]


def nodes_rows(figures: NodesFigures) -> list[Row]:
    round_ = figures.round
    audit = round_.audit
    once = not round_.faults and not audit.lost and not audit.duplicates
    return [
        Row(
            f"{figures.nodes} nodes, {round_.count:,} timers, fired once",
            f"{audit.expected - audit.lost - audit.duplicates:,}",
            bound="all, exactly once",
            verdict=Verdict.HELD if once else Verdict.BROKEN,
        ),
        Row(
            f"  {figures.per_second:,}/s, late p50 / p99 / max",
            percentiles_text(round_.lateness),
        ),
    ]


def lists_rows(lists: list[ListFigures]) -> list[Row]:
    return [
        Row("lists, p50 / p99 / max"),
        *(
            Row(
                f"  {each.what}" + (f", offset {each.offset:,}" if each.offset else ""),
                percentiles_text(each.latency),
            )
            for each in lists
        ),
    ]


def statements_rows(loaded: StoreFigures, empty: StoreFigures | None) -> list[Row]:
    """Each statement beside its cost on the empty store.

    The ratio compares total times, because the same work may be cut into other batches."""
    before = {each.name: each for each in empty.statements} if empty else {}
    rows = [Row(f"statements with {loaded.stored:,}, mean / max", limit="empty", ratio="of sums")]
    for each in loaded.statements:
        then = before.get(each.name)
        rows.append(
            Row(
                f"  {each.name}, {each.calls:,} calls",
                f"{each.mean_ms:.2f} / {each.max_ms:.1f} ms",
                f"{then.mean_ms:.2f} / {then.max_ms:.1f} ms" if then else "",
                ratio_text(each.total_ms, then.total_ms) if then else "",
            )
        )
    return rows


def audit_row(audit: StoreAudit) -> Row:
    return Row(
        "duetime audit",
        f"{audit.accepted:,} accepted",
        bound="no findings",
        verdict=Verdict.BROKEN if audit.findings else Verdict.HELD,
    )


def server_lines(facts: PostgresFacts, stores: list[StoreFigures]) -> list[str]:
    """Facts about the PostgreSQL server that explain the figures."""
    changed = ", ".join(f"{name}={value}" for name, value in facts.changed.items())
    whose = "started for this run" if facts.ours else "given"
    lines = [f"PostgreSQL {facts.version}, {whose}; changed settings: {changed or 'none'}"]
    by_hand = [f"{each.stored:,}" for each in stores if each.analyzed]
    if stores and not any(each.statements for each in stores):
        lines.append("costs of statements are missing: the server has no pg_stat_statements")
    if by_hand:
        lines.append(
            f"analyzed right after filling: the store with {', '.join(by_hand)}; autovacuum had the"
            " others"
        )
    return lines
