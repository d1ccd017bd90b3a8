"""Options that take a number within a range."""

from collections.abc import Callable
from math import inf
from typing import Any

import typer


def whole_number(least: int, most: int | None = None, **settings: Any) -> Any:
    """A `typer.Option` for whole numbers of the range, both bounds included."""
    return _number(int, "a whole number", least, most, settings)


def number(least: int, **settings: Any) -> Any:
    """A `typer.Option` for finite numbers of at least that size."""
    return _number(float, "a number", least, None, settings)


def _number(
    convert: Callable[[str], float], noun: str, least: int, most: int | None, settings: Any
) -> Any:
    """The values are read here because the library's own messages name its types."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(value: object) -> float:
        try:
            number = convert(str(value))
        except ValueError:
            number = inf
        if number == inf or not least <= number <= (inf if most is None else most):
            raise typer.BadParameter(f"{value!r} is not {noun} {bounds}.")
        return number

    metavar = "NUMBER" if most is None else f"{least}-{most}"
    return typer.Option(parser=read, metavar=metavar, **settings)
