"""Claiming due timers, and recovering timers that a dead owner left executing."""

from collections import Counter

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.limits import MAX_ATTEMPTS_REMEMBERED
from duetime.domain.outcome import INTERRUPTED, AttemptOutcome
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.store import ClaimBatch, Leases
from duetime.stores.claim_rows import MAX_BATCH_BYTES, claims_of, readable_claims
from duetime.stores.sqlite.connections import Statements, Transaction
from duetime.stores.unreadable_rows import UNREADABLE_ROW

# The leased shards whose epoch is still the leased one.
_VALID_SHARDS = """
    SELECT shards.shard FROM json_each(?1) AS leased
    JOIN shards ON shards.shard = leased.value ->> 0 AND shards.epoch = leased.value ->> 1
"""


def _claim_row(state: str, epoch: str, claims_more: int, claimed_at: str) -> str:
    """An SQL expression for a claim as a JSON array in the order of its fields.

    Stored JSON is concatenated as text, because SQLite's JSON functions would reword the client's
    payload. The text leaves SQLite as bytes: damaged ones cannot be made a string.
    """
    return f"""'[' || concat_ws(',',
        json_quote({state}.namespace), json_quote(timers.id), {state}.shard, {epoch},
        {state}.created_at, {state}.claim_number + {claims_more},
        {state}.attempt + {claims_more}, {state}.failures, {state}.execute_at, {state}.due_at,
        {claimed_at}, json_quote(timers.delivery_id), timers.callback,
        coalesce(timers.retry_policy, 'null'), json_quote(timers.correlation_id),
        coalesce({state}.attempts, '[]')) || ']'"""


# Due timers as one JSON text of claim rows, and their row ids as another.
_FIND_DUE = f"""
    WITH in_order AS (
        SELECT * FROM live_timers INDEXED BY live_timers_due
        WHERE status = 0 AND due_at <= ?2 AND shard IN ({_VALID_SHARDS})
        ORDER BY due_at, timer_uuid LIMIT ?3
    ), due AS (
        SELECT in_order.*,
               sum(octet_length(timers.callback)) OVER (
                   ORDER BY in_order.due_at, in_order.timer_uuid
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
        FROM in_order CROSS JOIN timers ON timers.row_id = in_order.row_id
    )
    SELECT CAST('[' || group_concat({_claim_row("due", "shards.epoch", 1, "?4")}) || ']' AS BLOB),
           json_group_array(due.row_id)
    FROM due
    CROSS JOIN timers ON timers.row_id = due.row_id
    CROSS JOIN shards ON shards.shard = due.shard
    WHERE coalesce(due.bytes_before, 0) < {MAX_BATCH_BYTES}
"""

CLAIM_AS_TEXT = f"CAST({_claim_row('live', 'live.epoch', 0, 'live.claimed_at')} AS BLOB)"
"""An executing timer of `live`, joined with `timers`."""

_NAMED_CLAIM = f"live.namespace, timers.id, live.created_at, {CLAIM_AS_TEXT}"

# The claims under the given leases, a JSON text each: one text could not hold all of them.
_FIND_EXECUTING = f"""
    SELECT {_NAMED_CLAIM}
    FROM json_each(?1) AS leased
    CROSS JOIN live_timers AS live INDEXED BY live_timers_executing
        ON live.status = 1 AND live.shard = leased.value ->> 0 AND live.epoch = leased.value ->> 1
    CROSS JOIN timers ON timers.row_id = live.row_id
"""

# Claims that were just made, a JSON text each.
_FETCH_CLAIMED = f"""
    SELECT {_NAMED_CLAIM}
    FROM json_each(?1) AS claimed
    CROSS JOIN live_timers AS live ON live.row_id = claimed.value
    CROSS JOIN timers ON timers.row_id = live.row_id
    ORDER BY claimed.key
"""

_MARK_EXECUTING = """
    UPDATE live_timers
    SET status = 1, attempt = attempt + 1, claim_number = claim_number + 1, claimed_at = ?2,
        epoch = (SELECT epoch FROM shards WHERE shards.shard = live_timers.shard)
    WHERE row_id IN (SELECT value FROM json_each(?1))
"""

_NEXT_DUE = f"""
    SELECT due_at FROM live_timers INDEXED BY live_timers_due
    WHERE status = 0 AND shard IN ({_VALID_SHARDS})
    ORDER BY due_at, timer_uuid LIMIT 1
"""

