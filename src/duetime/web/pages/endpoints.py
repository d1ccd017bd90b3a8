"""The endpoints page: whom this node calls, how they answer, and their pauses."""

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from msgspec import Struct

from duetime.domain.errors import EndpointNotPaused, InvalidInput, TooManyPauses
from duetime.domain.limits import MAX_FILTER_CHARACTERS, MAX_PAUSE_REASON_CHARACTERS
from duetime.domain.security.access import Role
from duetime.ports.endpoints import EndpointState, EndpointStatus
from duetime.service.endpoints.endpoints import Endpoints
from duetime.service.reporting.cluster_report import ClusterReport
from duetime.web.charts.drawing import Drawing, element
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Request

PATH = "/ui/endpoints"

SHOWN_ENDPOINTS = 200
"""Endpoints on the page, the troubled ones first; a search finds the others."""

_BAR_WIDTH = 48
_BAR_HEIGHT = 6


class _Form(Struct, frozen=True, kw_only=True):
    """The dialog that asks for a pause, as it was filled in, and why it was refused."""

    is_open: bool = False
    endpoint: str = ""
    reason: str = ""
    error: InvalidInput | TooManyPauses | None = None

    def error_of(self, field: str) -> str | None:
        error = self.error
        if error is None:
            return None
        if isinstance(error, InvalidInput):
            words = error.problem if error.field == field else ""
        else:
            words = error.message if field == "endpoint" else ""
        return f"{words[:1].upper()}{words[1:]}." if words else None


class ShownEndpoint(Struct, frozen=True, kw_only=True):
    """A row of the table. `kind` is `paused`, `open`, `failing` or `working`."""

    status: EndpointStatus
    kind: str
    waiting: int
    """On this node and, behind a pause, on the others."""
    error_bar: Drawing | None
    timers: str | None
    """Query of the page of timers for this endpoint; None for an endpoint without a URL."""

    @property
    def error_rate(self) -> float | None:
        figures = self.status.figures
        return None if figures is None else figures.failures / figures.attempts


class EndpointsPage:
    def __init__(self, endpoints: Endpoints, cluster: Callable[[], ClusterReport]) -> None:
        self._endpoints = endpoints
        self._cluster = cluster

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiEndpoints", PATH, self.show, for_all_namespaces=True, may_be_live=True),
            action(
                "uiPauseEndpoint",
                f"{PATH}/pause",
                self.pause,
                audit="endpoint.pause",
                role=Role.ADMIN,
                for_all_namespaces=True,
            ),
            action(
                "uiResumeEndpoint",
                f"{PATH}/resume",
                self.resume,
                audit="endpoint.resume",
                role=Role.ADMIN,
                for_all_namespaces=True,
            ),
        )

    async def show(self, request: Request) -> View:
        asked = request.query.get("pause")
        return await self._view(request, _Form(is_open=asked is not None, endpoint=asked or ""))

    async def pause(self, request: Request) -> View | Redirect:
        given = request.form
        endpoint, reason = given.text("endpoint"), given.text("reason")
        request.caller.target = endpoint
        try:
            pause = await self._endpoints.pause(endpoint, reason, request.access)
        except (InvalidInput, TooManyPauses) as error:
            form = _Form(is_open=True, endpoint=endpoint, reason=reason, error=error)
            return await self._view(request, form)
        request.caller.target = pause.endpoint
        return Redirect(PATH, f"{pause.endpoint} is paused. Its timers wait until it is resumed.")

    async def resume(self, request: Request) -> View | Redirect:
        endpoint = request.form.needed("endpoint")
        request.caller.target = endpoint
        try:
            name = await self._endpoints.resume(endpoint)
        except EndpointNotPaused as error:
            # Somebody was faster, in a tab or on the command line.
            return await self._view(request, _Form(), error)
        request.caller.target = name
        return Redirect(PATH, f"{name} is resumed. Timers that waited for it go out now.")

    async def _view(
        self, request: Request, form: _Form, refusal: EndpointNotPaused | None = None
    ) -> View:
        wanted = (request.query.get("find") or "")[:MAX_FILTER_CHARACTERS]
        seen = await self._endpoints.look_at_few(SHOWN_ENDPOINTS, wanted.lower())
        cluster = self._cluster()
        elsewhere = cluster.put_off_elsewhere
        return View(
            template="pages/endpoints.html",
            title="Endpoints",
            values={
                "rows": [_shown(each, elsewhere) for each in seen.endpoints],
                "more": seen.more,
                "known": len(seen.endpoints) + seen.more,
                "paused": self._endpoints.paused,
                "node": seen.node,
                "members": len(cluster.members) if cluster.is_shared else 1,
                "find": wanted,
                "form": form,
                "trouble": None if refusal is None else refusal.message,
                "max_reason": MAX_PAUSE_REASON_CHARACTERS,
                "max_endpoint": MAX_FILTER_CHARACTERS,
            },
            live=("rows", "summary"),
            refusal=form.error or refusal,
        )


def _shown(status: EndpointStatus, put_off_elsewhere: Mapping[str, int]) -> ShownEndpoint:
    is_url = status.endpoint.startswith(("http://", "https://"))
    return ShownEndpoint(
        status=status,
        kind=_kind_of(status),
        waiting=status.waiting + put_off_elsewhere.get(status.endpoint, 0),
        error_bar=_error_bar(status),
        timers=urlencode({"endpoint": status.endpoint}) if is_url else None,
    )


def _kind_of(status: EndpointStatus) -> str:
    if status.pause is not None:
        return "paused"
    if status.state is not EndpointState.CLOSED:
        return "open"
    return "failing" if status.consecutive_failures else "working"


def _error_bar(status: EndpointStatus) -> Drawing | None:
    """The share of failures, as a bar beside its number."""
    figures = status.figures
    if figures is None:
        return None
    share = figures.failures / figures.attempts
    size = {"width": _BAR_WIDTH, "height": _BAR_HEIGHT}
    filled = element("rect", kind="failed", rx=3, **(size | {"width": _BAR_WIDTH * share}))
    whole = element("rect", kind="whole", rx=3, **size)
    pieces = (whole, filled) if figures.failures else (whole,)
    return Drawing(element("svg", *pieces, kind="share", aria_hidden="true", **size))
