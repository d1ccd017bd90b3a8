"""The pictures: lateness and burst, rates by the number of stored timers, and the v1 API."""

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.harness.percentiles import Percentiles
from bench.measurements.firing import Round
from bench.measurements.v1.hanging import HangingFigures
from bench.measurements.v1.imports import ImportFigures
from bench.measurements.v1.session import V1Figures
from bench.report.bounds import BOUNDS, Bounds
from bench.results import Results, StoreFigures

COLOURS = ("tab:blue", "tab:orange")
BOUND_COLOUR = "tab:red"
BINS = 80

Value = Callable[[StoreFigures], float | None]


def draw_firing(results: Results, path: Path) -> bool:
    """Draw lateness and burst. Returns False when neither was measured."""
    stores = {"empty store": results.empty} if results.empty else {}
    if results.loaded:
        stores["loaded store"] = results.loaded[-1]
    steady = {label: each.steady for label, each in stores.items() if each.steady}
    burst = {label: each.burst for label, each in stores.items() if each.burst}
    if not steady and not burst:
        return False
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5), layout="constrained")
    draw_lateness(left, {label: each.round for label, each in steady.items()})
    # Rounds are sorted by duration.
    draw_burst(right, {k: each.rounds[len(each.rounds) // 2] for k, each in burst.items()})
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def draw_lateness(axes: Axes, rounds: dict[str, Round]) -> None:
    axes.set_title("Steady: lateness of callbacks")
    axes.set_xlabel("lateness, ms")
    axes.set_ylabel("callbacks")
    axes.set_yscale("log")
    highest_ms = max((each.lateness.max_ms for each in rounds.values()), default=1.0)
    edges = [highest_ms * step / BINS for step in range(BINS + 1)]
    for (label, each), colour in zip(rounds.items(), COLOURS, strict=False):
        axes.hist(each.lateness_ms, bins=edges, color=colour, alpha=0.5, label=label)
        mark_percentiles(axes, each.lateness, colour, label)
    if rounds:
        axes.legend()


def mark_percentiles(axes: Axes, lateness: Percentiles, colour: str, label: str) -> None:
    marks = (("p50", lateness.p50_ms, "--"), ("p99", lateness.p99_ms, ":"))
    for name, value_ms, line in marks:
        text = f"{label} {name}: {value_ms:.2f} ms"
        axes.axvline(value_ms, color=colour, linestyle=line, label=text)


def draw_burst(axes: Axes, rounds: dict[str, Round]) -> None:
    axes.set_title("Burst: timers of one instant, delivered")
    axes.set_xlabel("after the due instant, ms")
    axes.set_ylabel("callbacks arrived")
    for (label, each), colour in zip(rounds.items(), COLOURS, strict=False):
        axes.plot(each.arrivals_ms, range(1, len(each.arrivals_ms) + 1), color=colour, label=label)
        settled_ms = (each.settled_us - each.first_due_us) / 1_000
        text = f"{label} settled: {settled_ms:.0f} ms"
        axes.axvline(settled_ms, color=colour, linestyle="--", label=text)
    if rounds:
        axes.legend()


def draw_scale(results: Results, path: Path) -> bool:
    """Draw rates and lateness by size. Returns False unless two sizes were measured completely."""
    complete = [each for each in results.loaded if each.creates and each.burst and each.steady]
    if len(complete) < 2:
        return False
    bounds = BOUNDS[results.store]
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    draw_rate(axes[0], "Creates over HTTP", creates_rate, results, bounds.creates_per_second)
    count = results.scale.burst
    title = f"{count:,} timers of one instant, settled"
    draw_rate(axes[1], title, burst_rate, results, bounds.burst_per_second)
    draw_lateness_line(axes[2], results, bounds)
    for each in axes:
        each.set_xscale("log")
        each.set_xlabel("timers stored: pending, and as many finished")
        each.set_ylim(bottom=0)
        each.margins(x=0.12)
        each.legend(loc="best")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def draw_rate(axes: Axes, title: str, value: Value, results: Results, least: float) -> None:
    axes.set_title(title)
    axes.set_ylabel("per second")
    draw_line(axes, value, results.loaded, COLOURS[0], "measured")
    draw_empty(axes, value, results.empty, COLOURS[0])
    axes.axhline(least, color=BOUND_COLOUR, linestyle=":", label=f"at least {least:,.0f}/s")


def draw_lateness_line(axes: Axes, results: Results, bounds: Bounds) -> None:
    axes.set_title(f"Lateness at {results.scale.steady_per_second:,} due per second")
    axes.set_ylabel("ms")
    for value, colour, label in (
        (lateness_p99, COLOURS[0], "p99"),
        (lateness_p50, COLOURS[1], "p50"),
    ):
        draw_line(axes, value, results.loaded, colour, label)
        draw_empty(axes, value, results.empty, colour)
    most_ms = bounds.steady_p99_ms
    axes.axhline(most_ms, color=BOUND_COLOUR, linestyle=":", label=f"p99 below {most_ms:g} ms")


def draw_line(
    axes: Axes, value: Value, stores: list[StoreFigures], colour: str, label: str
) -> None:
    points = [(each.stored, y) for each in stores if (y := value(each)) is not None]
    axes.plot(
        [stored for stored, _ in points],
        [y for _, y in points],
        color=colour,
        marker="o",
        label=label,
    )
    for stored, y in points:
        text = f"{y:,.0f}" if y >= 100 else f"{y:.1f}"
        axes.annotate(text, (stored, y), (0, 7), textcoords="offset points", ha="center")


def draw_empty(axes: Axes, value: Value, empty: StoreFigures | None, colour: str) -> None:
    y = value(empty) if empty else None
    if y is not None:
        text = f"{y:,.0f}" if y >= 100 else f"{y:.1f}"
        axes.axhline(y, color=colour, linestyle="--", alpha=0.5, label=f"empty store: {text}")


def creates_rate(figures: StoreFigures) -> float | None:
    return figures.creates.creates.per_second if figures.creates else None


def burst_rate(figures: StoreFigures) -> float | None:
    return figures.burst.settled_per_second if figures.burst else None


def lateness_p99(figures: StoreFigures) -> float | None:
    return figures.steady.lateness.p99_ms if figures.steady else None


def lateness_p50(figures: StoreFigures) -> float | None:
    return figures.steady.lateness.p50_ms if figures.steady else None


def draw_v1(figures: V1Figures, path: Path) -> bool:
    """Draw import memory and hanging arrivals. Returns False when neither was measured."""
    if figures.imported is None and figures.hanging is None:
        return False
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5), layout="constrained")
    left.set_title("Import: the server's memory")
    right.set_title("Timers of one instant, beside an endpoint that hangs")
    if figures.imported is not None:
        draw_memory(left, figures.imported)
    if figures.hanging is not None:
        draw_arrivals(right, figures.hanging)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def draw_memory(axes: Axes, figures: ImportFigures) -> None:
    axes.set_xlabel(f"sent of {figures.count:,} lines, {figures.stream_mb:,.0f} MB, %")
    axes.set_ylabel("resident memory, MB")
    axes.plot(
        [each.percent for each in figures.memory], [each.memory_mb for each in figures.memory]
    )
    axes.set_ylim(bottom=0)


def draw_arrivals(axes: Axes, figures: HangingFigures) -> None:
    axes.set_xlabel("after the due instant, ms")
    axes.set_ylabel("callbacks at the healthy endpoint")
    rounds = {
        "alone": figures.alone,
        f"beside {figures.hanging:,} that hang": figures.together,
    }
    for label, each in rounds.items():
        text = f"{label}: p99 {each.lateness.p99_ms:.0f} ms"
        axes.plot(each.arrivals_ms, range(1, len(each.arrivals_ms) + 1), label=text)
    axes.legend()
