"""The lateness of steady timers and the course of the burst, drawn."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.harness.spread import Spread
from bench.measurements.firing import Round
from bench.results import Results

COLOURS = ("tab:blue", "tab:orange")
BINS = 80


def draw(results: Results, path: Path) -> bool:
    """Write the picture; False when neither steady nor burst was measured."""
    stores = {"empty store": results.empty} if results.empty else {}
    if results.loaded:
        stores["loaded store"] = results.loaded[-1]
    steady = {label: each.steady for label, each in stores.items() if each.steady}
    burst = {label: each.burst for label, each in stores.items() if each.burst}
    if not steady and not burst:
        return False
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5), layout="constrained")
    draw_lateness(left, {label: each.round for label, each in steady.items()})
    # The rounds stand in the order of how long they took.
    draw_burst(right, {k: each.rounds[len(each.rounds) // 2] for k, each in burst.items()})
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def draw_lateness(axes: Axes, rounds: dict[str, Round]) -> None:
    axes.set_title("Steady: how late callbacks arrive")
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


def mark_percentiles(axes: Axes, lateness: Spread, colour: str, label: str) -> None:
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
