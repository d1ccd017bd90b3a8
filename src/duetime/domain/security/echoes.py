"""Secrets of a callback that its endpoint repeats in an answer."""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from urllib.parse import quote, unquote

from msgspec import json

from duetime.domain.callback import BusCallback, Callback, HttpCallback
from duetime.domain.security.redaction import REDACTED, is_secret, user_info_of

MIN_SECRET_CHARACTERS = 4
"""Length from which a text counts as a secret: shorter ones are found in any answer by chance."""

MAX_SECRETS = 24
"""Secrets of one callback that are searched for. A cookie has one per pair."""

MAX_SECRETS_CHARACTERS = 6_144
"""Length of all these secrets together, each cut at the length of the text."""

MAX_CANDIDATES = 500
"""Places of a text that begin like a secret and are looked at."""

_ELLIPSIS = "…"
_STATUS = re.compile("HTTP [0-9]{3}(?![0-9])")


def has_secrets(callback: Callback) -> bool:
    if isinstance(callback, BusCallback):
        return False
    if callback.headers and any(map(is_secret, callback.headers)):
        return True
    return isinstance(callback, HttpCallback) and bool(user_info_of(callback.url))


def without_echoes(text: str, callback: Callback) -> str:
    """The text without the callback's secrets, in the spellings in which servers repeat them. A
    secret that is cut off at the end of the text is removed, too.

    Both the secrets and the text may be made to be slow to search, and the search blocks the event
    loop. So the work is limited: where it would be more, nothing of the text is shown except for a
    status at its beginning.
    """
    if isinstance(callback, BusCallback):
        return text
    # The text has at most the beginning of a secret that is longer than the text.
    secrets = [each[: len(text)] for each in islice(_secrets_of(callback), MAX_SECRETS + 1)]
    if len(secrets) > MAX_SECRETS or sum(map(len, secrets)) > MAX_SECRETS_CHARACTERS:
        return _hidden(text)
    echoes = _echoes_in(text.removesuffix(_ELLIPSIS), set(secrets))
    return _hidden(text) if echoes is None else _without(text, echoes)


def _echoes_in(text: str, secrets: Iterable[str]) -> list[tuple[int, int]] | None:
    """Start and end of each echo; they may overlap. None if that would take too long."""
    echoes = []
    candidates = 0
    for spelling in {spelling for each in secrets for spelling in _spellings(each)}:
        beginning = spelling[:MIN_SECRET_CHARACTERS]
        start = text.find(beginning)
        while start >= 0:
            candidates += 1
            if candidates > MAX_CANDIDATES:
                return None
            # Shorter than the spelling at the end of the text.
            found = text[start : start + len(spelling)]
            if spelling.startswith(found):
                echoes.append((start, start + len(found)))
            start = text.find(beginning, start + 1)
    return echoes


def _without(text: str, echoes: Iterable[tuple[int, int]]) -> str:
    parts = []
    shown_from = 0
    for start, end in sorted(echoes):
        if start >= shown_from:
            parts += [text[shown_from:start], REDACTED]
        shown_from = max(shown_from, end)
    return "".join([*parts, text[shown_from:]])


def _hidden(text: str) -> str:
    status = _STATUS.match(text)
    return REDACTED if status is None else f"{status[0]}: {REDACTED}"


def _secrets_of(callback: Callback) -> Iterator[str]:
    assert not isinstance(callback, BusCallback)
    for name, value in (callback.headers or {}).items():
        if is_secret(name):
            yield from _parts_of(name, value.strip())
    if isinstance(callback, HttpCallback):
        user, _, password = user_info_of(callback.url).partition(":")
        if user or password:
            yield password or user
            user, password = unquote(user), unquote(password)
            yield password or user
            # Sent in this form.
            yield b64encode(f"{user}:{password}".encode()).decode()


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
