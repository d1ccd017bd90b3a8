"""Numbers as people write them."""

import re

from duetime.domain.errors import InvalidInput

_GROUPED = re.compile(r"[0-9]{1,3}(?:[, _][0-9]{3})+")
_SEPARATORS = str.maketrans("", "", ", _")
_MAX_CHARACTERS = 19


def read_whole_number(field: str, text: str) -> int:
    """A number such as "1000" or "1,000". Raises `InvalidInput`."""
    digits = text.translate(_SEPARATORS) if _GROUPED.fullmatch(text) else text
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_CHARACTERS:
        return int(digits)
    raise InvalidInput(field, "must be a whole number")


def read_number(field: str, text: str) -> float:
    """A number such as "1.5". Raises `InvalidInput`."""
    if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,15})?", text, re.ASCII):
        return float(text)
    raise InvalidInput(field, "must be a number, such as 1.5")
