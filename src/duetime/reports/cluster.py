"""The cluster as a process sees it, for its pages and for its list of problems."""

from collections.abc import Mapping, Sequence

from duetime.domain.lateness.recent_slots import SlotFigures
from duetime.engine import Engine
from duetime.ports.leases import ShardState
from duetime.ports.membership import Member
from duetime.service.reporting.cluster_report import ClusterReport, cluster_report


def report_on_cluster(engine: Engine) -> ClusterReport:
    """A store that serves one process has that as its only member."""
    if engine.members is not None:
        view = engine.view
        return cluster_report(
            engine.node, view.members, view.shards, view.unfinished, is_shared=True
        )
    members = [Member(engine.node, 0, engine.facts())]
    shards = [ShardState(shard, epoch, engine.node) for shard, epoch in engine.leases.items()]
    return cluster_report(engine.node, members, shards, is_shared=False)


def slots_of_members(engine: Engine) -> Mapping[str, Sequence[SlotFigures]]:
    """The last slots of each member. Its own are those of the process itself, not of its last
    beat."""
    told: dict[str, Sequence[SlotFigures]] = {
        member.node: member.facts.slots for member in engine.view.members
    }
    told[engine.node] = engine.last_slots()
    return told
