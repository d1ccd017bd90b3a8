"""The frame of a chart: lines at round numbers, and words below."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from duetime.web.charts.drawing import Drawing, element, plain, share, text
from duetime.web.charts.scale import Scale

HEIGHT = 160.0
"""Height of a chart in pixels, with the words below."""

ABOVE = 8.0
"""Room above the highest line for half of its number."""

BELOW = 22.0
"""Room for the words below."""

DRAWN = HEIGHT - ABOVE - BELOW
"""Height of what is drawn."""


class Mark(NamedTuple):
    """Words at a place along the width, from 0 to 1. Extra words need a wide place."""

    place: float
    words: str
    are_extra: bool = False


def height_of(scale: Scale, value: float) -> float:
    """Pixels from the top to a value."""
    return ABOVE + DRAWN * (1 - scale.part(value))


def lines_behind(scale: Scale) -> Iterator[str]:
    for tick in scale.ticks:
        y = plain(height_of(scale, tick))
        yield element("line", kind="grid" if tick else "base", x1="0", x2="100%", y1=y, y2=y)


def framed(
    pieces: Iterable[str],
    scale: Scale,
    marks: Sequence[Mark],
    *,
    show: Callable[[float], str],
    label: str,
    description: str,
    kind: str,
) -> Drawing:
    """The pieces between the numbers at their side and the words below them. Screen readers get the
    label and the description."""
    numbers = [
        element(
            "text",
            text(show(tick)),
            kind="tick",
            x="100%",
            y=plain(height_of(scale, tick) + 4),
            text_anchor="end",
        )
        for tick in scale.ticks
    ]
    drawn = [*lines_behind(scale), *pieces, *words_below(marks)]
    height = plain(HEIGHT)
    return Drawing(
        element(
            "div",
            element("svg", *numbers, kind="chart axis", height=height, aria_hidden="true"),
            element("svg", *drawn, kind=f"chart {kind}", height=height, aria_hidden="true"),
            kind="plot",
            role="img",
            aria_label=f"{label}. {description}",
        )
    )


def words_below(marks: Sequence[Mark]) -> Iterator[str]:
    for mark in marks:
        anchor = "start" if mark.place < 0.02 else "end" if mark.place > 0.98 else "middle"
        yield element(
            "text",
            text(mark.words),
            kind="tick extra" if mark.are_extra else "tick",
            x=share(mark.place),
            y=plain(HEIGHT - 6),
            text_anchor=anchor,
        )
