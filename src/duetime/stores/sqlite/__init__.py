"""The default store: one SQLite file, one writer, durable on every answer."""

from duetime.stores.sqlite.disk.space import DiskStatus
from duetime.stores.sqlite.store import SqliteStore

__all__ = ["DiskStatus", "SqliteStore"]
