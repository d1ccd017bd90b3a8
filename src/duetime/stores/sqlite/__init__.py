"""The default store: one SQLite file, one writer, durable on every answer."""

from duetime.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
