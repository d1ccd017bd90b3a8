"""How deep JSON text is nested."""

import re

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
_WITHOUT_EFFECT = bytes(byte for byte in range(256) if byte not in b'[]{}"\\')


def is_deeper_than(text: bytes, max_depth: int) -> bool:
    """Whether arrays and objects are nested deeper in valid JSON, or in several texts in a row.

    Most texts shrink to brackets and pairs of quotes. A string with brackets in it leaves a
    quote behind when the pairs are removed. Then, and if the text has escapes, strings are
    removed one by one, which takes ten times as long.
    """
    if text.count(b"[") + text.count(b"{") <= max_depth:
        return False
    rest = text.translate(_TO_SQUARE, _WITHOUT_EFFECT)
    if b"\\" not in rest:
        rest = rest.replace(b'""', b"")
    if b'"' in rest:
        rest = _STRING.sub(b"", text).translate(_TO_SQUARE, _WITHOUT_EFFECT)
    # Each round removes the innermost level everywhere, at the speed of `bytes.replace`.
    depth = 0
    while rest and depth <= max_depth:
        rest = rest.replace(b"[]", b"")
        depth += 1
    return depth > max_depth
