"""The store for several nodes: a PostgreSQL database that they share."""

from duetime.stores.postgres.inspection.inspector import PostgresInspector
from duetime.stores.postgres.inspection.snapshots import SnapshotWatch
from duetime.stores.postgres.options import PostgresOptions
from duetime.stores.postgres.signals import PostgresSignals
from duetime.stores.postgres.store import PostgresStore

__all__ = [
    "PostgresInspector",
    "PostgresOptions",
    "PostgresSignals",
    "PostgresStore",
    "SnapshotWatch",
]
