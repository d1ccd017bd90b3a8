"""The bus page: the connection, the counts, and the commands that were rejected."""

from duetime.service.reporting.reports import Reports
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.rendering.view import View
from duetime.web.request import Request


class BusPage:
    def __init__(self, reports: Reports) -> None:
        self._reports = reports

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (page("uiBus", "/ui/bus", self.show, for_all_namespaces=True, may_be_live=True),)

    async def show(self, request: Request) -> View:
        report = self._reports.bus()
        return View(
            template="pages/bus.html",
            title="Bus",
            values={
                "bus": report,
                "nats": self._reports.nats(),
                "rejections": () if report is None else report.rejections_for(request.access),
                "members": len(self._reports.cluster().members),
            },
            live=("state", "rejected"),
        )
