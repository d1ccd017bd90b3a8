"""The page of endpoints in front of a service on a memory store."""

from duetime.service.reporting.cluster_report import ClusterReport, MemberReport
from duetime.service.turns import Turns
from duetime.web.app import WebApp
from duetime.web.pages.endpoints import EndpointsPage
from duetime.web.rendering.renderer import Renderer
from tests.unit.web.operations.operations_bench import OperationsBench
from tests.unit.web.quiet_reports import quiet_reports

ENDPOINTS = "/ui/endpoints"


class EndpointsBench(OperationsBench):
    """`members` are those of the cluster that the page shows."""

    async def open(self) -> "EndpointsBench":
        await super().open()
        self.members: list[MemberReport] = []
        alone = quiet_reports(self).cluster()

        def cluster() -> ClusterReport:
            if not self.members:
                return alone
            return ClusterReport(node="node-1", is_shared=True, members=self.members, owners=[])

        self.web = WebApp(
            EndpointsPage(self.services.endpoints, cluster).endpoints(),
            self.app.authentication,
            self.app.auditing,
            self.app.lifecycle,
            self.clock,
            Renderer(Turns(self.clock)),
            max_body_bytes=1_000_000,
        )
        return self
