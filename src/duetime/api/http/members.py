"""Advice about a member that the object around it does not have."""

import difflib
import re
from collections.abc import Iterator, Sequence

from msgspec import inspect

CLOSE = 0.75
"""Similarity from which a name counts as misspelt."""

_BRACKETS = re.compile(r"\[[^\]]*\]")
_WORD = re.compile(r"[A-Z]?[a-z]+")


def advice(body_type: inspect.Type, owner: str, name: str) -> str:
    """The end of a sentence about the unknown member `name` of `owner`, a path within the body: the
    member that was meant, or else all that there are."""
    path = [part for part in _BRACKETS.sub("", owner).split(".") if part]
    # A type that has the member is not the one that the object was read as.
    found = [
        members for each in _objects_at(body_type, path) if name not in (members := _names_of(each))
    ]
    names = list(dict.fromkeys(each for members in found for each in members))
    meant = _meant(name, names)
    if meant is not None:
        return f"; did you mean {meant!r}?"
    return f": this object takes {', '.join(names)}" if names else ""


def letters(name: str) -> str:
    """The part of a name in which both APIs agree."""
    return name.replace("_", "").lower()


def _objects_at(of_type: inspect.Type, path: Sequence[str]) -> Iterator[inspect.StructType]:
    if isinstance(of_type, inspect.UnionType):
        for one in of_type.types:
            yield from _objects_at(one, path)
    elif isinstance(of_type, inspect.Metadata):
        yield from _objects_at(of_type.type, path)
    elif isinstance(of_type, inspect.CollectionType):
        yield from _objects_at(of_type.item_type, path)
    elif isinstance(of_type, inspect.StructType):
        if not path:
            yield of_type
        for field in of_type.fields:
            if path and field.encode_name == path[0]:
                yield from _objects_at(field.type, path[1:])


def _names_of(of_type: inspect.StructType) -> list[str]:
    tag = [] if of_type.tag_field is None else [of_type.tag_field]
    return tag + [field.encode_name for field in of_type.fields]


def _meant(name: str, names: Sequence[str]) -> str | None:
    wanted = letters(name)
    by_letters = {letters(each): each for each in names}
    if wanted in by_letters:
        return by_letters[wanted]
    # `id` means `timerId`: of several such names the first one, which is the most usual.
    for each in names:
        words = [word.lower() for word in _WORD.findall(each)]
        parts = range(1, len(words))
        if any(wanted in ("".join(words[at:]), "".join(words[:at])) for at in parts):
            return each
    close = difflib.get_close_matches(wanted, by_letters, n=1, cutoff=CLOSE)
    return by_letters[close[0]] if close else None
