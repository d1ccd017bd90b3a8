"""The first page: anything wrong, the timers by status and by instant, and how the service does."""

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant
from duetime.domain.timer import TimerStatus
from duetime.service.namespaces import Namespaces
from duetime.service.reporting.due_outlook import PATIENCE_SECONDS, Horizon, Outlook
from duetime.service.reporting.reports import Reports, StatusCounts
from duetime.web.charts.due_chart import DueChart, due_chart
from duetime.web.charts.recent_charts import RecentCharts, recent_charts
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.pages.namespace_names import names_to_choose
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Request

KEPT_CHARTS = 30
"""Charts of timers that fall due that are kept, for different callers."""

SHOWN_ENDPOINTS = 6
LOOKED_AT_ENDPOINTS = 50
SHOWN_MEMBERS = 12
SHOWN_PROBLEMS = 12

FEW_TIMERS = 10
"""Timers below which somebody is new here. `make run` makes one."""


class OverviewPage:
    """Figures of the whole service are for keys that see all namespaces; others see their own
    timers and the problems that concern them."""

    def __init__(self, namespaces: Namespaces, reports: Reports) -> None:
        self._namespaces = namespaces
        self._reports = reports
        self._due: dict[tuple[Horizon, frozenset[str] | None], tuple[Outlook, DueChart]] = {}
        self._recent: tuple[Instant, int, RecentCharts] | None = None

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (page("uiOverview", "/ui", self.show, any_role=True, may_be_live=True),)

    async def show(self, request: Request) -> View | Redirect:
        if not request.may_read:
            # Here everybody begins, also who may only create timers.
            return Redirect("/ui/create")
        horizon, chosen = _horizon_of(request), await self._chosen(request)
        seen = request.access.namespaces if chosen is None else frozenset({chosen})
        # Whoever opens the page waits a moment for its numbers; an open page gets them anyway.
        patience_seconds = PATIENCE_SECONDS if request.csrf else 0.0
        counts = await self._reports.counts.of(seen, patience_seconds=patience_seconds)
        outlook = await self._reports.outlook.of(horizon, seen, patience_seconds=patience_seconds)
        problems = self._reports.problems.problems(request.access)
        values: dict[str, object] = {
            "problems": problems[:SHOWN_PROBLEMS],
            "more_problems": max(len(problems) - SHOWN_PROBLEMS, 0),
            "counts": counts,
            "statuses": list(TimerStatus),
            "horizon": horizon,
            "horizons": list(Horizon),
            "due": None if outlook is None else self._due_chart(outlook, seen),
            "chosen": chosen,
            "names": names_to_choose(self._namespaces, request.access),
            "few": _few(counts) if chosen is None else None,
            "sees_service": request.sees_everything and chosen is None,
            "waiting": 0,
        }
        if values["sees_service"]:
            values |= self._of_service()
        return View(
            template="pages/overview.html",
            title="Overview",
            values=values,
            live=("problems", "numbers", "due", "recent", "service"),
        )

    def _of_service(self) -> dict[str, object]:
        cluster, seen = self._reports.cluster(), self._reports.troubled(LOOKED_AT_ENDPOINTS)
        failing = seen.endpoints
        return {
            "recent": self._recent_charts(),
            "cluster": cluster,
            "waiting": cluster.waiting,
            "members": cluster.members[:SHOWN_MEMBERS],
            "bus": self._reports.bus(),
            "nats": self._reports.nats(),
            "node": seen.node,
            "failing": failing[:SHOWN_ENDPOINTS],
            "more_failing": max(len(failing) - SHOWN_ENDPOINTS, 0),
        }

    def _due_chart(self, outlook: Outlook, seen: frozenset[str] | None) -> DueChart:
        """Drawn once for all who look, until the timers are counted again."""
        key = outlook.horizon, seen
        known, chart = self._due.pop(key, (None, None))
        if known is not outlook or chart is None:
            chart = due_chart(outlook)
        self._due[key] = outlook, chart
        if len(self._due) > KEPT_CHARTS:
            del self._due[next(iter(self._due))]
        return chart

    def _recent_charts(self) -> RecentCharts:
        """Drawn once for all who look, until there is a new slot."""
        slots = self._reports.recent.slots()
        newest, told = slots[-1].began_at, slots[-1].members
        if self._recent is None or self._recent[:2] != (newest, told):
            self._recent = newest, told, recent_charts(slots)
        return self._recent[2]

    async def _chosen(self, request: Request) -> str | None:
        name = request.query.get("namespace")
        if name is None:
            return None
        return (await self._namespaces.named(request.caller.reach(name))).name


def _few(counts: StatusCounts | None) -> int | None:
    """The number of timers if there are only a few, as for somebody who is new here."""
    total = None if counts is None else counts.total
    return None if total is None or total >= FEW_TIMERS else total


def _horizon_of(request: Request) -> Horizon:
    given = request.query.get("due")
    try:
        return Horizon(given or Horizon.HOUR.value)
    except ValueError:
        choices = ", ".join(each.value for each in Horizon)
        raise InvalidInput("due", f"must be one of {choices}") from None
