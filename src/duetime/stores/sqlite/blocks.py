"""Blocks: how timers are kept that are not filed yet."""

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.timer import Timer
from duetime.stores.sqlite.rows import Row, timer_of

BLOCK_TIMERS = 32
"""Timers in a block, at most. More would make blocks cheaper to write, and a single timer of
one dearer to read or to file."""

UUID_BYTES = 16


class _Entry(Struct, frozen=True, array_like=True):
    """What a block has of a timer alone. JSON stays the text it is: that is how rows hold it."""

    id: str
    shard: ShardNumber
    delivery_id: str
    callback: Raw
    retry_policy: Raw
    metadata: str | None
    correlation_id: str | None
    fingerprint: bytes | None


class UnfiledTimer(Struct, frozen=True):
    """The values of its row in `timers`, without the row id, its shard and its instant."""

    asked: Row
    shard: ShardNumber
    execute_at: Instant

    @property
    def key(self) -> TimerKey:
        return TimerKey(*self.asked[:2])


_encode = msgspec.json.Encoder().encode
_decode_entries = msgspec.json.Decoder(list[_Entry]).decode
_decode_entry = msgspec.json.Decoder(_Entry).decode
_split = msgspec.json.Decoder(list[Raw]).decode


class BlockContent(NamedTuple):
    """A row of `unfiled_blocks` without its id."""

    namespace: str
    created_at: Instant
    first_due: Instant
    first_uuid: bytes
    instants: bytes
    uuids: bytes
    timers: str

    def unfiled_timers(self) -> list[UnfiledTimer]:
        """All of them, in the order of their positions. Raises `ValueError` if the block does not
        have everything of each."""
        parts = (instants_in(self.instants), uuids_in(self.uuids), _decode_entries(self.timers))
        return [self._unfiled(*part) for part in zip(*parts, strict=True)]

    def timers_at(self, positions: Iterable[int]) -> list[Timer]:
        """Some of them. The others are not looked at."""
        entries, instants = _split(self.timers), instants_in(self.instants)
        return [
            new_timer(
                self._unfiled(
                    instants[at],
                    self.uuids[at * UUID_BYTES : (at + 1) * UUID_BYTES],
                    _decode_entry(entries[at]),
                )
            )
            for at in positions
        ]

    def _unfiled(self, execute_at: int, timer_uuid: bytes, entry: _Entry) -> UnfiledTimer:
        policy = bytes(entry.retry_policy)
        asked: tuple[Any, ...] = (
            self.namespace,
            entry.id,
            entry.shard,
            timer_uuid,
            self.created_at,
            entry.delivery_id,
            bytes(entry.callback).decode(),
            None if policy == b"null" else policy.decode(),
            entry.metadata,
            entry.correlation_id,
            entry.fingerprint,
        )
        return UnfiledTimer(asked, entry.shard, Instant(execute_at))


BLOCK_COLUMNS = ", ".join(("block_id", *BlockContent._fields))


class Block(Struct, frozen=True):
    """A row of `unfiled_blocks`."""

    block_id: int
    content: BlockContent


def block_of(row: Row) -> Block:
    """From the values of BLOCK_COLUMNS."""
    block_id, *content = row
    return Block(block_id, BlockContent(*content))


def block_content(timers: Sequence[Timer]) -> BlockContent:
    """Of these timers, which are of one namespace and were created at one instant. Each is due
    when it was asked for."""
    instants = [timer.execute_at for timer in timers]
    uuids = [timer.timer_uuid for timer in timers]
    first_due, first_uuid = min(zip(instants, uuids, strict=True))
    entries = [
        (
            timer.key[1],
            timer.shard,
            timer.delivery_id,
            timer.callback,
            timer.retry_policy,
            None if timer.metadata is None else bytes(timer.metadata).decode(),
            timer.correlation_id,
            timer.fingerprint,
        )
        for timer in timers
    ]
    return BlockContent(
        timers[0].key.namespace,
        timers[0].created_at,
        first_due,
        first_uuid,
        _in_file_order(array("q", instants)).tobytes(),
        b"".join(uuids),
        _encode(entries).decode(),
    )


def number_of(block_id: int, position: int = 0) -> int:
    """One number for an unfiled timer. Those of timers that follow each other do so too, also
    from a full block to the next."""
    return block_id * BLOCK_TIMERS + position


def place_of(number: int) -> tuple[int, int]:
    """The block of the timer with this number, and its position there."""
    return divmod(number, BLOCK_TIMERS)


def instants_in(instants: bytes) -> "array[int]":
    return _in_file_order(array("q", instants))


def uuids_in(uuids: bytes) -> list[bytes]:
    return [uuids[start : start + UUID_BYTES] for start in range(0, len(uuids), UUID_BYTES)]


def _in_file_order(instants: "array[int]") -> "array[int]":
    """Between the order of bytes here and that of files, which is the same on most machines."""
    if sys.byteorder == "big":
        instants.byteswap()
    return instants


def new_timer(unfiled: UnfiledTimer) -> Timer:
    """The timer, which is as it was created."""
    created_at = unfiled.asked[4]
    state = (created_at, unfiled.execute_at, unfiled.execute_at, 0, 0, 0, 0, 0)
    return timer_of((None, *unfiled.asked, *state, None, None, None, None))
