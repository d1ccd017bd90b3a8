"""Reading single timers, changing, canceling and removing them if pending, redriving if failed."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import UNSET

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, applies, may_cancel
from duetime.ports.store import ConditionalResult
from duetime.stores.postgres.connections import Connections, Row
from duetime.stores.postgres.history import write_with_history
from duetime.stores.postgres.tables import (
    FINISHED_AS_TIMER,
    HAS_KEY,
    PENDING_AS_TIMER,
    SHARED_COLUMNS,
    TIMER_COLUMNS,
    is_storable,
    qualified,
)
from duetime.stores.timer_rows import (
    callback_text,
    key_of,
    metadata_text,
    readable_timers,
    retry_policy_text,
    timer_of,
)

_MAX_TRIES = 10
"""Times that a timer may become pending between a write and the read after it."""

GET = f"SELECT {TIMER_COLUMNS} FROM timers WHERE {HAS_KEY}"

# Each of $5, $7, $9, $11, $14 and $17 says whether the value after it replaces the stored one.
CHANGE = f"""
    UPDATE pending_timers
    SET updated_at = $3,
        execute_at = CASE WHEN $5 THEN $6 ELSE execute_at END,
        due_at = CASE WHEN $5 THEN $6 ELSE coalesce($19::bigint, due_at) END,
        callback = CASE WHEN $7 THEN $8 ELSE callback END,
        delivery_id = CASE WHEN $5 OR $7 THEN $4 ELSE delivery_id END,
        attempt = CASE WHEN $5 OR $7 THEN 0 ELSE attempt END,
        failures = CASE WHEN $5 OR $7 THEN 0 ELSE failures END,
        metadata = CASE WHEN $9 THEN $10 ELSE metadata END,
        retry_policy = CASE WHEN $11 THEN $12 ELSE retry_policy END,
        correlation_id = CASE WHEN $14 THEN $15 ELSE correlation_id END,
        command_order = CASE WHEN $17 THEN $18 ELSE command_order END
    WHERE ($13::text IS NULL OR delivery_id = $13)
      AND ($16::bigint IS NULL OR updated_at = $16) AND {HAS_KEY}
    RETURNING {PENDING_AS_TIMER}
"""

CANCEL = f"""
    WITH gone AS (
        DELETE FROM pending_timers WHERE {HAS_KEY} AND ($4::bigint IS NULL OR updated_at = $4)
        RETURNING {SHARED_COLUMNS}
    )
    INSERT INTO finished_timers ({SHARED_COLUMNS}, status)
    SELECT {SHARED_COLUMNS.replace("updated_at", "$3")}, {int(TimerStatus.CANCELED)} FROM gone
    RETURNING {FINISHED_AS_TIMER}
"""

REMOVE = f"""
    WITH gone AS (
        DELETE FROM pending_timers WHERE {HAS_KEY}
        RETURNING {PENDING_AS_TIMER}
    ), booked AS (
        UPDATE ledger SET removed = removed + 1
        WHERE slot = (SELECT ledger_slot()) AND (SELECT count(*) FROM gone) = 1
    )
    SELECT * FROM gone
"""

_REDRIVEN_COLUMNS = (
    SHARED_COLUMNS.replace("updated_at", "$4::bigint")
    .replace("due_at", "greatest($4::bigint, execute_at)")
    .replace("attempt,", "0,")
    .replace("failures", "0")
)

# Values: $1 and $2 the keys, distinct and in order, $3 the ids of the new firings, $4 the instant,
# $5 the number of keys. The planner assumes that an unknown limit leaves few rows, and therefore
# fetches the timers by ctid. Adding zero to the status keeps the planner from the indexes of lists.
#
# The timers are locked in the history first and then, as keys of new pending timers, in the other
# table, each time in the order of the keys. No transaction that waits for a row of the history
# holds anything that a redrive waits for. If two redrives of a key meet, or a redrive and a prune,
# the second finds the timer gone. The redrive waits for a create that has inserted the key. That
# create still sees the failed timer in the history, because the redrive has not committed, and
# undoes its insert.
REDRIVE = f"""
    WITH found AS MATERIALIZED (
        SELECT held.partition, held.place, redrive.delivery_id
        FROM unnest($1::text[], $2::text[], $3::text[]) AS redrive (namespace, id, delivery_id)
        CROSS JOIN LATERAL (
            SELECT tableoid AS partition, ctid AS place FROM finished_timers AS timer
            WHERE timer.namespace = redrive.namespace AND timer.id = redrive.id
              AND timer.status + 0 = {int(TimerStatus.FAILED)}
            OFFSET 0 FOR UPDATE
        ) AS held
    ), gone AS (
        DELETE FROM finished_timers AS timer USING (SELECT * FROM found LIMIT $5) AS doomed
        WHERE timer.tableoid = doomed.partition AND timer.ctid = doomed.place
        RETURNING {qualified("timer").replace("timer.delivery_id", "doomed.delivery_id")}
    )
    INSERT INTO pending_timers ({SHARED_COLUMNS})
    SELECT {_REDRIVEN_COLUMNS} FROM gone ORDER BY namespace, id
    RETURNING {PENDING_AS_TIMER}
