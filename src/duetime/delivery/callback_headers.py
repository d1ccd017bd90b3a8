"""Rules for the headers that a client gives a callback, over HTTP as over NATS."""

import re

from duetime.domain.errors import InvalidInput, TooLarge
from duetime.domain.limits import MAX_HEADER_BYTES, MAX_HEADERS

FIELD = "callback.headers"

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def check_headers(headers: dict[str, str], encoding: str, characters: str) -> None:
    """Refuse headers that `encoding` cannot carry or that a receiver could misread.

    `characters` names the characters of `encoding` in the error message.
    """
    if len(headers) > MAX_HEADERS:
        raise InvalidInput(FIELD, f"must not have more than {MAX_HEADERS} entries")
    size = 0
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise InvalidInput(FIELD, f"has an entry {name[:64]!r} that is not a valid header name")
        if _UNSAFE_VALUE.search(value):
            raise InvalidInput(f"{FIELD}.{name}", "must not contain control characters")
        try:
            size += len(name) + len(value.encode(encoding)) + 4
        except UnicodeEncodeError:
            raise InvalidInput(
                f"{FIELD}.{name}", f"must contain characters of {characters} only"
            ) from None
    if size > MAX_HEADER_BYTES:
        raise TooLarge(FIELD, f"must not be larger than {MAX_HEADER_BYTES} bytes in all")
