"""Reading the JSON that servers answer."""

import json
from math import isfinite

import msgspec

_MOST_DIGITS = 4_000
"""Of a whole number that Python reads in any case. JSON knows no such limit."""


def read_document(content: bytes) -> object:
    """What the JSON says. A number that is too long or too large for Python stays as it is written:
    what is in one timer must not keep others from being shown. Raises `ValueError`."""
    try:
        return msgspec.json.decode(content)
    except msgspec.ValidationError:
        return json.loads(content, parse_int=_whole_number, parse_float=_number)


def _whole_number(text: str) -> int | msgspec.Raw:
    return int(text) if len(text) <= _MOST_DIGITS else msgspec.Raw(text.encode())


def _number(text: str) -> float | msgspec.Raw:
    number = float(text)
    return number if isfinite(number) else msgspec.Raw(text.encode())
