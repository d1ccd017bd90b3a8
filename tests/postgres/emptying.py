"""Emptying a schema, which takes less time than a new one."""

import asyncpg

from duetime.stores.postgres import PostgresOptions

_TABLES = """
    namespaces shards shard_fences members operations clock credentials audit_log lateness_counts
    paused_endpoints pending_timers executing_timers finished_timers
"""
_EMPTY = "; ".join(f"DELETE FROM {table}" for table in _TABLES.split())
_RESET_LEDGER = """
    UPDATE ledger SET accepted = 0, removed = 0, pruned = 0
    WHERE (accepted, removed, pruned) <> (0, 0, 0)
"""


class SchemaEmptier:
    """Deletes all rows of a migrated schema, again and again. Partitions of the history stay."""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._connection: asyncpg.Connection | None = None

    async def empty(self) -> None:
        if self._connection is None:
            self._connection = await asyncpg.connect(
                self._options.url, server_settings={"search_path": self._options.schema}
            )
        await self._connection.execute(f"{_EMPTY}; {_RESET_LEDGER}")

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
