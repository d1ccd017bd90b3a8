"""Secrets of a callback that its endpoint repeats in an answer."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote, unquote

from msgspec import json

from duetime.domain.callback import BusCallback, Callback, HttpCallback
from duetime.domain.security.redaction import REDACTED, is_secret, user_info_of

MIN_SECRET_CHARACTERS = 4
"""Length from which a text counts as a secret: shorter ones are found in any answer by chance."""

_ELLIPSIS = "…"


def has_secrets(callback: Callback) -> bool:
    if isinstance(callback, BusCallback):
        return False
    if callback.headers and any(map(is_secret, callback.headers)):
        return True
    return isinstance(callback, HttpCallback) and bool(user_info_of(callback.url))


def without_echoes(text: str, callback: Callback) -> str:
    """The text without the callback's secrets, in the spellings in which servers repeat them. A
    secret that is cut off at the end of the text is removed, too."""
    if isinstance(callback, BusCallback):
        return text
    spellings = {spelling for each in _secrets_of(callback) for spelling in _spellings(each)}
    # The longest first: others may be a part of it.
    ordered = sorted(spellings, key=len, reverse=True)
    for spelling in ordered:
        text = text.replace(spelling, REDACTED)
    return _without_cut_secret(text, ordered)


def _without_cut_secret(text: str, spellings: Sequence[str]) -> str:
    body = text.removesuffix(_ELLIPSIS)
    for spelling in spellings:
        for length in range(min(len(spelling), len(body)), MIN_SECRET_CHARACTERS - 1, -1):
            if body.endswith(spelling[:length]):
                return body[:-length] + REDACTED + text[len(body) :]
    return text


def _secrets_of(callback: Callback) -> Iterator[str]:
    assert not isinstance(callback, BusCallback)
    for name, value in (callback.headers or {}).items():
        if is_secret(name):
            yield from _parts_of(name, value.strip())
    if isinstance(callback, HttpCallback):
        user, _, password = user_info_of(callback.url).partition(":")
        secret = password or user
        if secret:
            yield secret
            yield unquote(secret)
            # Sent in this form.
            yield b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()


def _parts_of(name: str, value: str) -> Iterator[str]:
    """The value, and the parts of it that a server may repeat alone."""
    yield value
    scheme, space, credentials = value.partition(" ")
    if space:
        yield credentials.strip()
    if space and scheme.lower() == "basic":
        try:
            yield b64decode(credentials).decode().partition(":")[2]
        except ValueError:
            return
    if "cookie" in name.lower():
        for pair in value.split(";"):
            yield pair.partition("=")[2].strip()


def _spellings(secret: str) -> Iterator[str]:
    if len(secret) < MIN_SECRET_CHARACTERS:
        return
    in_json = json.encode(secret).decode()[1:-1]
    yield secret
    yield in_json
    yield in_json.replace("/", "\\/")
    yield escape(secret)
    yield quote(secret, safe="")
