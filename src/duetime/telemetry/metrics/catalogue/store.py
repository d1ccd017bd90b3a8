"""Metrics of the store."""

from duetime.telemetry.metrics.catalogue import buckets
from duetime.telemetry.metrics.metric import counter, gauge, histogram

CALLS = histogram(
    "duetime_store_call_duration_seconds",
    "Duration of calls to the store, by operation, waiting included.",
    buckets.STORE_CALL,
    "operation",
)
ERRORS = counter(
    "duetime_store_errors_total",
    "Calls to the store that failed, by operation and reason: unavailable, full or other.",
    "operation", "reason",
)  # fmt: skip
CREATE_BATCH = histogram(
    "duetime_store_create_batch_size",
    "Creates that were written in one commit.",
    buckets.BATCH,
)
SETTLE_BATCH = histogram(
    "duetime_store_settle_batch_size",
    "Outcomes that were written in one commit.",
    buckets.BATCH,
)
COMMIT_SIZE = histogram(
    "duetime_store_commit_size",
    "Timers and other writes that shared one commit of the SQLite file (group commit).",
    buckets.BATCH,
)
WAL_BYTES = gauge("duetime_sqlite_wal_bytes", "Size of the write-ahead log of the SQLite file.")
CHECKPOINT_AGE = gauge(
    "duetime_sqlite_checkpoint_age_seconds",
    "Time since a checkpoint copied all of the write-ahead log into the SQLite file.",
)
DISK_FREE = gauge("duetime_disk_free_bytes", "Space left on the disk of the SQLite file.")
DISK_RESERVE = gauge(
    "duetime_disk_reserve_bytes", "Space below which creates are refused (DISK_RESERVE_BYTES)."
)
OLDEST_TRANSACTION = gauge(
    "duetime_postgres_oldest_transaction_age_seconds",
    "Age of the oldest transaction of the PostgreSQL database that keeps dead rows from going.",
)
POOL = gauge(
    "duetime_postgres_connections",
    "Connections of this process to PostgreSQL, by state: idle or used.",
    "state",
)

STORE_METRICS = (
    CALLS, ERRORS, CREATE_BATCH, SETTLE_BATCH, COMMIT_SIZE, WAL_BYTES, CHECKPOINT_AGE, DISK_FREE,
    DISK_RESERVE, OLDEST_TRANSACTION, POOL,
)  # fmt: skip