_FIRST_DUE = """
    SELECT shard, due_at FROM live_timers INDEXED BY live_timers_due
    WHERE status = 0 AND due_at < ?2 AND shard IN (SELECT value FROM json_each(?1))
    ORDER BY due_at, timer_uuid LIMIT 1
"""

_FIND_ABANDONED = """
    SELECT live.row_id, live.namespace, live.due_at
    FROM json_each(?1) AS leased
    CROSS JOIN shards ON shards.shard = leased.value ->> 0 AND shards.epoch = leased.value ->> 1
    CROSS JOIN live_timers AS live INDEXED BY live_timers_executing
        ON live.status = 1 AND live.shard = shards.shard AND live.epoch < shards.epoch
    LIMIT ?2
"""

# The attempt to forget when there are too many: never the first of all or of this firing.
_OLDEST = """
    CASE WHEN attempt > 1
              AND (SELECT max(key) FROM json_each(attempts) WHERE value ->> 'number' = 1) = 1
         THEN '$[2]' ELSE '$[1]' END
"""

# The same as `was_due_at` of the domain.
_WAS_DUE_AT = """
    CASE WHEN attempt = 1 AND attempts ->> '$[#-1].error' IS NULL THEN execute_at ELSE due_at END
"""

# The attempt is remembered as interrupted: nobody knows whether it arrived. Attempts that cannot be
# read are left as they are; the next claim sets their timer aside.
_MARK_RECOVERED = f"""
    UPDATE live_timers
    SET status = 0, claimed_at = NULL, last_error = ?2,
        attempts = CASE WHEN json_valid(coalesce(attempts, '[]')) THEN json_insert(
            CASE WHEN json_array_length(attempts) >= {MAX_ATTEMPTS_REMEMBERED}
                 THEN json_remove(attempts, {_OLDEST}) ELSE coalesce(attempts, '[]') END,
            '$[#]', json_object(
                'number', attempt, 'due_at', {_WAS_DUE_AT}, 'claimed_at', claimed_at,
                'outcome', '{AttemptOutcome.INTERRUPTED}', 'error', ?2))
            ELSE attempts END
    WHERE row_id IN (SELECT value FROM json_each(?1))
"""

_encode = msgspec.json.Encoder().encode


def claim_due(
    transaction: Transaction, leases: Leases, now: Instant, until_inclusive: Instant, limit: int
) -> ClaimBatch:
    leased = _leases_text(leases)
    found, row_ids = transaction.first(_FIND_DUE, leased, until_inclusive, limit, now)
    claims: list[Claim] = []
    if found is not None:
        transaction.execute(_MARK_EXECUTING, row_ids, now)
        try:
            claims = claims_of(found)
            namespaces = Counter([claim.namespace for claim in claims])
        except UNREADABLE_ROW:
            rows = list(transaction.execute(_FETCH_CLAIMED, row_ids))
            claims = list(readable_claims(rows))
            namespaces = Counter(namespace for namespace, *_ in rows)
        for namespace, timers in namespaces.items():
            transaction.moved(namespace, TimerStatus.PENDING, TimerStatus.EXECUTING, timers)
    next_due = transaction.first(_NEXT_DUE, leased)
    return ClaimBatch(claims, None if next_due is None else Instant(next_due[0]))


def first_due(
    statements: Statements, leases: Leases, before_exclusive: Instant
) -> dict[ShardNumber, Instant]:
    """Only the first of all: a claim finds the others behind it."""
    shards = _encode(list(leases)).decode()
    return {
        ShardNumber(shard): Instant(due_at)
        for shard, due_at in statements.execute(_FIRST_DUE, shards, before_exclusive)
    }


def executing(statements: Statements, leases: Leases) -> list[Claim]:
    found = statements.execute(_FIND_EXECUTING, _leases_text(leases))
    return list(readable_claims(found))


def recover(transaction: Transaction, leases: Leases, limit: int) -> list[Instant]:
    abandoned = list(transaction.execute(_FIND_ABANDONED, _leases_text(leases), limit))
    if not abandoned:
        return []
    row_ids = str([row_id for row_id, _, _ in abandoned])
    transaction.execute(_MARK_RECOVERED, row_ids, INTERRUPTED)
    for namespace, timers in Counter(namespace for _, namespace, _ in abandoned).items():
        transaction.moved(namespace, TimerStatus.EXECUTING, TimerStatus.PENDING, timers)
    return [Instant(due_at) for _, _, due_at in abandoned]


def _leases_text(leases: Leases) -> str:
    return _encode(list(leases.items())).decode()
