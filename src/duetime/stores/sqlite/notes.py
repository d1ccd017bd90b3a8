"""Notes beside the file: tables of one connection, gone with it, that help to find timers."""

import apsw


def attach_notes(connection: apsw.Connection, cache_kib: int) -> None:
    """Add a database `notes`. What does not fit into its cache goes to a temporary file.

    A transaction that is rolled back takes its notes with it. Everything else that SQLite keeps
    for the moment stays in memory: it is small.
    """
    connection.pragma("temp_store", "file")
    connection.execute("ATTACH '' AS notes")
    connection.pragma("temp_store", "memory")
    connection.pragma("journal_mode", "memory", schema="notes")
    connection.pragma("cache_size", -cache_kib, schema="notes")
