"""A schema that a copy has filled is the one that the migrations make, with its indexes."""

import asyncpg

from duetime.domain.instants import Instant
from duetime.stores.copying.checksums import key_of
from duetime.stores.copying.ports import Batch, Position
from duetime.stores.copying.tables import COLUMNS_OF, Table
from duetime.stores.postgres import PostgresOptions, schema
from duetime.stores.postgres.copying.source import opened_source
from duetime.stores.postgres.copying.target import opened_target
from tests.postgres.fixtures import dropped_schema
from tests.postgres.options import store_options

NOW = Instant(1_800_000_000_000_000)
INDEXES = """
    SELECT replace(indexdef, schemaname || '.', '') FROM pg_indexes
    WHERE schemaname = $1 ORDER BY 1
"""


def finished_timer(number: int) -> tuple[object, ...]:
    values: dict[str, object] = dict.fromkeys(COLUMNS_OF[Table.TIMERS], 0)
    texts = {"namespace": "default", "id": f"timer-{number}", "delivery_id": "d", "callback": "{}"}
    absent = dict.fromkeys(
        ("retry_policy", "metadata", "correlation_id", "fingerprint", "attempts", "last_error")
    )
    values |= texts | absent | {"timer_uuid": b"u" * 16, "status": 2, "updated_at": NOW}
    return tuple(values.values())


def batch_of(*numbers: int) -> Batch:
    rows = [finished_timer(number) for number in numbers]
    return Batch(Table.TIMERS, rows, Position("finished_timers", [max(numbers)]))


async def copy_some(options: PostgresOptions) -> None:
    async with opened_target(options) as target:
        await target.begin("a.db", "sqlite 1", NOW)
        await target.write(batch_of(1, 2))
    # A second run, after the first was interrupted.
    async with opened_target(options) as target:
        mark = await target.begin("a.db", "sqlite 1", NOW)
        assert (mark.position, mark.timers) == (Position("finished_timers", [2]), 2)
        await target.write(batch_of(3))
        await target.complete()
        await target.complete()
        await target.finish(NOW)


async def test_the_indexes_are_those_of_the_migrations(
    postgres_url: str, postgres_schema: str
) -> None:
    options = store_options(postgres_url, postgres_schema)
    await copy_some(options)
    connection = await asyncpg.connect(postgres_url)
    with dropped_schema(postgres_url) as migrated:
        await schema.migrate(store_options(postgres_url, migrated))
        await connection.execute(f"SET search_path = {migrated}")
        await connection.execute(f"SELECT add_history_partition({NOW}, {options.history_step})")
        expected = await connection.fetch(INDEXES, migrated)
    copied = await connection.fetch(INDEXES, postgres_schema)
    await connection.close()
    assert copied == expected
    assert len(copied) > 20


async def test_rows_come_back_in_the_order_of_their_keys(
    postgres_url: str, postgres_schema: str
) -> None:
    options = store_options(postgres_url, postgres_schema)
    await copy_some(options)
    async with opened_source(options) as source:
        found = [batch async for batch in source.batches(None, rows=2)]
        timers = [batch for batch in found if batch.table is Table.TIMERS]
        assert [[key_of(each.table, row)[1] for row in each.rows] for each in timers] == [
            ["timer-1", "timer-2"],
            ["timer-3"],
        ]
        rest = [batch async for batch in source.batches(timers[0].position)]
        assert [batch.rows for batch in rest] == [timers[1].rows]
