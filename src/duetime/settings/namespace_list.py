"""Namespaces in one line: `default,notifications:64`."""

import re

from duetime.domain.limits import MAX_KEY_CHARACTERS, MAX_SHARDS
from duetime.domain.namespace import ConfiguredNamespace

_NAME_AND_SHARDS = re.compile(r"(.*?)\s*:\s*([0-9]+)", re.DOTALL)
_NOT_STORABLE = re.compile(r"[\0\ud800-\udfff]")


def namespace_list(text: str) -> tuple[ConfiguredNamespace, ...]:
    """A name may contain colons: only digits after the last one are a number of shards."""
    namespaces = tuple(_namespace(item.strip()) for item in text.split(","))
    names = [each.name for each in namespaces]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"a list with each name once: {shortened(name)!r} is there twice")
    return namespaces


def is_namespace_name(name: str) -> bool:
    """Every store can hold it, and read it back."""
    return 1 <= len(name) <= MAX_KEY_CHARACTERS and not _NOT_STORABLE.search(name)


def shortened(name: str) -> str:
    return name if len(name) <= 40 else name[:37] + "..."


def _namespace(item: str) -> ConfiguredNamespace:
    parts = _NAME_AND_SHARDS.fullmatch(item)
    name, shards = (item, None) if parts is None else parts.groups()
    if not is_namespace_name(name):
        raise ValueError(
            f"a list such as default,notifications:64 with names of 1 to {MAX_KEY_CHARACTERS} "
            f"characters: {shortened(name)!r} is none"
        )
    if shards is None:
        return ConfiguredNamespace(name)
    if len(shards) > 18 or not 1 <= int(shards) <= MAX_SHARDS:
        raise ValueError(
            f"a list with 1 to {MAX_SHARDS} shards for each name: {shortened(name)!r} has "
            f"{shortened(shards)}"
        )
    return ConfiguredNamespace(name, int(shards))
