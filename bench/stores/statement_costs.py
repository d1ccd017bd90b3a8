"""The cost of each statement, from pg_stat_statements."""

import msgspec

from bench.stores.postgres_queries import Queries

SHOWN = 8
SHOWN_CHARACTERS = 30
# Names by a characteristic part of the statement; the first match counts.
NAMES = {
    "create_timers(": "create",
    "create_new_timers(": "create with a new id",
    "INSERT INTO executing_timers": "claim",
    "INSERT INTO finished_timers": "settle",
    "members": "heartbeat",
}
MOST_EXPENSIVE = """
    SELECT /* bench */ query, calls, total_exec_time, mean_exec_time, max_exec_time
    FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND query ~ '(timers|members|shards|shard_fences|ledger|history)'
      AND query NOT LIKE '%/* bench */%'
    ORDER BY total_exec_time DESC LIMIT $1
"""


class StatementFigures(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    calls: int
    total_ms: float
    mean_ms: float
    max_ms: float


class StatementStatistics:
    """Statistics since this object was made."""

    def __init__(self, url: str) -> None:
        self._url = url
        with Queries(url) as queries:
            queries.execute("SELECT pg_stat_statements_reset()")

    def read(self) -> list[StatementFigures]:
        """The statements with the largest total time, in descending order."""
        with Queries(self._url) as queries:
            rows = queries.rows(MOST_EXPENSIVE, SHOWN)
        return [
            StatementFigures(
                name=name_of(row["query"]),
                calls=row["calls"],
                total_ms=round(row["total_exec_time"], 3),
                mean_ms=round(row["mean_exec_time"], 4),
                max_ms=round(row["max_exec_time"], 3),
            )
            for row in rows
        ]


def name_of(query: str) -> str:
    known = (name for part, name in NAMES.items() if part in query)
    return next(known, " ".join(query.split())[:SHOWN_CHARACTERS])
