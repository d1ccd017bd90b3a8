"""How deep JSON text is nested."""

_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
_WITHOUT_EFFECT = bytes(byte for byte in range(256) if byte not in b'[]{}"')

_QUICK_ROUNDS = 3
"""Innermost levels that are removed first. Most texts have few more."""


def is_deeper_than(text: bytes, max_depth: int) -> bool:
    """Whether arrays and objects are nested deeper in valid JSON, or in several texts in a row.

    The text shrinks to its brackets first: escapes go, then everything but brackets and quotes,
    then what is between quotes.
    """
    if text.count(b"[") + text.count(b"{") <= max_depth:
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    rest = text.translate(_TO_SQUARE, _WITHOUT_EFFECT).replace(b'""', b"")
    if b'"' in rest:
        rest = b"".join(rest.split(b'"')[::2])
    # Each round removes the innermost level everywhere, at the speed of `bytes.replace`.
    for _ in range(min(_QUICK_ROUNDS, max_depth)):
        rest = rest.replace(b"[]", b"")
        max_depth -= 1
        if len(rest) <= 2 * max_depth:
            return False
    return _depth_of(rest) > max_depth


def _depth_of(brackets: bytes) -> int:
    """The text goes down and up again between two neighbours, so it is deepest in between."""
    level = deepest = 0
    for part in brackets.split(b"]["):
        # The brackets of the split itself, one up and one down, make no difference.
        level += part.count(b"[")
        deepest = max(deepest, level)
        level -= part.count(b"]")
    return deepest
