"""The overview and its neighbours, with reports that a test sets."""

import re
from html import unescape

from msgspec.structs import replace

from duetime.ports.endpoints import EndpointStatus, NodeEndpoints
from duetime.ports.membership import NodeFacts
from duetime.service.reporting.bus_report import BusReport
from duetime.service.turns import Turns
from duetime.web.app import WebApp
from duetime.web.pages.bus import BusPage
from duetime.web.pages.cluster import ClusterPage
from duetime.web.pages.overview import OverviewPage
from duetime.web.rendering.renderer import Renderer
from tests.unit.api.asgi_client import API_KEY, ApiBench, Reply, call
from tests.unit.web.quiet_reports import quiet_reports

_TAGS = re.compile(r"<[^>]*>")


class OverviewBench(ApiBench):
    def __init__(self) -> None:
        super().__init__()
        self.bus: BusReport | None = None
        self.troubled: list[EndpointStatus] = []
        self.facts = NodeFacts()
        quiet = quiet_reports(self)
        (me,), cluster = quiet.cluster().members, quiet.cluster()
        self.reports = replace(
            quiet,
            problems=self.problems,
            bus=lambda: self.bus,
            troubled=lambda most: NodeEndpoints("node-1", tuple(self.troubled)),
            cluster=lambda: replace(cluster, members=[replace(me, facts=self.facts)]),
        )
        pages = (
            *OverviewPage(self.namespaces, self.reports).endpoints(),
            *ClusterPage(self.reports.cluster).endpoints(),
            *BusPage(self.reports).endpoints(),
        )
        self.web = WebApp(
            pages,
            self.app.authentication,
            self.app.auditing,
            self.app.lifecycle,
            self.clock,
            Renderer(Turns(self.clock)),
            max_body_bytes=10_000,
        )

    async def page(self, path: str, key: str = API_KEY) -> Reply:
        self.problems.look()
        return await call(self.web, "GET", path, [b""], [(b"x-api-key", key.encode())])

    async def words(self, path: str, key: str = API_KEY) -> str:
        """The words of a page's content, as they are read."""
        reply = await self.page(path, key)
        assert reply.status == 200, reply.content
        content = reply.content.decode().partition("<main")[2].partition("</main>")[0]
        return " ".join(unescape(_TAGS.sub(" ", content)).split())
