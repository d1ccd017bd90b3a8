"""Firing failed timers once more: moving them out of the history."""

from collections.abc import Sequence
from typing import Any

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Redrive
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.rows import (
    PENDING_AS_TIMER,
    SHARED_COLUMNS,
    is_storable,
    qualified,
    timer_of,
)

_NEW_VALUES = (
    SHARED_COLUMNS.replace("updated_at", "$4::bigint")
    .replace("due_at", "greatest($4::bigint, execute_at)")
    .replace("attempt,", "0,")
    .replace("failures", "0")
)

# Values: $1 and $2 the keys, different and in their order, $3 the names of the new firings, $4
# the instant, $5 how many there are: the planner takes that for few, and fetches the timers by
# their places. It is not to find them by their status, as some indexes could: that is why zero is
# added.
#
# The timers are locked in the history first and then, as the keys of new pending timers, in the
# other table: each time in the order of the keys. Nobody waits for a row of the history who has
# something that a redrive waits for. Two redrives of a key, or a redrive and a prune: the second
# one finds it gone. A create that has inserted the key is waited for; it has found the timer in
# the history, because that is gone only with the end of this statement, and gives its own up.
REDRIVE = f"""
    WITH found AS MATERIALIZED (
        SELECT held.partition, held.place, wanted.delivery_id
        FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (namespace, id, delivery_id)
        CROSS JOIN LATERAL (
            SELECT tableoid AS partition, ctid AS place FROM finished_timers AS timer
            WHERE timer.namespace = wanted.namespace AND timer.id = wanted.id
              AND timer.status + 0 = {int(TimerStatus.FAILED)}
            OFFSET 0 FOR UPDATE
        ) AS held
    ), gone AS (
        DELETE FROM finished_timers AS timer USING (SELECT * FROM found LIMIT $5) AS doomed
        WHERE timer.tableoid = doomed.partition AND timer.ctid = doomed.place
        RETURNING {qualified("timer").replace("timer.delivery_id", "doomed.delivery_id")}
    )
    INSERT INTO pending_timers ({SHARED_COLUMNS})
    SELECT {_NEW_VALUES} FROM gone ORDER BY namespace, id
    RETURNING {PENDING_AS_TIMER}
"""


async def redrive_if_failed(
    connections: Connections, redrives: Sequence[Redrive], now: Instant
) -> list[Timer | None]:
    first: dict[TimerKey, Redrive] = {}
    for redrive in redrives:
        if is_storable(redrive.key):
            first.setdefault(redrive.key, redrive)
    if not first:
        return [None] * len(redrives)
    rows = await connections.fetch(REDRIVE, *redrive_values(list(first.values()), now))
    redriven = {timer.key: timer for timer in map(timer_of, rows)}
    # The first of a key takes the answer, so that the others find none.
    return [redriven.pop(redrive.key, None) for redrive in redrives]


def redrive_values(redrives: Sequence[Redrive], now: Instant) -> list[Any]:
    in_order = sorted(redrives, key=lambda redrive: redrive.key)
    return [
        [redrive.key.namespace for redrive in in_order],
        [redrive.key.id for redrive in in_order],
        [redrive.delivery_id for redrive in in_order],
        now,
        len(redrives),
    ]
