"""The reports of a process that does nothing by itself."""

from duetime.ports.endpoints import NodeEndpoints
from duetime.ports.membership import NodeFacts
from duetime.service.reporting.census import Census
from duetime.service.reporting.cluster_report import ClusterReport, MemberReport
from duetime.service.reporting.due_outlook import DueOutlook
from duetime.service.reporting.problems import ProblemWatch
from duetime.service.reporting.recent_figures import RecentFigures
from duetime.service.reporting.reports import Reports, TimerCounts
from tests.unit.api.asgi_client import ApiBench


def quiet_reports(bench: ApiBench) -> Reports:
    me = MemberReport(node="node-1", facts=NodeFacts(), shards=16, is_answering=True)
    cluster = ClusterReport(node="node-1", is_shared=False, members=[me], owners=[0] * 16)
    return Reports(
        counts=TimerCounts(bench.store, bench.clock),
        census=Census(bench.store, bench.clock, most_names=100),
        outlook=DueOutlook(bench.store, bench.clock),
        recent=RecentFigures(bench.clock, dict),
        problems=ProblemWatch(bench.clock, ()),
        troubled=lambda most: NodeEndpoints("node-1", ()),
        cluster=lambda: cluster,
        bus=lambda: None,
        nats=lambda: None,
    )
