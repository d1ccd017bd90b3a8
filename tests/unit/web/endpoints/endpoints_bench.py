"""The page of endpoints in front of a service on a memory store."""

from duetime.service.reporting.cluster_report import ClusterReport, MemberReport
from duetime.web.pages.endpoints import EndpointsPage
from tests.unit.web.page_bench import PageBench
from tests.unit.web.quiet_reports import quiet_reports

ENDPOINTS = "/ui/endpoints"


class EndpointsBench(PageBench):
    """`members` are those of the cluster that the page shows."""

    async def open(self) -> "EndpointsBench":
        await super().open()
        self.members: list[MemberReport] = []
        alone = quiet_reports(self).cluster()

        def cluster() -> ClusterReport:
            if not self.members:
                return alone
            return ClusterReport(node="node-1", is_shared=True, members=self.members, owners=[])

        self.serve(*EndpointsPage(self.services.endpoints, cluster).endpoints())
        return self
