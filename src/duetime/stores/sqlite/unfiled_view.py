"""Unfiled timers as a table, for those who look into the file with SQL."""

import msgspec

from duetime.stores.sqlite.blocks import BLOCK_COLUMNS, block_of
from duetime.stores.sqlite.statements import Statements

_CREATE = (
    """
    CREATE TEMP TABLE unfiled_timers (
        block_id       INTEGER NOT NULL,
        namespace      TEXT NOT NULL,
        id             TEXT NOT NULL,
        shard          INTEGER NOT NULL,
        timer_uuid     BLOB NOT NULL,
        execute_at     INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE TEMP TABLE unreadable_blocks (block_id INTEGER NOT NULL) STRICT",
)
_BLOCKS = f"SELECT {BLOCK_COLUMNS} FROM unfiled_blocks"
_ADD = "INSERT INTO unfiled_timers VALUES (?, ?, ?, ?, ?, ?)"
_ADD_UNREADABLE = "INSERT INTO unreadable_blocks VALUES (?)"


def spread_unfiled(statements: Statements) -> None:
    """Take all blocks apart, into tables that are gone with the transaction."""
    for create in _CREATE:
        statements.execute(create)
    for row in statements.execute(_BLOCKS):
        block = block_of(row)
        try:
            timers = block.content.unfiled_timers()
        except (msgspec.DecodeError, ValueError):
            statements.execute(_ADD_UNREADABLE, block.block_id)
            continue
        for timer in timers:
            namespace, id, shard, timer_uuid, *_ = timer.asked
            place = (namespace, id, shard, timer_uuid, timer.execute_at)
            statements.execute(_ADD, block.block_id, *place)
