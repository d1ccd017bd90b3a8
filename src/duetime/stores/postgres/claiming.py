"""Claiming due timers."""

from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import msgspec

from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.timer import Claim
from duetime.ports.store import ClaimBatch, ClaimStart, DuePosition, Leases
from duetime.stores.claim_rows import MAX_BATCH_BYTES, claims_of, readable_claims
from duetime.stores.postgres.connections import Connections
from duetime.stores.postgres.tables import SHARED_COLUMNS, qualified

CLAIMING_ROLE = 0
"""Role of the fences that claims and recoveries lock."""

BEFORE_EVERYTHING = Instant(-(2**63))

_FROM_THE_FIRST = ClaimStart(DuePosition(BEFORE_EVERYTHING, b""), {})

MAX_MERGED_SHARDS = 64
"""Shards up to which one statement scans each shard to the claim's limit and merges the scans."""

_SMALLEST_DEPTH = 8

# A row of `executing_timers` as a JSON array in the order of a claim's fields. Stored JSON is
# concatenated as text, because PostgreSQL's JSON types would reword the client's payload.
CLAIM_AS_TEXT = """'[' || concat_ws(',',
    to_json(namespace), to_json(id), shard, epoch, created_at, claim_number, attempt, failures,
    execute_at, due_at, claimed_at, to_json(delivery_id), callback, coalesce(retry_policy, 'null'),
    coalesce(to_json(correlation_id)::text, 'null'), coalesce(attempts, '[]')) || ']'"""

EXECUTING = f"""
    SELECT held.*
    FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, epoch)
    CROSS JOIN LATERAL (
        SELECT namespace, id, created_at, {CLAIM_AS_TEXT} FROM executing_timers
        WHERE executing_timers.shard = leased.shard AND executing_timers.epoch = leased.epoch
        OFFSET 0
    ) AS held
"""


# One shard after the other: where dead index entries cannot be removed, each may take long.
#
# Values: $1 the shards, $2 the instant before which to look.
FIRST_DUE = """
    SELECT leased.shard, first.due_at
    FROM unnest($1::integer[]) AS leased (shard)
    CROSS JOIN LATERAL (
        SELECT due_at FROM pending_timers
        WHERE pending_timers.shard = leased.shard AND due_at < $2
        ORDER BY due_at, timer_uuid LIMIT 1
    ) AS first
"""


