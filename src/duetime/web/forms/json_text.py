"""JSON that people read and write. Its numbers, its texts and the order of its members stay as
they are: nothing is decoded."""

import re

from msgspec import DecodeError, Raw, json

from duetime.api.http.decoding import BodyDecoder
from duetime.domain.errors import InvalidInput
from duetime.domain.json_depth import is_deeper_than

LONG_BYTES = 16_384
DEEP = 10
"""Levels."""

_decode = BodyDecoder(Raw, {}).decode
_BYTE = re.compile(r" \(byte (\d+)\)$")


def read_json(field: str, text: str) -> Raw:
    """The JSON without the space between its parts. Raises `InvalidInput` that tells the line and
    the column."""
    content = text.encode()
    try:
        _decode(content, field)
    except InvalidInput as error:
        raise InvalidInput(field, _with_position(error.problem, content)) from None
    return Raw(_spaced(content, -1) or content)


def formatted(raw: Raw | bytes) -> str:
    """The JSON with a line for each member. Long JSON that is nested deeply stays as it is: its
    indentation would be many times as long."""
    content = bytes(raw)
    if len(content) > LONG_BYTES and is_deeper_than(content, DEEP):
        return content.decode(errors="replace")
    return (_spaced(content, 2) or content).decode(errors="replace")


def _spaced(content: bytes, indent: int) -> bytes | None:
    """None for texts that msgspec does not format, such as half of a surrogate pair."""
    try:
        return json.format(content, indent=indent)
    except DecodeError:
        return None


def _with_position(problem: str, content: bytes) -> str:
    """msgspec counts bytes, and people count lines."""
    found = _BYTE.search(problem)
    if found is None:
        return problem
    before = content[: int(found[1])].decode(errors="replace")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{problem[: found.start()]} (line {line}, column {column})"
