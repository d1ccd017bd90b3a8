"""Getting timers wherever they are, filed or not: only the writer can tell."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from duetime.domain.keys import TimerKey, timer_uuid_of
from duetime.domain.timer import Timer
from duetime.stores.sqlite.blocks import BLOCK_COLUMNS, block_of, place_of
from duetime.stores.sqlite.reading import Reader, get_timer
from duetime.stores.sqlite.transaction import Transaction

_FETCH = f"""
    SELECT {BLOCK_COLUMNS} FROM unfiled_blocks
    WHERE block_id IN (SELECT value FROM json_each(?1))
"""

_encode = msgspec.json.Encoder().encode


def find_timers(transaction: Transaction, keys: Sequence[TimerKey]) -> list[Timer | None]:
    numbers = transaction.find_unfiled([timer_uuid_of(key) for key in keys])
    unfiled = {timer.key: timer for timer in fetch_unfiled(transaction, numbers).values()}
    return [unfiled.get(key) or get_timer(transaction, key) for key in keys]


def fetch_unfiled(reader: Reader, numbers: Iterable[int]) -> dict[int, Timer]:
    """The timers that have these numbers, by number; without those that are filed by now."""
    wanted: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for number in numbers:
        block_id, position = place_of(number)
        wanted[block_id][number] = position
    found: dict[int, Timer] = {}
    for row in reader.execute(_FETCH, _encode(list(wanted)).decode()):
        block = block_of(row)
        positions = wanted[block.block_id]
        found.update(zip(positions, block.content.timers_at(positions.values()), strict=True))
    return found
