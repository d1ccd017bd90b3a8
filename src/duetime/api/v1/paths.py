"""Paths whose parts may contain any character."""

from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from duetime.domain.errors import InvalidInput

PREFIX = b"/api/v1/"


def path_below_prefix(scope: Scope) -> bytes:
    """What the client sent after the prefix, still percent-encoded.

    The decoded path would not do: a slash in an id could not be told from one between parts.
    """
    raw: bytes = scope["raw_path"]
    return raw.partition(b"?")[0].removeprefix(PREFIX)


def decoded(field: str, part: bytes) -> str:
    """Raises `InvalidInput` for what is not UTF-8."""
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise InvalidInput(field, "must be UTF-8, percent-encoded") from None
