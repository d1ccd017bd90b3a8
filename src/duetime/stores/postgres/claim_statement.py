"""The statement that claims what is due, for any number of shards.

Values: $1 and $2 the leased shards and their epochs, $3 the instant until which to claim, $4 the
limit, $5 the instant of the claim, $6 the instant since which to look; $7, when there are many
shards, how deep to look into each.

It answers the claims, the next due instant, how many were found due, and the shards whose leases
are not current. If there are any of these, nothing is claimed: the statement would be slower if
it had to leave out some of its shards, and it is needed once for each lease that is lost.
"""

from functools import cache

from duetime.stores.postgres.claim_text import CLAIM_AS_TEXT
from duetime.stores.postgres.rows import SHARED_COLUMNS, qualified

MAX_MERGED_SHARDS = 64
"""Up to so many shards are read side by side, which takes as many scans as there are shards."""

MAX_BATCH_BYTES = 16 * 2**20
"""A batch ends with the claim that reaches this size: memory is bounded by bytes, not by timers."""

# A subquery for each lease, so that there is no join to plan.
_LOST_LEASES = """
    SELECT array_agg(leased.shard) AS shards
    FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, epoch)
    WHERE leased.epoch IS DISTINCT FROM (
        SELECT fence.epoch FROM shard_fences AS fence
        WHERE fence.role = 0 AND fence.shard = leased.shard)
"""

# Reading as many as are wanted, or none if a lease is lost.
_LIMIT_IF_VALID = "LIMIT CASE WHEN (SELECT shards FROM lost_lease) IS NULL THEN $4 ELSE 0 END"

_PLACE = "ctid AS place, namespace, id, due_at, timer_uuid, octet_length(callback) AS bytes"

_TAKEN_COLUMNS = (
    SHARED_COLUMNS.replace("epoch", "leased_epoch")
    .replace("attempt,", "attempt + 1,")
    .replace("claim_number", "claim_number + 1")
)


def claim_statement(shards: int) -> str:
    """The statement for so many leases."""
    if shards > MAX_MERGED_SHARDS:
        return _FOR_MANY_SHARDS
    return _for_merged_shards(1 << max(shards - 1, 0).bit_length())


@cache
def _for_merged_shards(branches: int) -> str:
    """Reads the due index once per shard, side by side, and merges what comes out of it: so it
    reads little more than it claims. A branch without a shard finds nothing."""
    branch = f"""
        (SELECT ($1::integer[])[%(n)s] AS shard, ($2::bigint[])[%(n)s] AS leased_epoch, {_PLACE}
         FROM pending_timers
         WHERE shard = ($1::integer[])[%(n)s] AND due_at BETWEEN $6 AND $3
         ORDER BY due_at, timer_uuid LIMIT $4)"""
    merged = " UNION ALL ".join(branch % {"n": n} for n in range(1, branches + 1))
    return _statement(
        f"SELECT * FROM ({merged}) AS branches ORDER BY due_at, timer_uuid {_LIMIT_IF_VALID}"
    )


# Looks as deep into each shard as is usually enough. Where a shard may have more, what comes
# after the last one seen of it is left for the next claim: the order must not be broken.
_DUE_IN_MANY_SHARDS = f"""
    WITH seen AS MATERIALIZED (
        SELECT due.*, row_number() OVER (
            PARTITION BY due.shard ORDER BY due.due_at, due.timer_uuid) AS depth
        FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, leased_epoch)
        CROSS JOIN LATERAL (
            SELECT leased.shard, leased.leased_epoch, {_PLACE} FROM pending_timers
            WHERE pending_timers.shard = leased.shard AND due_at BETWEEN $6 AND $3
            ORDER BY due_at, timer_uuid LIMIT $7
        ) AS due
    ), bound AS MATERIALIZED (
        SELECT due_at, timer_uuid FROM seen WHERE depth = $7 ORDER BY due_at, timer_uuid LIMIT 1
    )
    SELECT shard, leased_epoch, place, namespace, id, due_at, timer_uuid, bytes FROM seen
    WHERE ((SELECT due_at FROM bound) IS NULL)
       OR (due_at, timer_uuid) <= ((SELECT due_at FROM bound), (SELECT timer_uuid FROM bound))
    ORDER BY due_at, timer_uuid {_LIMIT_IF_VALID}
"""


