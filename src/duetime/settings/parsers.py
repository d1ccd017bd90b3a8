"""From the text of a setting to its value.

A parser raises ValueError with a message that completes the sentence "PORT must be ...".
"""

import difflib
import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from enum import StrEnum
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from typing import TypeVar

from duetime.domain.limits import (
    MAX_BURST,
    MAX_REQUESTS_PER_SECOND,
    MIN_API_KEY_CHARACTERS,
    MIN_REQUESTS_PER_SECOND,
    SCHEMA_NAME_RULE,
    is_schema_name,
)
from duetime.domain.security.credentials import RateLimit
from duetime.sealing.sealer import SEALING_KEY_BYTES, SealingKey
from duetime.settings.postgres_address import SCHEMES as POSTGRES_SCHEMES
from duetime.settings.postgres_address import PostgresAddress
from duetime.settings.values import LogLevel, MemoryStoreSettings, SqliteStoreSettings

ChoiceT = TypeVar("ChoiceT", bound=StrEnum)

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,9})?")
_USER_INFO = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)
"""Everything before the last @, but for a scheme: URLs that are wrong have secrets, too."""
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_STANDARD = str.maketrans("-_", "+/")
"""From the alphabet of base64 for URLs to the usual one."""
_PASSWORD_PARAMETER = re.compile(r"password=[^&]*", re.IGNORECASE)


def without_secrets(url: str) -> str:
    """The URL without its passwords, for screens and logs."""
    return _PASSWORD_PARAMETER.sub("password=***", _USER_INFO.sub(r"\1***@", url))


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a problem line: the known name closest to a mistyped one, or nothing."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def any_text(text: str) -> str:
    return text


def one_word(text: str) -> str:
    if not text.isprintable() or any(character.isspace() for character in text):
        raise ValueError("a name or an address without spaces")
    return text


def api_key(text: str) -> str:
    if len(text) < MIN_API_KEY_CHARACTERS:
        raise ValueError(f"at least {MIN_API_KEY_CHARACTERS} characters long, not {len(text)}")
    if not (text.isascii() and text.isprintable()) or text.strip() != text:
        raise ValueError("printable ASCII without spaces around it, because it travels in a header")
    return text


def file_path(text: str) -> Path:
    if "\0" in text:
        raise ValueError("the path of a file")
    return Path(text)


def readable_file(text: str) -> Path:
    path = file_path(text)
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise ValueError(f"the path of a file that can be read: {error.strerror}") from None
    return path


def whole_number(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text) or not minimum <= int(text) <= maximum:
            raise ValueError(f"a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


def number(minimum: float, maximum: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        if not _NUMBER.fullmatch(text) or not minimum <= float(text) <= maximum:
            raise ValueError(f"a number from {minimum:g} to {maximum:g}")
        return float(text)

    return parse


def rate_limit(text: str) -> RateLimit:
    """The limit of "100/200": 100 requests per second, 200 at once. Without a second number it is
    the requests of one second."""
    per_second_text, slash, burst_text = text.partition("/")
    try:
        per_second = number(MIN_REQUESTS_PER_SECOND, MAX_REQUESTS_PER_SECOND)(per_second_text)
        burst = whole_number(1, MAX_BURST)(burst_text) if slash else max(1, ceil(per_second))
    except ValueError:
        raise ValueError(
            "requests per second and requests at once, such as 100/200; at least "
            f"{MIN_REQUESTS_PER_SECOND:g}/1 and at most {MAX_REQUESTS_PER_SECOND}/{MAX_BURST}"
        ) from None
    return RateLimit(per_second, burst)


def choice(of: type[ChoiceT]) -> Callable[[str], ChoiceT]:
    def parse(text: str) -> ChoiceT:
        try:
            return of(text.lower())
        except ValueError:
            raise ValueError("one of " + ", ".join(of)) from None

    return parse


def true_or_false(text: str) -> bool:
    match text.lower():
        case "true" | "on":
            return True
        case "false" | "off":
            return False
    raise ValueError("true or false")


def log_level(text: str) -> LogLevel:
    return LogLevel.WARN if text.lower() == "warning" else choice(LogLevel)(text)


def store_url(text: str) -> SqliteStoreSettings | MemoryStoreSettings | PostgresAddress:
    if text.startswith(tuple(f"{scheme}:" for scheme in POSTGRES_SCHEMES)):
        return PostgresAddress.from_url(text)
    if text in ("memory:", "memory://"):
        return MemoryStoreSettings()
    path = text.removeprefix("sqlite:///")
    if path == text or path in ("", "/", ":memory:") or "?" in path or "\0" in path:
        raise ValueError(
            "postgresql://user:password@host:port/database, sqlite:///relative/path.db, "
            "sqlite:////absolute/path.db or memory: (SQLite takes no parameters)"
        )
    return SqliteStoreSettings(Path(path))


def postgres_hosts(text: str) -> tuple[str, ...]:
    hosts = tuple(one_word(host).strip("[]") for host in text.split(","))
    if not all(map(_is_host, hosts)):
        raise ValueError(
            "a host name, an IP address or the directory of a socket; the port goes into PG_PORT"
        )
    return hosts


def _is_host(text: str) -> bool:
    if text.startswith("/"):
        return "?" not in text
    if ":" in text:
        try:
            return ip_address(text).version == 6
        except ValueError:
            return False
    return bool(text) and not set(text) & set("/?#@[]")


def schema_name(text: str) -> str:
    if not is_schema_name(text):
        raise ValueError(SCHEMA_NAME_RULE)
    return text


def text_without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text without NUL characters")
    return text


def encryption_keys(text: str) -> tuple[SealingKey, ...]:
    """Raises ValueError, which repeats nothing of the keys but their ids."""
    keys = tuple(
        _sealing_key(part.strip(), number) for number, part in enumerate(text.split(","), 1)
    )
    ids = [key.id for key in keys]
    for id in ids:
        if ids.count(id) > 1:
            raise ValueError(f"keys with different ids; {id!r} is there more than once")
    return keys


def _sealing_key(part: str, number: int) -> SealingKey:
    id, colon, encoded = part.partition(":")
    if not colon or not _KEY_ID.fullmatch(id):
        raise ValueError(
            f"a list of id:base64; key {number} has no id of 1 to 32 of a-z, A-Z, 0-9, - and _"
        )
    try:
        secret = b64decode(encoded.strip().translate(_STANDARD), validate=True)
    except ValueError:
        raise ValueError(f"a list of id:base64; the key {id!r} is not base64") from None
    if len(secret) != SEALING_KEY_BYTES:
        raise ValueError(
            f"keys of {SEALING_KEY_BYTES} bytes in base64 (openssl rand -base64 32 makes one); "
            f"the key {id!r} has {len(secret)}"
        )
    return SealingKey(id, secret)
