"""Claiming what is due, and recovering what a dead owner left executing."""

from collections import Counter

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from duetime.domain.callback import BusCallback
from duetime.domain.instants import Instant
from duetime.domain.limits import MAX_ATTEMPTS_REMEMBERED
from duetime.domain.outcome import INTERRUPTED, AttemptOutcome
from duetime.domain.timer import Claim, TimerStatus
from duetime.ports.store import ClaimBatch, Leases
from duetime.stores.sqlite.connections import Statements, Transaction

MAX_BATCH_BYTES = 16 * 2**20
"""A batch ends with the claim that reaches this size: memory, and how much SQLite can put into
one text, are bounded by bytes, not by timers."""

MAX_SHARED_BYTES = 2**20
"""Payloads are views of the batch's text. In a larger one each gets its own copy, so that a
single claim that is held for long does not keep all of it."""

# The leased shards whose epoch is still the leased one.
_VALID_SHARDS = """
    SELECT shards.shard FROM json_each(?1) AS leased
    JOIN shards ON shards.shard = leased.value ->> 0 AND shards.epoch = leased.value ->> 1
"""


def _claim_row(state: str, epoch: str, claims_more: int, claimed_at: str) -> str:
    """An SQL expression for a claim as JSON, an array in the order of its fields.

    The stored JSON is put together as text: SQLite's JSON functions would read and reword the
    client's payload.
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
    SELECT '[' || group_concat({_claim_row("due", "shards.epoch", 1, "?4")}) || ']',
           json_group_array(due.row_id)
    FROM due
    CROSS JOIN timers ON timers.row_id = due.row_id
    CROSS JOIN shards ON shards.shard = due.shard
    WHERE coalesce(due.bytes_before, 0) < {MAX_BATCH_BYTES}
"""

# The claims under the given leases, a JSON text each: there may be more than one text can hold.
_FIND_EXECUTING = f"""
    SELECT {_claim_row("live", "live.epoch", 0, "live.claimed_at")}
    FROM json_each(?1) AS leased
    CROSS JOIN live_timers AS live INDEXED BY live_timers_executing
        ON live.status = 1 AND live.shard = leased.value ->> 0 AND live.epoch = leased.value ->> 1
    CROSS JOIN timers ON timers.row_id = live.row_id
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

_FIND_ABANDONED = """
    SELECT live.row_id, live.namespace, live.due_at
    FROM json_each(?1) AS leased
    CROSS JOIN shards ON shards.shard = leased.value ->> 0 AND shards.epoch = leased.value ->> 1
    CROSS JOIN live_timers AS live INDEXED BY live_timers_executing
        ON live.status = 1 AND live.shard = shards.shard AND live.epoch < shards.epoch
    LIMIT ?2
"""

# Which attempt to forget when there are too many: never the first of all or of this firing.
_OLDEST = """
    CASE WHEN attempt > 1
              AND (SELECT max(key) FROM json_each(attempts) WHERE value ->> 'number' = 1) = 1
         THEN '$[2]' ELSE '$[1]' END
"""

# As `was_due_at` says it.
_WAS_DUE_AT = """
    CASE WHEN attempt = 1 AND attempts ->> '$[#-1].error' IS NULL THEN execute_at ELSE due_at END
"""

# The attempt is remembered as lost: nobody is left who knows whether it arrived.
_MARK_RECOVERED = f"""
    UPDATE live_timers
    SET status = 0, claimed_at = NULL, last_error = ?2,
        attempts = json_insert(
            CASE WHEN json_array_length(attempts) >= {MAX_ATTEMPTS_REMEMBERED}
                 THEN json_remove(attempts, {_OLDEST}) ELSE coalesce(attempts, '[]') END,
            '$[#]', json_object(
                'number', attempt, 'due_at', {_WAS_DUE_AT}, 'claimed_at', claimed_at,
                'outcome', '{AttemptOutcome.INTERRUPTED}', 'error', ?2))
    WHERE row_id IN (SELECT value FROM json_each(?1))
"""


class _ClaimRow(Claim, frozen=True, array_like=True):
    """A claim as `_FIND_DUE` writes it: an array in the order of the fields."""


_encode = msgspec.json.Encoder().encode
_decode_claim = msgspec.json.Decoder(_ClaimRow).decode
_decode_claims = msgspec.json.Decoder(list[_ClaimRow]).decode


def claim_due(
    transaction: Transaction, leases: Leases, now: Instant, until_inclusive: Instant, limit: int
) -> ClaimBatch:
    leased = _leases_text(leases)
    found, row_ids = transaction.first(_FIND_DUE, leased, until_inclusive, limit, now)
    claims = [] if found is None else _decode_claims(found)
    if found is not None and len(found) > MAX_SHARED_BYTES:
        claims = [_with_own_payload(claim) for claim in claims]
    if claims:
        transaction.execute(_MARK_EXECUTING, row_ids, now)
        for namespace, timers in Counter([claim.namespace for claim in claims]).items():
            transaction.moved(namespace, TimerStatus.PENDING, TimerStatus.EXECUTING, timers)
    next_due = transaction.first(_NEXT_DUE, leased)
    return ClaimBatch(claims, None if next_due is None else Instant(next_due[0]))


def executing(statements: Statements, leases: Leases) -> list[Claim]:
    return [
        _decode_claim(found)
        for (found,) in statements.execute(_FIND_EXECUTING, _leases_text(leases))
    ]


def recover(transaction: Transaction, leases: Leases, limit: int) -> list[Instant]:
    abandoned = list(transaction.execute(_FIND_ABANDONED, _leases_text(leases), limit))
    if not abandoned:
        return []
    row_ids = str([row_id for row_id, _, _ in abandoned])
    transaction.execute(_MARK_RECOVERED, row_ids, INTERRUPTED)
    for namespace, timers in Counter(namespace for _, namespace, _ in abandoned).items():
        transaction.moved(namespace, TimerStatus.EXECUTING, TimerStatus.PENDING, timers)
    return [Instant(due_at) for _, _, due_at in abandoned]


def _with_own_payload(claim: _ClaimRow) -> _ClaimRow:
    callback = claim.callback
    if isinstance(callback, BusCallback) or callback.payload is UNSET:
        return claim
    return replace(claim, callback=replace(callback, payload=callback.payload.copy()))


def _leases_text(leases: Leases) -> str:
    return _encode(list(leases.items())).decode()
