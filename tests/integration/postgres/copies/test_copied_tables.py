"""Every table of both stores is copied, or is known to belong to the store it is in."""

from contextlib import closing
from pathlib import Path

import apsw
import asyncpg

from duetime.stores.copying.tables import COLUMNS_OF, Table
from duetime.stores.postgres import schema
from duetime.stores.sqlite import SqliteStore
from tests.postgres.options import store_options

_TIMERS = {"pending_timers", "executing_timers", "finished_timers", "live_timers", "timers"}

LEFT_BEHIND = {
    "applied_migrations",  # of the schema itself
    "copies",  # the mark of the copy
    "counts",  # derived from the timers that are written
    "credentials_version",  # known to running services only, and none runs
    "ledger",  # derived from the timers that are written
    "members",  # the nodes of the source
    "shard_fences",  # derived from the shards
    "timer_count_changes",  # derived from the timers that are written
    "timer_count_state",
    "timer_counts",
    "unfinished_leases",  # of the nodes of the source
}

NOT_COPIED = {
    ("shards", "owner"),  # nobody owns the copy
    ("clock", "number"),
    ("clock", "is_only"),
    ("namespaces", "changed_in"),  # a number of PostgreSQL's transactions
    ("operations", "namespace"),  # generated from the document
}

POSTGRES_COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = $1 AND table_type = 'BASE TABLE'
"""

SQLITE_COLUMNS = """
    SELECT tables.name, columns.name FROM sqlite_schema AS tables
    JOIN pragma_table_xinfo(tables.name) AS columns
    WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite!_%' ESCAPE '!'
"""

COPIED = {(table, column) for table in Table for column in COLUMNS_OF[table]}
COPIED_OF_TIMERS = set(COLUMNS_OF[Table.TIMERS]) | {"row_id", "finish_number"}


def check(columns: set[tuple[str, str]]) -> None:
    """A new table or column fails here until `duetime copy` knows it."""
    for table, column in columns:
        if table in _TIMERS:
            assert column in COPIED_OF_TIMERS, f"{table}.{column}"
        elif table not in LEFT_BEHIND and (table, column) not in NOT_COPIED:
            assert (table, column) in COPIED, f"{table}.{column}"


async def test_the_tables_of_a_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "timers.db")
    await store.open()
    await store.close()
    with closing(apsw.Connection(str(tmp_path / "timers.db"))) as connection:
        check({(table, column) for table, column in connection.execute(SQLITE_COLUMNS)})


async def test_the_tables_of_a_schema(postgres_url: str, postgres_schema: str) -> None:
    await schema.migrate(store_options(postgres_url, postgres_schema))
    connection = await asyncpg.connect(postgres_url)
    rows = await connection.fetch(POSTGRES_COLUMNS, postgres_schema)
    await connection.close()
    check({(table, column) for table, column in rows})
