"""The history's partitions, made when something is to be written into one that is missing."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import asyncpg

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.stores.postgres.connections import Connections

Result = TypeVar("Result")

_ADD_PARTITION = "SELECT add_history_partition($1, $2)"

_MAX_TRIES = 3
"""More than one is needed only if partitions are dropped as fast as they are made."""


async def write_with_history(
    connections: Connections,
    history_step: int,
    finished_at: Iterable[Instant],
    write: Callable[[], Awaitable[Result]],
) -> Result:
    """Do a write that finishes timers at these instants.

    When there is no partition for one of them the write fails as a whole; then they are made,
    and it is done again.
    """
    for _ in range(_MAX_TRIES):
        try:
            return await write()
        except asyncpg.CheckViolationError:
            for beginning in {instant - instant % history_step for instant in finished_at}:
                await connections.fetch_value(_ADD_PARTITION, beginning, history_step)
    raise StoreUnavailable("the history's partitions disappear as fast as they are made")