class Claiming:
    """Claims, and remembers how unevenly due timers are spread over many shards.

    A claim that begins with the first timer of a shard, and a search for stragglers, may have to
    read past every timer that was claimed since the oldest snapshot in the database. They use
    `patient` connections, whose statements may take long.
    """

    def __init__(self, connections: Connections, patient: Connections) -> None:
        self._connections = connections
        self._patient = patient
        self._extra_depth = 1

    async def claim_due(
        self,
        leases: Leases,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None,
    ) -> ClaimBatch:
        connections = self._connections
        if start is None or None in start.from_inclusive.values():
            connections = self._patient
        valid = dict(leases)
        while valid:
            values = claim_values(valid, now, until_inclusive, limit, start or _FROM_THE_FIRST)
            if len(valid) > MAX_MERGED_SHARDS:
                values.append(self._depth(len(valid), limit))
            row = await connections.fetch_one(claim_statement(len(valid)), *values)
            assert row is not None
            text, next_due_at, found, lost, last_due_at, last_uuid = row
            if lost is None:
                more_is_due = next_due_at is not None and next_due_at <= until_inclusive
                self._learn(found, limit, more_is_due=more_is_due)
                claims = await self._claims_of(text, valid)
                claimed_until = None if last_due_at is None else DuePosition(last_due_at, last_uuid)
                return ClaimBatch(claims, next_due_at, claimed_until)
            for shard in lost:
                del valid[shard]
        return ClaimBatch([], None)

    async def first_due(
        self, leases: Leases, before_exclusive: Instant
    ) -> dict[ShardNumber, Instant]:
        rows = await self._patient.fetch(FIRST_DUE, list(leases), before_exclusive)
        return {ShardNumber(shard): Instant(due_at) for shard, due_at in rows}

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        rows = await self._connections.fetch(EXECUTING, list(leases), list(leases.values()))
        return list(readable_claims(rows))

    async def _claims_of(self, text: str | None, leases: Leases) -> Sequence[Claim]:
        try:
            return claims_of(text)
        except msgspec.DecodeError:
            assert text is not None
            rows = await self._connections.fetch(EXECUTING, list(leases), list(leases.values()))
            claimed = [(text.find(row[-1]), row) for row in rows]
            in_order = sorted((each for each in claimed if each[0] >= 0), key=itemgetter(0))
            return list(readable_claims(row for _, row in in_order))

    def _depth(self, shards: int, limit: int) -> int:
        """Timers to read in each of many shards."""
        even_share = -(-limit // shards)
        return min(limit, (2 * even_share + _SMALLEST_DEPTH) * self._extra_depth)

    def _learn(self, found: int, limit: int, *, more_is_due: bool) -> None:
        """Read deeper next time if the depth kept the batch below its limit."""
        if found < limit and more_is_due:
            self._extra_depth = min(2 * self._extra_depth, limit)
        else:
            self._extra_depth = max(self._extra_depth // 2, 1)


def claim_values(
    leases: Leases, now: Instant, until_inclusive: Instant, limit: int, start: ClaimStart
) -> list[Any]:
    """Values for `claim_statement`, up to $9."""
    earlier = start.from_inclusive
    return [
        list(leases),
        list(leases.values()),
        until_inclusive,
        limit,
        now,
        start.after_exclusive.due_at,
        start.after_exclusive.timer_uuid,
        list(earlier),
        [BEFORE_EVERYTHING if due_at is None else due_at for due_at in earlier.values()],
    ]


# The leases are compared in a subquery, so that there is no join to plan.
_LOST_LEASES = f"""
    SELECT array_agg(leased.shard) AS shards
    FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, epoch)
    WHERE leased.epoch IS DISTINCT FROM (
        SELECT fence.epoch FROM shard_fences AS fence
        WHERE fence.role = {CLAIMING_ROLE} AND fence.shard = leased.shard)
"""

_LIMIT_OR_NONE_IF_LOST = (
    "LIMIT CASE WHEN (SELECT shards FROM lost_lease) IS NULL THEN $4 ELSE 0 END"
)

_FOUND_COLUMNS = "ctid AS place, namespace, id, due_at, timer_uuid, octet_length(callback) AS bytes"

_CLAIMED_COLUMNS = (
    SHARED_COLUMNS.replace("epoch", "leased_epoch")
    .replace("attempt,", "attempt + 1,")
    .replace("claim_number", "claim_number + 1")
)

# The position after which to look in the shard `leased.shard`.
_START_DUE_AT = "coalesce(($9::bigint[])[array_position($8::integer[], leased.shard)], $6::bigint)"
_START_UUID = """
    CASE WHEN array_position($8::integer[], leased.shard) IS NULL
         THEN $7::bytea ELSE ''::bytea END"""
_START = f"({_START_DUE_AT}, {_START_UUID})"

_AFTER_EVERY_UUID = f"'\\x{'ff' * 17}'::bytea"


def claim_statement(shards: int) -> str:
    """The statement that claims due timers of this many shards.

    Values: $1 and $2 the leased shards and their epochs, $3 the instant until which to claim, $4
    the limit, $5 the instant of the claim, $6 and $7 the position after which to look, $8 the
    shards in which to look from earlier on and $9 the instants to begin with there; $10, above
    MAX_MERGED_SHARDS, the number of timers to read in each shard.

    Answers the claims, the next due instant, the number of due timers found, the shards whose
    leases are not current, and the position up to which everything is claimed, if that is known.
    If a lease is not current, nothing is claimed: leaving out single shards would slow down every
    claim, and a lease is seldom lost.
    """
    if shards > MAX_MERGED_SHARDS:
        return _FOR_MANY_SHARDS
    return _for_merged_shards(1 << max(shards - 1, 0).bit_length())


@cache
def _for_merged_shards(branches: int) -> str:
    """Scans the due index once per shard and merges the scans, which reads little more than is
    claimed. A branch without a shard finds nothing."""
    branch = f"""
        (SELECT ($1::integer[])[%(n)s] AS shard, ($2::bigint[])[%(n)s] AS leased_epoch,
                {_FOUND_COLUMNS}
         FROM pending_timers
         WHERE shard = ($1::integer[])[%(n)s] AND due_at <= $3
           AND (due_at, timer_uuid) > {_START.replace("leased.shard", "($1::integer[])[%(n)s]")}
         ORDER BY due_at, timer_uuid LIMIT $4)"""
    merged = " UNION ALL ".join(branch % {"n": n} for n in range(1, branches + 1))
    return _statement(
        f"SELECT * FROM ({merged}) AS branches"
        f" ORDER BY due_at, timer_uuid {_LIMIT_OR_NONE_IF_LOST}",
        all_are_found="true",
    )


# Reads each shard as deep as is usually enough. Where a shard may have more, timers that are due
# after the last one read of it are left for the next claim, which keeps the order.
_DUE_IN_MANY_SHARDS = f"""
    WITH seen AS MATERIALIZED (
        SELECT due.*, row_number() OVER (
            PARTITION BY due.shard ORDER BY due.due_at, due.timer_uuid) AS depth
        FROM unnest($1::integer[], $2::bigint[]) AS leased (shard, leased_epoch)
        CROSS JOIN LATERAL (
            SELECT leased.shard, leased.leased_epoch, {_FOUND_COLUMNS} FROM pending_timers
            WHERE pending_timers.shard = leased.shard AND due_at <= $3
              AND (due_at, timer_uuid) > {_START}
            ORDER BY due_at, timer_uuid LIMIT $10
        ) AS due
    ), bound AS MATERIALIZED (
        SELECT due_at, timer_uuid FROM seen WHERE depth = $10 ORDER BY due_at, timer_uuid LIMIT 1
    )
    SELECT shard, leased_epoch, place, namespace, id, due_at, timer_uuid, bytes FROM seen
    WHERE ((SELECT due_at FROM bound) IS NULL)
       OR (due_at, timer_uuid) <= ((SELECT due_at FROM bound), (SELECT timer_uuid FROM bound))
    ORDER BY due_at, timer_uuid {_LIMIT_OR_NONE_IF_LOST}
"""


def _statement(due: str, *, all_are_found: str) -> str:
    """The statement that claims the timers that the query `due` finds. The condition
    `all_are_found` says whether it finds every due timer if it finds fewer than the limit.

    `found` comes from a snapshot, so everything that matters is read again under locks. The fences
    of the shards come first: a shard that was taken meanwhile has another epoch than in the
    snapshot, and is left alone. Fences are locked only if there is something to claim, so that a
    claim of nothing writes nothing. The timers come next, in the order of their keys. A timer that
    was canceled or claimed meanwhile is gone. A timer that was changed is claimed as it now is, if
    it is still due, or passed over; releases of PostgreSQL differ in this. If any was passed over,
    the next due instant says that there may be more now.

    The planner assumes that an unknown limit leaves few rows. It therefore fetches `doomed` by
    ctid even when it believes that the table is nearly empty.
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
        WHERE role = {CLAIMING_ROLE} AND shard = ANY (ARRAY(SELECT DISTINCT shard FROM chosen))
        ORDER BY shard FOR NO KEY UPDATE
    ), lost AS MATERIALIZED (
        SELECT shard FROM fence
        WHERE epoch <> (SELECT before.epoch FROM shard_fences AS before
                        WHERE before.role = {CLAIMING_ROLE} AND before.shard = fence.shard)
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
        SELECT {_CLAIMED_COLUMNS}, $5 FROM taken
        RETURNING due_at AS sort, timer_uuid AS then_sort, {CLAIM_AS_TEXT} AS claim
    ), last_chosen AS MATERIALIZED (
        SELECT due_at, timer_uuid FROM chosen ORDER BY due_at DESC, timer_uuid DESC LIMIT 1
    ), complete AS MATERIALIZED (
        SELECT * FROM last_chosen
        WHERE (SELECT count(*) FROM claimed) = (SELECT count(*) FROM chosen)
    ), looked_until AS MATERIALIZED (
        SELECT $3::bigint AS due_at, {_AFTER_EVERY_UUID} AS timer_uuid
        WHERE (SELECT count(*) FROM chosen) < $4
          AND (SELECT count(*) FROM chosen) = (SELECT count(*) FROM found) AND {all_are_found}
        UNION ALL SELECT due_at, timer_uuid FROM last_chosen
        LIMIT 1
    )
    SELECT
        (SELECT '[' || string_agg(claim, ',' ORDER BY sort, then_sort) || ']' FROM claimed),
        CASE WHEN (SELECT due_at FROM complete) IS NULL AND (SELECT count(*) FROM chosen) > 0
        THEN (SELECT min(due_at) FROM chosen)
        ELSE (SELECT min(ahead.due_at)
         FROM unnest($1::integer[]) AS leased (shard)
         CROSS JOIN LATERAL (
            SELECT * FROM (
                SELECT due_at, timer_uuid FROM looked_until
                UNION ALL SELECT {_START_DUE_AT}, {_START_UUID}
            ) AS bounds ORDER BY due_at DESC, timer_uuid DESC LIMIT 1
         ) AS seen
         CROSS JOIN LATERAL (
            SELECT next.due_at FROM pending_timers AS next
            WHERE next.shard = leased.shard
              AND (next.due_at, next.timer_uuid) > (seen.due_at, seen.timer_uuid)
            ORDER BY next.due_at, next.timer_uuid LIMIT 1
         ) AS ahead)
        END,
        (SELECT count(*) FROM found), (SELECT shards FROM lost_lease),
        (SELECT due_at FROM complete), (SELECT timer_uuid FROM complete)
    """


_FOR_MANY_SHARDS = _statement(
    _DUE_IN_MANY_SHARDS,
    all_are_found="NOT EXISTS (SELECT FROM found GROUP BY shard HAVING count(*) >= $10)",
)
