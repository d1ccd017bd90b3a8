"""Blocks: how timers are kept that are not filed yet."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.timer import Timer
from duetime.stores.sqlite.rows import Row, timer_of

BLOCK_TIMERS = 32
"""Timers in a block, at most. More would make blocks cheaper to write, and a single timer of
one dearer to read or to file."""

_UUID_START_BYTES = 6
UUID_STARTS = 1 << (8 * _UUID_START_BYTES)

_claim_order = attrgetter("due_at", "timer_uuid")


class _Place(Struct, frozen=True, array_like=True):
    """Where a timer belongs, in the order in which the view `unfiled_timers` takes it apart."""

    namespace: str
    id: str
    shard: ShardNumber
    timer_uuid_hex: str
    created_at: Instant
    execute_at: Instant
    uuid_start: int


class _Asked(Struct, frozen=True, array_like=True):
    """What a client asked for. JSON stays the text it is: that is how rows hold it."""

    delivery_id: str
    callback: Raw
    retry_policy: Raw
    metadata: str | None
    correlation_id: str | None
    fingerprint: bytes | None


class UnfiledTimer(Struct, frozen=True):
    """The values of its row in `timers`, without the row id, and its instant."""

    asked: Row
    execute_at: Instant


_encode = msgspec.json.Encoder().encode
_decode_places = msgspec.json.Decoder(list[_Place]).decode
_decode_asked = msgspec.json.Decoder(list[_Asked]).decode
_decode_place = msgspec.json.Decoder(_Place).decode
_decode_one_asked = msgspec.json.Decoder(_Asked).decode
_split = msgspec.json.Decoder(list[Raw]).decode


def uuid_start(timer_uuid: bytes) -> int:
    """The first bytes of it as a number, which is the quickest to look for."""
    return int.from_bytes(timer_uuid[:_UUID_START_BYTES], "big")


def number_of(block_id: int, position: int = 0) -> int:
    """One number for an unfiled timer. Those of timers that follow each other do so too, also
    from a full block to the next."""
    return block_id * BLOCK_TIMERS + position


def place_of(number: int) -> tuple[int, int]:
    """The block of the timer with this number, and its position there."""
    return divmod(number, BLOCK_TIMERS)


def block_row(block_id: int, timers: Sequence[Timer]) -> Row:
    """The row of `unfiled_blocks` for these timers."""
    first = min(timers, key=_claim_order)
    places: list[Row] = []
    asked: list[Row] = []
    for timer in timers:
        timer_uuid, metadata = timer.timer_uuid, timer.metadata
        places.append(
            (
                *timer.key,
                timer.shard,
                timer_uuid.hex(),
                timer.created_at,
                timer.execute_at,
                uuid_start(timer_uuid),
            )
        )
        asked.append(
            (
                timer.delivery_id,
                timer.callback,
                timer.retry_policy,
                None if metadata is None else bytes(metadata).decode(),
                timer.correlation_id,
                timer.fingerprint,
            )
        )
    texts = (_encode(places).decode(), _encode(asked).decode())
    return (block_id, first.due_at, first.timer_uuid, *texts)


def timers_in(places: str, asked: str) -> list[UnfiledTimer]:
    """All timers of a block."""
    return list(map(_unfiled_timer, _decode_places(places), _decode_asked(asked)))


def timers_at(positions: Iterable[int], places: str, asked: str) -> list[Timer]:
    """Some timers of a block. The others are not looked at."""
    each_place, each_asked = _split(places), _split(asked)
    return [
        _timer(
            _unfiled_timer(
                _decode_place(each_place[position]), _decode_one_asked(each_asked[position])
            )
        )
        for position in positions
    ]


def earliest_of(shards: set[ShardNumber], places: str) -> Instant | None:
    """When the first of the block's timers of these shards is due."""
    instants = (place.execute_at for place in _decode_places(places) if place.shard in shards)
    return min(instants, default=None)


def _unfiled_timer(place: _Place, asked: _Asked) -> UnfiledTimer:
    policy = bytes(asked.retry_policy)
    row: tuple[Any, ...] = (
        place.namespace,
        place.id,
        place.shard,
        bytes.fromhex(place.timer_uuid_hex),
        place.created_at,
        asked.delivery_id,
        bytes(asked.callback).decode(),
        None if policy == b"null" else policy.decode(),
        asked.metadata,
        asked.correlation_id,
        asked.fingerprint,
    )
    return UnfiledTimer(row, place.execute_at)


def _timer(unfiled: UnfiledTimer) -> Timer:
    created_at = unfiled.asked[4]
    state = (created_at, unfiled.execute_at, unfiled.execute_at, 0, 0, 0, 0, 0)
    return timer_of((None, *unfiled.asked, *state, None, None, None, None))
