"""Panels about the store."""

from dashboard import Panel, Query
from expressions import HERE, mean, per_second, quantile

STORE = (
    Panel(
        "Duration of calls, p99",
        "Time that calls to the store take, waiting included, by operation.",
        (
            Query(
                quantile(0.99, "duetime_store_call_duration_seconds", HERE, "operation"),
                "{{operation}}",
            ),
        ),
        unit="s",
        steps=((0.5, "red"),),
    ),
    Panel(
        "Calls",
        "Calls to the store per second, by operation.",
        (
            Query(
                per_second("duetime_store_call_duration_seconds_count", HERE, "operation"),
                "{{operation}}",
            ),
        ),
        unit="ops",
        stacked=True,
    ),
    Panel(
        "Failed calls",
        "Calls to the store per second that failed.",
        (
            Query(
                per_second("duetime_store_errors_total", HERE, "operation", "reason"),
                "{{operation}}: {{reason}}",
            ),
        ),
        unit="ops",
    ),
    Panel(
        "Timers per write",
        "Mean number of creates and of outcomes that share a write, and of writes that share a "
        "commit of the SQLite file.",
        (
            Query(mean("duetime_store_create_batch_size"), "creates"),
            Query(mean("duetime_store_settle_batch_size"), "outcomes"),
            Query(mean("duetime_store_commit_size"), "writes per commit"),
        ),
    ),
    Panel(
        "Reads of due timers, p99",
        "Duration of the reads of due timers.",
        (Query(quantile(0.99, "timer_polling_duration_seconds", HERE)),),
        unit="s",
    ),
    Panel(
        "Age of the last read",
        "Time since due timers were last read: at most TIMER_POLLING_INTERVAL, 5 s unless set.",
        (
            Query(
                f"time() - duetime_due_read_timestamp_seconds{{{HERE}}}",
                "{{instance}} {{worker}}",
            ),
        ),
        unit="s",
        from_zero=False,
        steps=((30, "red"),),
    ),
    Panel(
        "Unwritten outcomes",
        "Outcomes of attempts that the store has not written yet.",
        (Query(f"sum(duetime_outcomes_unwritten{{{HERE}}})", "unwritten"),),
    ),
    Panel(
        "SQLite: disk",
        "Free space on the disk of the SQLite file. Below the reserve, new timers are refused.",
        (
            Query(f"min(duetime_disk_free_bytes{{{HERE}}})", "free"),
            Query(f"max(duetime_disk_reserve_bytes{{{HERE}}})", "reserve"),
        ),
        unit="bytes",
    ),
    Panel(
        "SQLite: write-ahead log",
        "Size of the log. A program that reads the file for long lets it grow.",
        (Query(f"max(duetime_sqlite_wal_bytes{{{HERE}}})", "log"),),
        unit="bytes",
        steps=((134_217_728, "red"),),
    ),
    Panel(
        "SQLite: age of the last checkpoint",
        "It grows while nothing is written, and while a reader holds the log.",
        (Query(f"max(duetime_sqlite_checkpoint_age_seconds{{{HERE}}})", "age"),),
        unit="s",
    ),
    Panel(
        "PostgreSQL: oldest transaction",
        "Age of the oldest transaction that keeps PostgreSQL from removing dead rows.",
        (
            Query(
                f"max(duetime_postgres_oldest_transaction_age_seconds{{{HERE}}})",
                "age",
            ),
        ),
        unit="s",
    ),
    Panel(
        "PostgreSQL: connections",
        "Connections of the chosen processes, by state.",
        (
            Query(
                f"sum by (state) (duetime_postgres_connections{{{HERE}}})",
                "{{state}}",
            ),
        ),
        stacked=True,
    ),
)
