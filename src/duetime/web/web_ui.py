"""The Web UI of a service process, put together."""

from collections.abc import Callable

from msgspec import Struct
from starlette.types import Receive, Scope, Send

from duetime.api.app import Services
from duetime.api.http.auditing import Auditing
from duetime.api.http.auth import Authentication
from duetime.api.http.caller import Caller
from duetime.api.http.lifecycle import Lifecycle
from duetime.domain.security.access import Access
from duetime.ports.clock import Clock
from duetime.service.reporting.reports import Reports
from duetime.service.trying.inbox import Inbox
from duetime.service.trying.trial_creates import TrialCreates
from duetime.web.app import WebApp
from duetime.web.endpoint import WebEndpoint
from duetime.web.errors import NoSuchPage
from duetime.web.live.hub import Blocks, Hub
from duetime.web.live.stream import Stream
from duetime.web.pages.admin.endpoints import admin_endpoints
from duetime.web.pages.bus import BusPage
from duetime.web.pages.cluster import ClusterPage
from duetime.web.pages.creating.create import CreatePage
from duetime.web.pages.creating.receiver import ReceiverPage
from duetime.web.pages.endpoints import EndpointsPage
from duetime.web.pages.operations.new_operation import NewOperationPage
from duetime.web.pages.operations.operations_page import OperationsPage
from duetime.web.pages.overview import OverviewPage
from duetime.web.pages.timer.timer_page import TimerPage
from duetime.web.pages.timers.export import Exports
from duetime.web.pages.timers.timers_page import TimersPage
from duetime.web.rendering.environment import compile_templates
from duetime.web.rendering.renderer import Renderer
from duetime.web.rendering.view import View
from duetime.web.request import Fields, Request
from duetime.web.sessions.admission import SessionAdmission
from duetime.web.sessions.sign_in import SignInPage


class WebParts(Struct, frozen=True, kw_only=True):
    """The parts of the service that the pages use. Reports are those of this process. `worked`
    counts the seconds for which the thread of the event loop has worked."""

    services: Services
    authentication: Authentication
    auditing: Auditing
    lifecycle: Lifecycle
    clock: Clock
    worked: Callable[[], float]
    reports: Reports
    trials: TrialCreates
    inbox: Inbox
    max_body_bytes: int
    callback_timeout_ms: int


class WebUi:
    """An ASGI application for everything below `/ui`, and the loop that keeps open pages live."""

    def __init__(self, parts: WebParts) -> None:
        compile_templates()
        self._clock = parts.clock
        self._renderer = Renderer(parts.services.v1.turns)
        self._hub = Hub(parts.clock, self._render_live, parts.worked)
        sessions = parts.services.sessions
        admission = SessionAdmission(sessions, parts.authentication, parts.lifecycle)
        endpoints = (
            *SignInPage(sessions, parts.authentication, admission).endpoints(),
            *_pages(parts),
            *Stream(self._hub, parts.clock, self._is_live).endpoints(),
        )
        self.operations = tuple(each.operation for each in endpoints)
        self._app = WebApp(
            endpoints,
            admission,
            parts.auditing,
            parts.lifecycle,
            parts.clock,
            self._renderer,
            max_body_bytes=parts.max_body_bytes,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def start(self) -> None:
        self._hub.start()

    def drain(self) -> None:
        """End the event streams: their tabs connect again, to another process if there is one."""
        self._hub.close()

    async def stop(self) -> None:
        await self._hub.abandon()

    def _is_live(self, target: str) -> bool:
        return self._app.find_live(target) is not None

    async def _render_live(self, target: str, access: Access) -> Blocks:
        """The live blocks of a page, as callers with this access see it."""
        found = self._app.find_live(target)
        if found is None:
            raise NoSuchPage
        endpoint, scope = found
        caller = Caller(access)
        caller.check_role(endpoint.operation.needed_role)
        if endpoint.operation.for_all_namespaces:
            caller.check_everywhere()
        request = Request(
            caller=caller,
            target=target,
            path=scope.get("path_params", {}),
            query=Fields.read(scope["query_string"], "query"),
            now=self._clock.now(),
        )
        view = await endpoint.handle(request)
        return await self._renderer.live_blocks(view, request) if isinstance(view, View) else {}


def _pages(parts: WebParts) -> tuple[WebEndpoint, ...]:
    """The endpoints of all pages. A path that takes slashes comes after those that it covers."""
    services, reports = parts.services, parts.reports
    searching, turns = services.searching, services.v1.turns
    exports = Exports(searching, turns, parts.callback_timeout_ms)
    return (
        *OverviewPage(services.namespaces, reports).endpoints(),
        *ClusterPage(reports.cluster).endpoints(),
        *BusPage(reports).endpoints(),
        *EndpointsPage(services.endpoints, reports.cluster).endpoints(),
        *NewOperationPage(
            services.operations, services.chosen, services.namespaces, parts.auditing
        ).endpoints(),
        *OperationsPage(services.operations).endpoints(),
        *TimersPage(searching, exports, services.namespaces, turns).endpoints(),
        *TimerPage(services).endpoints(),
        *CreatePage(services, parts.trials, parts.clock).endpoints(),
        *ReceiverPage(services, parts.inbox).endpoints(),
        *admin_endpoints(services, reports),
    )
