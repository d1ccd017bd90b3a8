"""Bars beside each other, such as the timers that fall due in each minute."""

from collections.abc import Sequence
from typing import NamedTuple

from duetime.web.charts.drawing import Drawing, plain, share, title
from duetime.web.charts.frame import ABOVE, Mark, framed, height_of
from duetime.web.charts.scale import Scale, scale_to, short

LEAST_HEIGHT = 3.0
"""Pixels of a bar that is not empty: one timer among thousands must be seen."""

_GAP = 0.22
"""Part of a bar's room that stays empty."""

_CUT = 4.0
"""Height of the gap near the top of a bar that is cut off."""


class Bar(NamedTuple):
    """`words` are shown by a pointer. A bar that `is_cut` stands for its value or more."""

    value: float
    words: str
    is_cut: bool = False


def bar_chart(
    bars: Sequence[Bar], marks: Sequence[Mark], *, label: str, description: str
) -> Drawing:
    scale = scale_to(max((bar.value for bar in bars), default=0), whole=True)
    pieces = [_bar(bar, place, bars, scale) for place, bar in enumerate(bars)]
    return framed(
        pieces, scale, marks, show=short, label=label, description=description, kind="bars"
    )


def _bar(bar: Bar, place: int, bars: Sequence[Bar], scale: Scale) -> str:
    # Written out, as there are many of them.
    room = 1 / len(bars)
    x, width = share((place + _GAP / 2) * room), share(room * (1 - _GAP))
    bottom = height_of(scale, 0)
    top = min(height_of(scale, bar.value), bottom - LEAST_HEIGHT) if bar.value else bottom
    # The whole room of the bar answers the pointer, as low bars are hard to hit.
    drawn = (
        f'<rect class="hover" x="{share(place * room)}" width="{share(room)}"'
        f' y="{plain(ABOVE)}" height="{plain(bottom - ABOVE)}"/>'
    )
    if bar.value:
        if bar.is_cut:
            drawn += f'<rect class="bar" x="{x}" width="{width}" y="{plain(top)}" height="3"/>'
            top += 3 + _CUT
        height = plain(bottom - top)
        drawn += f'<rect class="bar" x="{x}" width="{width}" y="{plain(top)}" height="{height}"/>'
    return f"<g>{title(bar.words)}{drawn}</g>"
