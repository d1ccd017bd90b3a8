"""Lines over time, such as the attempts of each second."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from duetime.web.charts.drawing import Drawing, element, plain, share, stretched, title
from duetime.web.charts.frame import ABOVE, DRAWN, Mark, framed
from duetime.web.charts.scale import Scale, scale_to, short

HOVERED = 60
"""Places along the width that show their values to a pointer."""


class Line(NamedTuple):
    """None where there is no value: the line has a gap there. `kind` is the class of its colour."""

    name: str
    values: Sequence[float | None]
    kind: str
    is_filled: bool = False


def line_chart(
    lines: Sequence[Line],
    marks: Sequence[Mark],
    *,
    label: str,
    description: str,
    words_at: Callable[[int], str],
    show: Callable[[float], str] = short,
) -> Drawing:
    """All lines have as many values. `words_at` tells those of a place to a pointer."""
    values = [value for line in lines for value in line.values if value is not None]
    scale = scale_to(max(values, default=0))
    count = max(len(line.values) for line in lines)
    pieces = [
        stretched(
            *(path for line in lines for path in _paths(line, scale)),
            width=float(max(count - 1, 1)),
            height=DRAWN,
            y=ABOVE,
        ),
        *_hovered(count, words_at),
    ]
    return framed(
        pieces, scale, marks, show=show, label=label, description=description, kind="lines"
    )


def _paths(line: Line, scale: Scale) -> Iterator[str]:
    for first, values in _runs(line.values):
        points = [
            f"{first + step} {DRAWN * (1 - scale.part(value)):.1f}"
            for step, value in enumerate(values)
        ]
        if len(points) == 1:
            # A line of no length is not drawn; half a step to each side is.
            x, y = points[0].split()
            points = [f"{plain(float(x) - 0.4)} {y}", f"{plain(float(x) + 0.4)} {y}"]
        if line.is_filled:
            last = first + len(values) - 1
            outline = f"M{first} {plain(DRAWN)}L{' '.join(points)} {last} {plain(DRAWN)}Z"
            yield element("path", kind=f"area {line.kind}", d=outline)
        yield element(
            "path", kind=f"line {line.kind}", d=f"M{' '.join(points)}", vector_effect=_STRENGTH
        )


_STRENGTH = "non-scaling-stroke"


def _runs(values: Sequence[float | None]) -> Iterator[tuple[int, list[float]]]:
    """The parts without gaps, each with the place where it begins."""
    run: list[float] = []
    for place, value in enumerate([*values, None]):
        if value is not None:
            run.append(value)
        elif run:
            yield place - len(run), run
            run = []


_HOVERED_RECTS = tuple(
    f'<rect class="hover" x="{share(part / HOVERED)}" width="{share(1 / HOVERED)}"'
    f' y="{plain(ABOVE)}" height="{plain(DRAWN)}">'
    for part in range(HOVERED)
)


def _hovered(count: int, words_at: Callable[[int], str]) -> Iterator[str]:
    for part, rect in enumerate(_HOVERED_RECTS):
        place = min(round((part + 0.5) * count / HOVERED), count - 1)
        yield f"{rect}{title(words_at(place))}</rect>"
