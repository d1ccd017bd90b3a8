"""Log events of the store and its disk."""

from duetime.telemetry.log_events.event import Area, LogEvent

STORE = Area(
    "Store",
    (
        LogEvent(
            "store.waiting",
            "warning",
            ("database", "reason", "seconds_left"),
            "The database cannot be reached yet, and the start waits for it "
            "(`STARTUP_WAIT_SECONDS`).",
            "Look at the database, its address and the password.",
        ),
        LogEvent("store.opened", "info", ("database",), "The store where timers are kept is open."),
        LogEvent(
            "store.migrated", "info", ("version", "schema"), "The schema was migrated to `version`."
        ),
        LogEvent(
            "store.unavailable",
            "warning",
            ("loop", "error"),
            "A part of the service (`loop`) cannot use the store, and tries again. Timers are "
            "late meanwhile; none is lost. Logged once, then every 30 s.",
            "Look at the database or the disk.",
        ),
        LogEvent(
            "store.available",
            "info",
            ("loop", "away_seconds"),
            "The store can be used again.",
        ),
        LogEvent(
            "store.not_durable",
            "warning",
            ("setting", "advice"),
            "The PostgreSQL server may lose acknowledged writes.",
            "Change the `setting` of the server.",
        ),
        LogEvent(
            "store.snapshot_held",
            "warning",
            (
                "pid",
                "application",
                "user",
                "state",
                "age_seconds",
                "age_transactions",
                "advice",
            ),
            "A transaction of another session is older than a minute, or one on a standby than "
            "100,000 transactions, and keeps dead rows in the database. Logged every minute by "
            "each node.",
            "End that session; `pid` is its process at the server.",
        ),
        LogEvent(
            "store.empty_file",
            "warning",
            ("database", "advice"),
            "The SQLite file existed and was empty, so a new store was made in it.",
            "If it was meant to be a [copy](../how-to/back-up.md#other-ways), stop, and copy it "
            "again.",
        ),
        LogEvent(
            "history.drop_postponed",
            "info",
            ("partition",),
            "A partition of finished timers that is to be dropped is being read; the drop is "
            "tried again.",
        ),
        LogEvent(
            "timer.unreadable",
            "error",
            ("namespace", "id", "reason"),
            "This release cannot read a stored timer, which a newer release may have written. A "
            "due timer is set aside, and `duetime audit` shows it; the others fire. The timer is "
            "left out of lists, redrives and recoveries. Logged once per timer.",
            "Run the newer release.",
        ),
        LogEvent(
            "timer.sealed",
            "error",
            ("namespace", "id", "reason"),
            "A stored timer cannot be decrypted: its key is missing or another one, or the value "
            "was altered. Logged once per key.",
            "[Bring the key back](../how-to/keep-secrets.md#when-a-key-is-missing).",
        ),
        LogEvent(
            "secret.unreadable",
            "error",
            ("namespace", "secret", "reason"),
            "A secret that signs the callbacks of a namespace cannot be opened: its key is "
            "missing or another one, or its text was altered. The callbacks of the namespace "
            "wait (`engine.short`) until the key is back or the secret is revoked; none is sent "
            "unsigned.",
            "[Bring the key back](../how-to/keep-secrets.md#when-a-key-is-missing), or revoke the "
            "secret.",
        ),
        LogEvent(
            "credential.unreadable",
            "error",
            ("id", "reason"),
            "This release cannot read a stored key or secret, which a newer release may have "
            "written. The key opens nothing and the secret signs nothing; all others work, and "
            "`duetime audit` shows it. Logged once.",
            "Run the newer release.",
        ),
    ),
)

SQLITE = Area(
    "SQLite and its disk",
    (
        LogEvent(
            "disk.short",
            "error",
            ("file", "free_bytes", "reserve_bytes", "log_bytes", "readers", "advice"),
            "Less than `DISK_RESERVE_BYTES` are free on the disk of the SQLite file, so nothing "
            "new is accepted. The room that the write-ahead log needs in the file does not count "
            "as free. Accepted timers fire.",
            "Make room on the disk.",
        ),
        LogEvent(
            "disk.enough",
            "info",
            ("file", "free_bytes", "reserve_bytes"),
            "There is room on the disk again.",
        ),
        LogEvent(
            "sqlite.log_held",
            "warning",
            ("log_bytes", "held_bytes", "readers", "advice"),
            "A read transaction keeps the write-ahead log from being copied, and the log has "
            "grown to `log_bytes`, of which `held_bytes` are held. Logged at 128 MiB, or at 4 MiB "
            "while the disk is nearly full, and each time the log has doubled.",
            "End the programs in `readers` that have the file open.",
        ),
        LogEvent(
            "sqlite.log_left",
            "warning",
            ("file", "log_bytes", "readers", "advice"),
            "At an orderly stop the write-ahead log could not be moved into the database file, "
            "because another program was reading it (`readers`) or the disk was full. The log may "
            "hold accepted timers.",
            "Keep the two files together.",
        ),
        LogEvent(
            "sqlite.checkpoint_failed",
            "warning",
            ("error", "exception"),
            "The write-ahead log could not be moved into the database file, for example because "
            "the disk is full. No timer is lost.",
            "Look at the disk.",
        ),
        LogEvent(
            "sqlite.checkpoint_postponed",
            "debug",
            (),
            "Another program held the write-ahead log; it is moved into the database file later.",
        ),
        LogEvent(
            "sqlite.storage_failed",
            "critical",
            ("file", "error", "advice", "exception"),
            "The database file or its log could not be written or synced. The process ends with "
            "status 74, because nobody knows what is on disk. Accepted timers are in the log, and "
            "the next start replays it.",
            "Check the disk, then start again.",
        ),
        LogEvent(
            "sqlite.writer_stopped",
            "critical",
            ("file", "error", "advice", "exception"),
            "An unexpected error stopped all writes to the file. The process ends with status 74; "
            "no accepted timer is lost.",
            "Start again, and report it with the line.",
        ),
    ),
)
