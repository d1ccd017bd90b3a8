"""Timers as lines of an export. Numbers and texts in the payload stay as they were written."""

from collections.abc import Mapping

from msgspec import UNSET, Raw, Struct, UnsetType, json
from msgspec.structs import replace

FULL_VERSION = 1
"""Version of full lines."""

_NULL = b"null"
_REDACTED = b"[redacted]"
_NO_RETRIES = Raw(b'{"maxRetries":0}')


class CreateFields(Struct, frozen=True, kw_only=True, rename="camel"):
    """The members of a timer that are needed to create it again."""

    namespace: Raw
    id: Raw
    execute_at: Raw
    callback_url: Raw
    payload: Raw | UnsetType = UNSET
    retry_policy: Raw
    callback_timeout: Raw
    callback_headers: Raw | UnsetType = UNSET
    callback_protocol: Raw | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET


class Page(Struct, frozen=True, rename="camel"):
    """A page of the list of timers; `unreadable` ones are missing from it."""

    timers: list[Raw]
    next_cursor: str | None
    unreadable: int = 0


class NamespaceMembers(Struct, frozen=True):
    """The namespaces, each with its members."""

    namespaces: list[dict[str, Raw]]


class _FullSecrets(Struct, frozen=True):
    url: Raw = Raw(b"")
    headers: Raw = Raw(b"")


class _Secrets(Struct, frozen=True, rename="camel"):
    """The members of a timer that may have secrets, in a list and in a full copy."""

    callback_url: Raw = Raw(b"")
    callback_headers: Raw = Raw(b"")
    callback: _FullSecrets = _FullSecrets()


def hides_secrets(timer: Raw) -> bool:
    """Whether the server has left out secrets of the timer."""
    if _REDACTED not in bytes(timer):
        return False
    found = _decode_secrets(timer)
    parts = (found.callback_url, found.callback_headers, found.callback.url, found.callback.headers)
    return any(_REDACTED in bytes(part) for part in parts)


def full_line(timer: Raw) -> bytes:
    """The line that restores the timer. The server has written it without line breaks."""
    return b'{"full":%d,"timer":%s}\n' % (FULL_VERSION, bytes(timer))


def full_namespace_line(members: Mapping[str, Raw]) -> bytes:
    """The line that restores the namespace. The counts are not a part of it."""
    kept = {name: value for name, value in members.items() if name != "counts"}
    return b'{"full":%d,"namespace":%s}\n' % (FULL_VERSION, json.encode(kept))


def create_line(timer: Raw) -> bytes | None:
    """The request that creates the timer again; None if its callback is not made over HTTP, which
    the v1 API cannot create."""
    fields = _decode(timer)
    if bytes(fields.callback_url) == _NULL:
        return None
    return _on_one_line(json.encode(_to_create(fields)))


def _on_one_line(line: bytes) -> bytes:
    if b"\n" in line or b"\r" in line:
        # Payloads keep the line breaks between their members.
        line = json.format(line, indent=-1)
    return line + b"\n"


_decode = json.Decoder(CreateFields).decode
_decode_secrets = json.Decoder(_Secrets).decode


def _to_create(timer: CreateFields) -> CreateFields:
    """The absence of retries is made explicit: a create without a retry policy would get the one
    of the namespace."""
    changes: dict[str, Raw | UnsetType] = {}
    if bytes(timer.retry_policy) == _NULL:
        changes["retry_policy"] = _NO_RETRIES
    if timer.payload is not UNSET and bytes(timer.payload) == _NULL:
        changes["payload"] = UNSET
    return replace(timer, **changes) if changes else timer
