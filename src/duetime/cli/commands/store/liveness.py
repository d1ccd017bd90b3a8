"""Telling living members from silent ones by reading their beats twice."""

from collections.abc import Collection

from duetime.clock import SystemClock
from duetime.ports.inspection import (
    MAX_EXAMPLES,
    OVERDUE_TOO_LONG,
    AuditFinding,
    ClusterFacts,
    StoreInspector,
)
from duetime.ports.membership import BEAT_SHARE

BEATS_TO_WAIT = 1.5
LONGEST_WAIT_SECONDS = 3.0


def can_tell(lease_seconds: float) -> bool:
    """Whether a living member beats within the time that a person is willing to wait."""
    return lease_seconds * BEAT_SHARE * BEATS_TO_WAIT <= LONGEST_WAIT_SECONDS


async def look_twice(
    inspector: StoreInspector, lease_seconds: float
) -> tuple[ClusterFacts, set[str]]:
    """The cluster, and the members whose beats did not change between two reads."""
    before = await inspector.cluster()
    await SystemClock().sleep(lease_seconds * BEAT_SHARE * BEATS_TO_WAIT)
    after = await inspector.cluster()
    beats = {member.node: member.beat for member in before.view.members}
    silent = {member.node for member in after.view.members if beats.get(member.node) == member.beat}
    return after, silent


def findings_of_silence(facts: ClusterFacts, silent: Collection[str]) -> list[AuditFinding]:
    """A finding if timers are long overdue in shards whose owners are silent."""
    now = facts.view.store_now or SystemClock().now()
    shards = [
        state.shard
        for state in facts.view.shards
        if state.owner in silent
        and state.shard in facts.first_due
        and facts.first_due[state.shard] < now - OVERDUE_TOO_LONG
    ]
    if not shards:
        return []
    return [
        AuditFinding(
            "shards with overdue timers whose owner gives no sign of life: is the service running?",
            len(shards),
            [f"shard {shard}" for shard in shards[:MAX_EXAMPLES]],
        )
    ]
