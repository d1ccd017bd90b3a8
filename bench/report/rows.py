"""Rows of the report's table, and their verdicts."""

from enum import Enum
from typing import NamedTuple

from bench.harness.percentiles import Percentiles


class Verdict(Enum):
    HELD = "[green]ok[/]"
    MISSED = "[bold yellow]FAILED[/]"
    BROKEN = "[bold red]BROKEN[/]"
    NONE = ""


class Row(NamedTuple):
    what: str
    measured: str = ""
    limit: str = ""
    ratio: str = ""
    bound: str = ""
    verdict: Verdict = Verdict.NONE


def judge(held: bool) -> Verdict:
    return Verdict.HELD if held else Verdict.MISSED


def below(what: str, value: float, bound: float, unit: str, digits: int) -> Row:
    return Row(
        what,
        f"{value:.{digits}f} {unit}",
        bound=f"< {bound:g} {unit}",
        verdict=judge(value < bound),
    )


def ratio_text(part: float, whole: float) -> str:
    return f"{part / whole:.2f}" if whole else ""


def percentiles_text(percentiles: Percentiles) -> str:
    return f"{percentiles.p50_ms:.1f} / {percentiles.p99_ms:.1f} / {percentiles.max_ms:.1f} ms"


def cpu_row(indent: str, us_per_timer: float) -> Row:
    return Row(f"{indent}server CPU per timer", f"{us_per_timer:.1f} µs")
