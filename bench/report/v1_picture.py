"""The server's memory during an import, and how late a healthy endpoint's callbacks are, drawn."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.measurements.v1.figures import V1Figures
from bench.measurements.v1.hanging import HangingFigures
from bench.measurements.v1.imports import ImportFigures


def draw_v1(figures: V1Figures, path: Path) -> bool:
    """Write the picture; False when neither an import nor a hanging endpoint was measured."""
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
    axes.set_ylabel("callbacks arrived at the healthy endpoint")
    rounds = {
        "alone": figures.alone,
        f"beside {figures.hanging:,} that hang": figures.together,
    }
    for label, each in rounds.items():
        text = f"{label}: p99 {each.lateness.p99_ms:.0f} ms"
        axes.plot(each.arrivals_ms, range(1, len(each.arrivals_ms) + 1), label=text)
    axes.legend()
