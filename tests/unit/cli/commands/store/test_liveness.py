"""Silent members, and the timers that are overdue because of them."""

from collections.abc import Sequence

from duetime.cli.commands.store.liveness import can_tell, findings_of_silence, look_twice
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.timer import TimerStatus
from duetime.ports.inspection import AuditReport, ClusterFacts
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, Member, NodeFacts

NOW = Instant(2_000_000_000_000_000)
MINUTE = 60_000_000


class ScriptedInspector:
    """Answers one read after the other."""

    def __init__(self, *looks: ClusterFacts) -> None:
        self._looks = list(looks)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def cluster(self) -> ClusterFacts:
        return self._looks.pop(0)

    async def states(self, keys: Sequence[TimerKey]) -> list[list[TimerStatus]]:
        raise AssertionError("never called")

    async def audit(self, now: Instant) -> AuditReport:
        raise AssertionError("never called")


def facts(beats: dict[str, int], overdue_us: int = 0) -> ClusterFacts:
    members = [Member(node, beat, NodeFacts()) for node, beat in beats.items()]
    shards = [ShardState(ShardNumber(n), Epoch(1), "one" if n % 2 else "two") for n in range(4)]
    first_due = {ShardNumber(n): Instant(NOW - overdue_us) for n in range(4)}
    return ClusterFacts(ClusterView(members, shards, NOW), first_due)


async def test_a_member_that_does_not_beat_between_two_reads_is_silent() -> None:
    inspector = ScriptedInspector(
        facts({"one": 7, "two": 3}), facts({"one": 7, "two": 4, "three": 1})
    )
    _, silent = await look_twice(inspector, lease_seconds=0.01)
    assert silent == {"one"}


def test_overdue_timers_of_silent_members_are_a_finding() -> None:
    (finding,) = findings_of_silence(facts({"one": 7, "two": 3}, 2 * MINUTE), {"one"})
    assert finding.count == 2
    assert finding.examples == ["shard 1", "shard 3"]
    assert "is the service running?" in finding.problem


def test_short_delays_and_timers_of_living_members_are_no_finding() -> None:
    assert findings_of_silence(facts({"one": 7}, MINUTE // 2), {"one"}) == []
    assert findings_of_silence(facts({"one": 7}, 2 * MINUTE), set()) == []


def test_long_leases_are_not_waited_for() -> None:
    assert can_tell(10)
    assert not can_tell(300)
