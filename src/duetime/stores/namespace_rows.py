"""Namespaces as the columns of a database: options are JSON text."""

from functools import lru_cache

import msgspec

from duetime.domain.namespace import Namespace, NamespaceOptions

_encode = msgspec.json.Encoder().encode
_decode_options = msgspec.json.Decoder(NamespaceOptions).decode


def options_text(options: NamespaceOptions) -> str:
    return _encode(options).decode()


def namespace_of(name: str, num_shards: int, options: str) -> Namespace:
    return Namespace(name, num_shards, _options_of(options))


@lru_cache(maxsize=1_000)
def _options_of(text: str) -> NamespaceOptions:
    """Cached, because most namespaces have the same options."""
    return _decode_options(text)
