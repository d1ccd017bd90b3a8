"""The first page: how the service does."""

from duetime.api.app import Services
from duetime.ports.clock import Clock
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.rendering.view import View
from duetime.web.request import Request


class OverviewPage:
    def __init__(self, services: Services, clock: Clock) -> None:
        self._services = services
        self._clock = clock

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (page("uiOverview", "/ui", self.show),)

    async def show(self, request: Request) -> View:
        counts = await self._services.v1.counts()
        return View(
            template="pages/overview.html",
            title="Overview",
            values={"counts": {status.label: count for status, count in counts.items()}},
            live=("numbers",),
        )
