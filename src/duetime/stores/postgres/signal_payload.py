"""What nodes tell each other, as text that fits into notifications."""

from collections.abc import Iterator, Mapping

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber

SHARDS_CHANGED = "shards"

MAX_PAYLOAD_CHARACTERS = 7_999
"""PostgreSQL takes fewer than 8000 bytes."""

_DUE = "due "


def due_payloads(due: Mapping[ShardNumber, Instant]) -> Iterator[str]:
    """As many texts as it takes."""
    payload = _DUE
    for shard, due_at in due.items():
        pair = f"{shard}:{due_at}"
        if len(payload) + len(pair) + 1 > MAX_PAYLOAD_CHARACTERS:
            yield payload
            payload = _DUE
        payload += pair if payload is _DUE else f",{pair}"
    if payload is not _DUE:
        yield payload


def due_of(payload: str) -> dict[ShardNumber, Instant] | None:
    """What is due, or None if the text says something else."""
    if not payload.startswith(_DUE):
        return None
    due = {}
    for pair in payload.removeprefix(_DUE).split(","):
        shard, _, due_at = pair.partition(":")
        if not (shard.isdecimal() and due_at.removeprefix("-").isdecimal()):
            return None
        due[ShardNumber(int(shard))] = Instant(int(due_at))
    return due
