"""Refusing a schema that holds only a part of a copy."""

from duetime.stores.copying.marks import refuse_unfinished
from duetime.stores.postgres.connections import Connection
from duetime.stores.postgres.options import PostgresOptions

_UNFINISHED = "SELECT source, started_at FROM copies WHERE finished_at IS NULL"


async def refuse_half_copied(connection: Connection, options: PostgresOptions) -> None:
    """Raises `SchemaRefused` if a copy into the schema has not ended."""
    refuse_unfinished(copied_place(options), await connection.fetchrow(_UNFINISHED))


def copied_place(options: PostgresOptions) -> str:
    return f"PostgreSQL ({options.place}, schema {options.schema})"
