"""One timer among many, as an entry of a batch or a line of an import asks for it."""

from typing import NamedTuple

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, json

from duetime.api.v1.requests import decode_create
from duetime.api.v1.types import CreateBody
from duetime.domain.errors import InvalidInput
from duetime.domain.limits import MAX_KEY_CHARACTERS
from duetime.domain.namespace import DEFAULT_NAMESPACE

TextIfKnown = str | UnsetType


class Unreadable(Struct, frozen=True):
    """A text that is no timer, and what is wrong with it."""

    text: bytes
    error: InvalidInput


Wanted = CreateBody | Unreadable


class KeyTold(NamedTuple):
    """As much as is known of the key of a timer that was refused, for whoever looks for it."""

    namespace: TextIfKnown
    id: TextIfKnown


class _KeyMembers(Struct, frozen=True, rename="camel"):
    id: Raw | UnsetType = UNSET
    namespace: Raw | UnsetType = UNSET
    group_id: Raw | UnsetType = UNSET


_decode_members = json.Decoder(_KeyMembers).decode
_decode_text = json.Decoder(str).decode


def decode_wanted(text: bytes, whole: str) -> Wanted:
    """`whole` is the name of the text, for what is wrong with all of it."""
    try:
        return decode_create(text, whole)
    except InvalidInput as error:
        return Unreadable(text, error)


def key_told(wanted: Wanted, default_namespace: str = DEFAULT_NAMESPACE) -> KeyTold:
    """Whatever of the key can be read beyond doubt, also in a text that is no timer."""
    if isinstance(wanted, CreateBody):
        named = wanted.group_id if wanted.namespace is UNSET else wanted.namespace
        return KeyTold(_short(default_namespace if named is UNSET else named), _short(wanted.id))
    try:
        members = _decode_members(wanted.text)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return KeyTold(UNSET, UNSET)
    id = _text_in(members.id)
    given = members.group_id if members.namespace is UNSET else members.namespace
    if given is UNSET and id is not UNSET:
        return KeyTold(default_namespace, id)
    return KeyTold(_text_in(given), id)


def _text_in(member: Raw | UnsetType) -> TextIfKnown:
    if member is UNSET:
        return UNSET
    try:
        return _short(_decode_text(member))
    except (DecodeError, UnicodeDecodeError):
        return UNSET


def _short(text: str) -> TextIfKnown:
    """What is longer is no part of a key, and the answer to an import would grow with it."""
    return text if len(text) <= MAX_KEY_CHARACTERS else UNSET