def _statement(due: str) -> str:
    """Claim what `due` finds.

    `found` is read from a snapshot; what matters is read again under locks. First the fences of
    the shards in question: one that was taken meanwhile has another epoch than the snapshot
    says, and is left alone. They are locked only if there is something to claim, so that a claim
    in vain writes nothing. Then the timers, in the order of their keys: one that was canceled or
    claimed meanwhile is gone; one that was changed is claimed as it is now if it is still due, or
    passed over, which differs between releases of PostgreSQL. So when something was passed over,
    the answer is that there may be more now.

    The planner takes a limit that it does not know to leave few rows, so it fetches `doomed` by
    their places, also when it believes that there are hardly any timers to read through.
    """
    return f"""
    WITH lost_lease AS MATERIALIZED (
        {_LOST_LEASES}
    ), found AS MATERIALIZED (
        {due}
    ), chosen AS MATERIALIZED (
        SELECT * FROM (
            SELECT *, coalesce(sum(bytes) OVER (
                ORDER BY due_at, timer_uuid
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
            FROM found
        ) AS measured
        WHERE bytes_before < {MAX_BATCH_BYTES}
    ), fence AS MATERIALIZED (
        SELECT shard, epoch FROM shard_fences
        WHERE role = 0 AND shard = ANY (ARRAY(SELECT DISTINCT shard FROM chosen))
        ORDER BY shard FOR NO KEY UPDATE
    ), lost AS MATERIALIZED (
        SELECT shard FROM fence
        WHERE epoch <> (SELECT before.epoch FROM shard_fences AS before
                        WHERE before.role = 0 AND before.shard = fence.shard)
    ), taken AS (
        DELETE FROM pending_timers AS timer
        USING (
            SELECT place, leased_epoch FROM chosen
            WHERE shard <> ALL (ARRAY(SELECT shard FROM lost))
            ORDER BY namespace, id LIMIT $4
        ) AS doomed
        WHERE timer.ctid = doomed.place AND timer.due_at <= $3
        RETURNING {qualified("timer")}, doomed.leased_epoch
    ), claimed AS (
        INSERT INTO executing_timers ({SHARED_COLUMNS}, claimed_at)
        SELECT {_TAKEN_COLUMNS}, $5 FROM taken
        RETURNING due_at AS sort, timer_uuid AS then_sort, {CLAIM_AS_TEXT} AS claim
    ), last_chosen AS MATERIALIZED (
        SELECT due_at, timer_uuid FROM chosen ORDER BY due_at DESC, timer_uuid DESC LIMIT 1
    )
    SELECT
        (SELECT '[' || string_agg(claim, ',' ORDER BY sort, then_sort) || ']' FROM claimed),
        CASE WHEN (SELECT count(*) FROM claimed) < (SELECT count(*) FROM chosen)
        THEN (SELECT min(due_at) FROM chosen)
        ELSE (SELECT min(ahead.due_at)
         FROM unnest($1::integer[]) AS leased (shard)
         CROSS JOIN LATERAL (
            SELECT next.due_at FROM pending_timers AS next
            WHERE next.shard = leased.shard AND (next.due_at, next.timer_uuid) > (
                coalesce((SELECT due_at FROM last_chosen), $3),
                coalesce((SELECT timer_uuid FROM last_chosen), {_AFTER_EVERY_UUID}))
            ORDER BY next.due_at, next.timer_uuid LIMIT 1
         ) AS ahead)
        END,
        (SELECT count(*) FROM found), (SELECT shards FROM lost_lease)
    """


_AFTER_EVERY_UUID = f"'\\x{'ff' * 17}'::bytea"


_FOR_MANY_SHARDS = _statement(_DUE_IN_MANY_SHARDS)
