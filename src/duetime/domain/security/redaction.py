"""Secrets in callbacks: which values they are, how they are shown, and how a shown value that comes
back is replaced by the stored one."""

import re
from functools import lru_cache

from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback, HttpCallback, NatsCallback
from duetime.domain.errors import InvalidInput

REDACTED = "[redacted]"
"""Text shown in place of a secret. A client that sends it back means the stored value."""

_Headers = dict[str, str]

_SECRET_NAME = re.compile(
    r"(set-)?cookie|x-(auth|pass|pwd)|.*(authorization|authentication|credential|jwt|key|passphrase"
    r"|passwd|password|secret|session|signature|token).*",
    re.IGNORECASE | re.DOTALL,
)
# As the HTTP client reads it: everything before the last @ of the host part.
_USER_INFO = re.compile(r"([^:/?#]*://)([^/?#]*)@")
_MOVED = (
    f"is {REDACTED}, but the callback goes elsewhere now: give the value itself (only an admin key "
    "may send a stored secret to another place)"
)
_NOTHING_STORED = (
    f"is {REDACTED}, but there is no stored value to keep: give the value itself (secrets=true, or "
    "--with-secrets on the command line, shows it where it is stored)"
)


@lru_cache(4_096)
def is_secret(header: str) -> bool:
    """Whether the value of a header of this name is a secret."""
    return _SECRET_NAME.fullmatch(header) is not None


def shown_headers(headers: _Headers) -> _Headers:
    """The same object if nothing in it is a secret."""
    if not any(map(is_secret, headers)):
        return headers
    return {name: REDACTED if is_secret(name) else value for name, value in headers.items()}


def user_info_of(url: str) -> str:
    """The part of a URL before the @, as in `user:password`; empty if there is none."""
    found = _USER_INFO.match(url) if "@" in url else None
    return "" if found is None else found[2]


def shown_url(url: str) -> str:
    """The URL without the password of its user info. A user without a password is a secret: such
    users are tokens."""
    user, _, password = user_info_of(url).partition(":")
    if password:
        return _with_user_info(url, f"{user}:{REDACTED}")
    return _with_user_info(url, REDACTED) if user else url


def shown_callback(callback: Callback) -> Callback:
    """The callback as everybody may see it; the same object if it has no secrets."""
    if isinstance(callback, BusCallback):
        return callback
    headers = callback.headers
    if headers is not None and (shown := shown_headers(headers)) is not headers:
        callback = replace(callback, headers=shown)
    if isinstance(callback, HttpCallback) and "@" in callback.url:
        callback = replace(callback, url=shown_url(callback.url))
    return callback


def has_redacted(callback: Callback) -> bool:
    """Whether the callback, as a client sent it, has shown values in place of secrets."""
    if isinstance(callback, BusCallback):
        return False
    if callback.headers and any(map(_is_redacted, callback.headers, callback.headers.values())):
        return True
    return isinstance(callback, HttpCallback) and _has_redacted_user(callback.url)


def restored_callback(
    callback: Callback, stored: Callback | None, *, may_move: bool = True
) -> Callback:
    """The callback with the stored secrets in place of the shown ones. The names of headers match
    in any case, and best in their own. Raises `InvalidInput` where no secret is stored.

    Unless `may_move`, it also raises if the stored callback goes to another place: somebody who may
    not see a secret must not have it sent to a place of their choice.
    """
    if not has_redacted(callback) or isinstance(callback, BusCallback):
        return callback
    if stored is not None and not may_move and _place_of(callback) != _place_of(stored):
        raise InvalidInput(_redacted_field(callback), _MOVED)
    if callback.headers:
        callback = replace(callback, headers=_restored_headers(callback.headers, stored))
    if isinstance(callback, HttpCallback) and _has_redacted_user(callback.url):
        callback = replace(callback, url=_restored_url(callback.url, stored))
    return callback


def refuse_redacted(callback: Callback) -> None:
    """For callbacks of new timers, of which nothing is stored. Raises `InvalidInput`."""
    restored_callback(callback, None)


def _restored_headers(headers: _Headers, stored: Callback | None) -> _Headers:
    kept: _Headers = {}
    if isinstance(stored, HttpCallback | NatsCallback) and stored.headers:
        # Names that differ in their case only are different headers: the exact name comes first.
        kept = {name.lower(): value for name, value in stored.headers.items()} | stored.headers
    restored = {}
    for name, value in headers.items():
        if _is_redacted(name, value):
            found = kept.get(name, kept.get(name.lower()))
            if found is None:
                raise InvalidInput(f"callback.headers.{name}", _NOTHING_STORED)
            value = found
        restored[name] = value
    return restored


def _restored_url(url: str, stored: Callback | None) -> str:
    kept = user_info_of(stored.url) if isinstance(stored, HttpCallback) else ""
    user, colon, _ = user_info_of(url).partition(":")
    password = kept.partition(":")[2]
    if not (password if colon else kept):
        raise InvalidInput("callback.url", _NOTHING_STORED)
    return _with_user_info(url, f"{user}:{password}" if colon else kept)


def _place_of(callback: Callback) -> tuple[str, str]:
    """The origin that an HTTP callback goes to, as it is written, or the subject on NATS."""
    if isinstance(callback, HttpCallback):
        scheme, _, rest = callback.url.lower().partition("://")
        host = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
        return scheme, host
    return ("nats", callback.subject) if isinstance(callback, NatsCallback) else ("bus", "")


def _redacted_field(callback: HttpCallback | NatsCallback) -> str:
    for name, value in (callback.headers or {}).items():
        if _is_redacted(name, value):
            return f"callback.headers.{name}"
    return "callback.url"


def _is_redacted(name: str, value: str) -> bool:
    return value == REDACTED and is_secret(name)


def _has_redacted_user(url: str) -> bool:
    if REDACTED not in url:
        return False
    user, colon, password = user_info_of(url).partition(":")
    return (password if colon else user) == REDACTED


def _with_user_info(url: str, user_info: str) -> str:
    # A function, because a password may have backslashes.
    return _USER_INFO.sub(lambda found: f"{found[1]}{user_info}@", url, count=1)
