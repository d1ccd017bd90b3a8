"""The history's partitions, made when something is to be written into one that is missing."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
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
    finished_at: Sequence[Instant],
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
            await _add_partitions(connections, history_step, finished_at)
    raise StoreUnavailable("the history's partitions disappear as fast as they are made")


async def _add_partitions(
    connections: Connections, history_step: int, finished_at: Iterable[Instant]
) -> None:
    """Make those that are missing. An instant within the one before needs none."""
    there_until: int | None = None
    for instant in sorted(finished_at):
        if there_until is None or instant >= there_until:
            there_until = await connections.fetch_value(_ADD_PARTITION, instant, history_step)