"""


async def get_timer(connections: Connections, key: TimerKey) -> Timer | None:
    """The timer, whichever table holds it: one statement sees it in exactly one."""
    if not is_storable(key):
        return None
    row = await connections.fetch_one(GET, *key)
    return None if row is None else timer_of(row)


async def change_if_pending(
    connections: Connections, key: TimerKey, change: Change
) -> ConditionalResult | None:
    return await _apply(
        connections,
        key,
        lambda: connections.fetch_one(CHANGE, *change_values(key, change)),
        lambda timer: applies(change, timer),
    )


def change_values(key: TimerKey, change: Change) -> list[Any]:
    """Values for CHANGE."""
    values: list[Any] = [*key, change.updated_at, change.delivery_id]
    values += (False, None) if change.execute_at is UNSET else (True, change.execute_at)
    values += (False, None) if change.callback is UNSET else (True, callback_text(change.callback))
    values += (False, None) if change.metadata is UNSET else (True, metadata_text(change.metadata))
    policy, order = change.retry_policy, change.command_order
    values += (False, None) if policy is UNSET else (True, retry_policy_text(policy))
    values.append(change.only_firing)
    values += (False, None) if change.correlation_id is UNSET else (True, change.correlation_id)
    values.append(change.only_updated_at)
    values += (False, None) if order is UNSET else (True, order)
    values.append(None if change.due_at is UNSET else change.due_at)
    return values


async def cancel_if_pending(
    connections: Connections,
    key: TimerKey,
    now: Instant,
    history_step: int,
    only_updated_at: Instant | None = None,
) -> ConditionalResult | None:
    async def cancel() -> Row | None:
        return await write_with_history(
            connections,
            history_step,
            [now],
            lambda: connections.fetch_one(CANCEL, *key, now, only_updated_at),
        )

    return await _apply(connections, key, cancel, lambda timer: may_cancel(timer, only_updated_at))


async def remove_if_pending(connections: Connections, key: TimerKey) -> ConditionalResult | None:
    return await _apply(connections, key, lambda: connections.fetch_one(REMOVE, *key))


async def _apply(
    connections: Connections,
    key: TimerKey,
    write: Callable[[], Awaitable[Row | None]],
    may_apply: Callable[[Timer], bool] = lambda timer: timer.status is TimerStatus.PENDING,
) -> ConditionalResult | None:
    """Write, and answer the timer as it is if the write did not apply.

    A retry may make the timer pending between the write and the read; then the write is repeated.
    """
    if not is_storable(key):
        return None
    for _ in range(_MAX_TRIES):
        row = await write()
        if row is not None:
            return ConditionalResult(True, timer_of(row))
        timer = await get_timer(connections, key)
        if timer is None:
            return None
        if not may_apply(timer):
            return ConditionalResult(False, timer)
    raise StoreUnavailable(f"timer {key.id!r} changes too fast to be written: try again")


async def redrive_if_failed(
    connections: Connections, redrives: Sequence[Redrive], now: Instant
) -> list[Timer | None]:
    first: dict[TimerKey, Redrive] = {}
    for redrive in redrives:
        if is_storable(redrive.key):
            first.setdefault(redrive.key, redrive)
    redriven: dict[TimerKey, Timer] = {}
    while first:
        try:
            redriven = await _redrive(connections, list(first.values()), now)
            break
        except _SomeUnreadable as unreadable:
            for key in unreadable.keys:
                del first[key]
    # The first redrive of a key takes the answer; later ones find none.
    return [redriven.pop(redrive.key, None) for redrive in redrives]


class _SomeUnreadable(Exception):
    """Timers with these keys have to stay as they are."""

    def __init__(self, keys: set[TimerKey]) -> None:
        self.keys = keys


async def _redrive(
    connections: Connections, redrives: Sequence[Redrive], now: Instant
) -> dict[TimerKey, Timer]:
    """Redrive all, or none if any is unreadable: raises `_SomeUnreadable`."""
    async with connections.borrow() as connection, connection.transaction():
        rows = await connection.fetch(REDRIVE, *redrive_values(redrives, now))
        redriven = {timer.key: timer for timer in readable_timers(rows)}
        if len(redriven) < len(rows):
            raise _SomeUnreadable({key_of(row) for row in rows} - redriven.keys())
    return redriven


def redrive_values(redrives: Sequence[Redrive], now: Instant) -> list[Any]:
    """Values for REDRIVE."""
    in_order = sorted(redrives, key=lambda redrive: redrive.key)
    return [
        [redrive.key.namespace for redrive in in_order],
        [redrive.key.id for redrive in in_order],
        [redrive.delivery_id for redrive in in_order],
        now,
        len(redrives),
    ]
