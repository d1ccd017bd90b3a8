"""A timer's identity: its key, its shard and its stable order among timers of one instant."""

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple, NewType
from uuid import UUID

ShardNumber = NewType("ShardNumber", int)
Epoch = NewType("Epoch", int)


class TimerKey(NamedTuple):
    """A timer's identity. Both parts are strings of 1 to `MAX_KEY_CHARACTERS` characters."""

    namespace: str
    id: str


def stable_hash(id: str) -> int:
    """The documented hash of an id, the same in every release and every SDK.

    It is the first eight bytes of BLAKE2b (digest size 8) of the id in UTF-8, read as a
    big-endian unsigned integer.
    """
    begun = _begin_hash()
    begun.update(id.encode())
    return _number(begun.digest(), "big")


def shard_of(id: str, num_shards: int) -> ShardNumber:
    return ShardNumber(stable_hash(id) % num_shards)


def timer_uuid_of(key: TimerKey) -> bytes:
    """Sixteen bytes derived from the key alone: they order timers of the same instant.

    The namespace's length goes in first, so that no two keys read as the same bytes.
    """
    namespace, id = key
    begun = _begin_uuid(namespace)()
    begun.update(id.encode())
    return begun.digest()


def derived_uuid7(text: str, *, unix_ms: int = 0) -> str:
    """A UUID shaped like version 7 that follows from its arguments: 48 bits of time, and 74 bits of
    BLAKE2b (digest size 16) of the text in UTF-8."""
    digest = _number(blake2b(text.encode(), digest_size=16).digest(), "big")
    random_a = (digest >> 64) & 0xFFF
    random_b = digest & _LOW_62_BITS
    return str(UUID(int=unix_ms << 80 | _VERSION_7 | random_a << 64 | _VARIANT | random_b))


class NamespaceKeys:
    """Makes the keys of one namespace together with everything derived from them. Quicker than
    the functions above for timers that come by the thousand."""

    def __init__(self, namespace: str, num_shards: int) -> None:
        self._namespace = namespace
        self._num_shards = num_shards
        self._begin_uuid = _begin_uuid(namespace)

    def place(self, id: str) -> tuple[TimerKey, ShardNumber, bytes]:
        """The key, its `shard_of` and its `timer_uuid_of`."""
        encoded = id.encode()
        stable = _begin_hash()
        stable.update(encoded)
        uuid = self._begin_uuid()
        uuid.update(encoded)
        return (
            # The same as TimerKey(...), whose __new__ is Python code and takes twice as long.
            _new_tuple(TimerKey, (self._namespace, id)),
            ShardNumber(_number(stable.digest(), "big") % self._num_shards),
            uuid.digest(),
        )


_VERSION_7 = 0x7 << 76
_VARIANT = 0b10 << 62
_LOW_62_BITS = (1 << 62) - 1

# Copying a hash object takes less time than creating one.
_begin_hash = blake2b(digest_size=8).copy
_number = int.from_bytes
_new_tuple = tuple.__new__


@lru_cache(1_024)
def _begin_uuid(namespace: str) -> Callable[[], blake2b]:
    encoded = namespace.encode()
    return blake2b(len(encoded).to_bytes(2, "big") + encoded, digest_size=16).copy
