"""Old snapshots: which session or standby keeps PostgreSQL from removing dead rows."""

import structlog

from duetime.background import BackgroundLoop
from duetime.ports.clock import Clock
from duetime.ports.inspection import HeldSnapshot
from duetime.stores.postgres.connections import ANY_PLAN, Connection, connected
from duetime.stores.postgres.options import PostgresOptions

_log = structlog.get_logger()

OLD_SECONDS = 60.0
"""Age from which a snapshot is reported."""

OLD_TRANSACTIONS = 100_000
"""Age from which a snapshot is reported that has no other age: about a minute of a busy service. A
standby that is well reports a snapshot of the last ten seconds."""

LOOK_SECONDS = 30.0
LOG_AGAIN_SECONDS = 60.0

_ADVICE = (
    "tables grow and lists get slower until it ends: end the transaction, or the session with"
    " pg_terminate_backend"
)
_STANDBY_ADVICE = (
    "tables grow and lists get slower until it goes on: end the long query on the standby, turn its"
    " hot_standby_feedback off, or drop a replication slot that nobody needs"
)

# Sessions of other roles have no transaction here, unless this role may read all statistics. Vacuum
# does not wait for other vacuums. The snapshot of a standby is with its slot, or with its sender.
_HELD = """
    (
        SELECT pid, application_name AS application, usename::text AS "user",
               coalesce(state, backend_type) AS state,
               extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
               greatest(age(backend_xmin), age(backend_xid)) AS transactions
        FROM pg_catalog.pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND backend_type <> 'autovacuum worker'
          AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        UNION ALL
        SELECT NULL, gid, owner::text, 'prepared transaction',
               extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)
        FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()
        UNION ALL
        SELECT pid, application_name, usename::text, 'standby: ' || state, NULL, age(backend_xmin)
        FROM pg_catalog.pg_stat_replication
        UNION ALL
        SELECT active_pid, slot_name::text, '', 'replication slot', NULL, age(xmin)
        FROM pg_catalog.pg_replication_slots
    ) AS held
"""

OLDEST = f"""
    SELECT pid, application, "user", state, seconds, transactions FROM {_HELD}
    WHERE seconds >= $1 OR (seconds IS NULL AND transactions >= $2)
    ORDER BY transactions DESC, seconds DESC LIMIT 1
"""


OLDEST_AGE = f"SELECT coalesce(max(seconds), 0) FROM {_HELD}"


async def oldest_snapshot(
    connection: Connection,
    at_least_seconds: float = OLD_SECONDS,
    at_least_transactions: int = OLD_TRANSACTIONS,
) -> HeldSnapshot | None:
    row = await connection.fetchrow(OLDEST, at_least_seconds, at_least_transactions)
    return None if row is None else HeldSnapshot(*row)


class SnapshotWatch(BackgroundLoop):
    """Logs the session with the oldest snapshot, as long as it is too old.

    `oldest_age_seconds` is the age of the oldest transaction; None before the first look.
    """

    name = "snapshot-watch"

    def __init__(
        self,
        options: PostgresOptions,
        clock: Clock,
        *,
        old_seconds: float = OLD_SECONDS,
        old_transactions: int = OLD_TRANSACTIONS,
    ) -> None:
        super().__init__(clock)
        self._options = options
        self._old = (old_seconds, old_transactions)
        self._log_at_seconds = 0.0
        self.oldest_age_seconds: float | None = None

    async def step(self) -> None:
        await self.look()
        await self.wait(LOOK_SECONDS)

    async def look(self) -> None:
        async with connected(self._options, ANY_PLAN) as connection:
            held = await oldest_snapshot(connection, *self._old)
            self.oldest_age_seconds = await connection.fetchval(OLDEST_AGE)
        now_seconds = self._clock.monotonic()
        if held is not None and now_seconds >= self._log_at_seconds:
            self._log_at_seconds = now_seconds + LOG_AGAIN_SECONDS
            _log.warning(
                "store.snapshot_held",
                pid=held.pid,
                application=held.application,
                user=held.user,
                state=held.state,
                age_seconds=None if held.age_seconds is None else round(held.age_seconds),
                age_transactions=held.age_transactions,
                advice=_STANDBY_ADVICE if held.age_seconds is None else _ADVICE,
            )
