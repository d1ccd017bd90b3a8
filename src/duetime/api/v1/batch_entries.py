"""The entries of a batch and the lines of an import: each is one timer among many."""

from typing import NamedTuple

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, json

from duetime.api.v1.request_types import CreateBody
from duetime.api.v1.requests import decode_create
from duetime.domain.errors import InvalidInput
from duetime.domain.limits import MAX_KEY_CHARACTERS
from duetime.domain.namespace import DEFAULT_NAMESPACE

TextIfKnown = str | UnsetType


class UnreadableEntry(Struct, frozen=True):
    """A text that is not a timer, and why."""

    text: bytes
    error: InvalidInput


BatchEntry = CreateBody | UnreadableEntry


class EntryKey(NamedTuple):
    """The key of a refused timer, as far as it is known."""

    namespace: TextIfKnown
    id: TextIfKnown


class _KeyMembers(Struct, frozen=True, rename="camel"):
    id: Raw | UnsetType = UNSET
    namespace: Raw | UnsetType = UNSET
    group_id: Raw | UnsetType = UNSET


_decode_members = json.Decoder(_KeyMembers).decode
_decode_text = json.Decoder(str).decode


def decode_entry(text: bytes | Raw, whole: str) -> BatchEntry:
    """`whole` is the name that errors give to the text."""
    text = bytes(text)
    try:
        return decode_create(text, whole)
    except InvalidInput as error:
        return UnreadableEntry(text, error)


def entry_key(entry: BatchEntry, default_namespace: str = DEFAULT_NAMESPACE) -> EntryKey:
    """The parts of the key that can be read beyond doubt, even if the entry is unreadable."""
    if isinstance(entry, CreateBody):
        named = entry.group_id if entry.namespace is UNSET else entry.namespace
        return EntryKey(
            short_text(default_namespace if named is UNSET else named), short_text(entry.id)
        )
    try:
        members = _decode_members(entry.text)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return EntryKey(UNSET, UNSET)
    id = _text_in(members.id)
    given = members.group_id if members.namespace is UNSET else members.namespace
    if given is UNSET and id is not UNSET:
        return EntryKey(default_namespace, id)
    return EntryKey(_text_in(given), id)


def _text_in(member: Raw | UnsetType) -> TextIfKnown:
    if member is UNSET:
        return UNSET
    try:
        return short_text(_decode_text(member))
    except (DecodeError, UnicodeDecodeError):
        return UNSET


def short_text(text: str) -> TextIfKnown:
    """A longer text is no part of a key, and would make the answer to an import grow."""
    return text if len(text) <= MAX_KEY_CHARACTERS else UNSET
