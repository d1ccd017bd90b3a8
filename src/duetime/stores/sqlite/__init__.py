"""The default store: one SQLite file, one writer, durable on every answer."""

from duetime.stores.sqlite.store import SqliteStore
from duetime.stores.sqlite.unfiled import FilingOptions

__all__ = ["FilingOptions", "SqliteStore"]
