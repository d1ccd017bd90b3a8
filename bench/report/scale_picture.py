"""How rates and lateness change with the number of stored timers, drawn."""

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.report.bounds import BOUNDS, Bounds
from bench.results import Results, StoreFigures

COLOUR = "tab:blue"
SECOND_COLOUR = "tab:orange"
LIMIT_COLOUR = "tab:red"

Value = Callable[[StoreFigures], float | None]


def draw_scale(results: Results, path: Path) -> bool:
    """Write the picture; False when fewer than two sizes were measured, or not everything."""
    complete = [each for each in results.loaded if each.creates and each.burst and each.steady]
    if len(complete) < 2:
        return False
    bounds = BOUNDS[results.store]
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    draw_rate(axes[0], "Creates over HTTP", creates_rate, results, bounds.creates_per_second)
    count = results.scale.burst
    title = f"{count:,} timers of one instant, settled"
    draw_rate(axes[1], title, burst_rate, results, bounds.burst_per_second)
    draw_lateness(axes[2], results, bounds)
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
    draw_line(axes, value, results.loaded, COLOUR, "measured")
    draw_empty(axes, value, results.empty, COLOUR)
    axes.axhline(least, color=LIMIT_COLOUR, linestyle=":", label=f"at least {least:,.0f}/s")


def draw_lateness(axes: Axes, results: Results, bounds: Bounds) -> None:
    axes.set_title(f"Lateness at {results.scale.steady_per_second:,} due per second")
    axes.set_ylabel("ms")
    for value, colour, label in (
        (lateness_p99, COLOUR, "p99"),
        (lateness_p50, SECOND_COLOUR, "p50"),
    ):
        draw_line(axes, value, results.loaded, colour, label)
        draw_empty(axes, value, results.empty, colour)
    most_ms = bounds.steady_p99_ms
    axes.axhline(most_ms, color=LIMIT_COLOUR, linestyle=":", label=f"p99 below {most_ms:g} ms")


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
