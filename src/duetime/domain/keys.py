"""Who a timer is: its key, its shard and its stable order among timers of one instant."""

from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple, NewType

ShardNumber = NewType("ShardNumber", int)
Epoch = NewType("Epoch", int)

MAX_KEY_CHARACTERS = 255


class TimerKey(NamedTuple):
    """A timer's identity. Both parts are strings of 1 to 255 characters."""

    namespace: str
    id: str


def stable_hash(id: str) -> int:
    """The documented hash of an id, the same in every release and every SDK.

    It is the first eight bytes of BLAKE2b (digest size 8) of the id in UTF-8, read as a
    big-endian unsigned integer.
    """
    return int.from_bytes(blake2b(id.encode(), digest_size=8).digest(), "big")


def shard_of(id: str, num_shards: int) -> ShardNumber:
    return ShardNumber(stable_hash(id) % num_shards)


def timer_uuid_of(key: TimerKey) -> bytes:
    """Sixteen bytes derived from the key alone: they order timers of the same instant.

    The namespace's length goes in first, so that no two keys read as the same bytes.
    """
    namespace, id = key
    return blake2b(_in_front(namespace) + id.encode(), digest_size=16).digest()


@lru_cache(1_024)
def _in_front(namespace: str) -> bytes:
    encoded = namespace.encode()
    return len(encoded).to_bytes(2, "big") + encoded
