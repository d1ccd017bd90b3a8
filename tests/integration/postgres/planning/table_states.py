"""States of the tables that the planner may meet: empty or full, with right or wrong statistics."""

from collections.abc import Awaitable, Callable

from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.connections import Connection
from duetime.testing.store_contract.steps import at, create
from duetime.testing.timers import make_timer

State = Callable[[PostgresStore, Connection], Awaitable[None]]

PENDING = 20_000
FINISHED = 2_000
PARTITIONS = 2

_SECONDS_BETWEEN_PARTITIONS = 10 * 86_400

_FILL_PENDING = """
    INSERT INTO pending_timers
    SELECT $1::bigint, $1::bigint, $1::bigint + n * 1000, $1::bigint + n * 1000, 0, 0, n % 16,
           0, 0, 0, decode(md5(n::text), 'hex'), 'default', $3 || n, 'd', '{"type":"bus"}'
    FROM generate_series(1, $2::integer) AS n
"""

_FILL_FINISHED = """
    INSERT INTO finished_timers
    SELECT $1::bigint, $1::bigint + n % 2 * $3::bigint, $1::bigint, $1::bigint, 1, 0, n % 16,
           1, 0, 1, decode(md5(n::text), 'hex'), 'default', $4 || n, 'd', '{"type":"bus"}',
           NULL, NULL, NULL, NULL, NULL, NULL, 2 + n % 3, NULL
    FROM generate_series(1, $2::integer) AS n
"""

_ANALYSE = "VACUUM ANALYZE pending_timers, executing_timers, finished_timers, shard_fences, shards"


async def never_analysed(store: PostgresStore, database: Connection) -> None:
    """New tables without statistics."""


async def vacuumed_when_empty(store: PostgresStore, database: Connection) -> None:
    """Empty tables, and statistics that say so."""
    await _make_partitions(store, database)
    await database.execute(_ANALYSE)


async def filled(store: PostgresStore, database: Connection) -> None:
    """Full tables without statistics, as after a burst that autovacuum has not noticed."""
    await _fill(store, database)


async def filled_and_analysed(store: PostgresStore, database: Connection) -> None:
    await _fill(store, database)
    await database.execute(_ANALYSE)


async def filled_after_vacuum(store: PostgresStore, database: Connection) -> None:
    """Full tables whose statistics say that they are empty."""
    await vacuumed_when_empty(store, database)
    await _fill(store, database)


async def filled_with_long_ids_after_vacuum(store: PostgresStore, database: Connection) -> None:
    """The same, and the index of the keys is the highest, so it seems the most expensive."""
    await vacuumed_when_empty(store, database)
    await _fill(store, database, id_start="long" * 50)


FULL: list[State] = [
    filled,
    filled_and_analysed,
    filled_after_vacuum,
    filled_with_long_ids_after_vacuum,
]
ALL: list[State] = [never_analysed, vacuumed_when_empty, *FULL]


async def _fill(store: PostgresStore, database: Connection, id_start: str = "") -> None:
    """Pending timers, due one after the other, and a history in two partitions."""
    await _make_partitions(store, database)
    distance = _SECONDS_BETWEEN_PARTITIONS * MICROSECONDS_PER_SECOND
    await database.execute(_FILL_PENDING, at(0), PENDING, f"{id_start}t")
    await database.execute(_FILL_FINISHED, at(0), FINISHED, distance, f"{id_start}f")


async def _make_partitions(store: PostgresStore, database: Connection) -> None:
    for partition in range(PARTITIONS):
        timer = make_timer("first")
        await create(store, timer)
        await store.cancel_if_pending(timer.key, at(partition * _SECONDS_BETWEEN_PARTITIONS))
        await database.execute("DELETE FROM finished_timers")
