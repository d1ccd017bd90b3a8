"""Scales with round numbers."""

import math
from collections.abc import Sequence

from msgspec import Struct

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Scale(Struct, frozen=True):
    """From 0 up to `top`, which is the last of the ticks."""

    ticks: Sequence[float]

    @property
    def top(self) -> float:
        return self.ticks[-1]

    def part(self, value: float) -> float:
        """The place of a value, from 0 to 1."""
        return min(max(value / self.top, 0.0), 1.0)


def scale_to(highest: float, *, most_ticks: int = 3, whole: bool = False) -> Scale:
    """A scale up to at least `highest`, with round numbers; with `whole` they have no fractions."""
    if not highest > 0 or not math.isfinite(highest):
        highest = 1.0
    raw = highest / most_ticks
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in _STEPS if size * power >= raw * (1 - 1e-9))
    if whole:
        step = float(max(1, math.ceil(step)))
    count = max(1, math.ceil(highest / step - 1e-9))
    return Scale([round(number * step, 9) for number in range(count + 1)])


def short(value: float) -> str:
    """A number on an axis: 1200 is "1.2k"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def short_ms(ms: float) -> str:
    """A time on an axis: 1500 is "1.5 s"."""
    if ms >= 3_600_000:
        return f"{ms / 3_600_000:.3g} h"
    if ms >= 60_000:
        return f"{ms / 60_000:.3g} min"
    if ms >= 1_000:
        return f"{ms / 1_000:.3g} s"
    return f"{ms:.3g} ms"
