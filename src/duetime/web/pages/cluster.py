"""The cluster page: the members, and the shards that each of them owns."""

from collections.abc import Callable

from duetime.service.reporting.cluster_report import ClusterReport
from duetime.web.charts.drawing import Drawing
from duetime.web.charts.shard_grid import colour_of, shard_grid
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.rendering.view import View
from duetime.web.request import Request

SHOWN_LEASES = 50
SHOWN_SHARDS = 20
"""Shards that are named, of those that a member owns or that nobody does."""


class ClusterPage:
    def __init__(self, report: Callable[[], ClusterReport]) -> None:
        self._report = report

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (page("uiCluster", "/ui/cluster", self.show, for_all_namespaces=True),)

    async def show(self, request: Request) -> View:
        report = self._report()
        return View(
            template="pages/cluster.html",
            title="Cluster",
            values={
                "cluster": report,
                "grid": _grid_of(report),
                "members": [
                    (member, colour_of(place), _named(report, place))
                    for place, member in enumerate(report.members)
                ],
                "orphans": _named(report, None),
                "leases": report.unfinished[:SHOWN_LEASES],
            },
            live=("members", "shards", "leases"),
        )


def _grid_of(report: ClusterReport) -> Drawing:
    shares = ", ".join(
        f"{member.facts.host or member.node} owns {member.shards}" for member in report.members[:20]
    )
    return shard_grid(
        report.owners,
        label=f"{len(report.owners)} shards by owner",
        description=f"{shares}; {len(report.without_owner)} without an owner",
    )


def _named(report: ClusterReport, owner: int | None) -> str:
    """The numbers of the owner's shards, as ranges: "0-7, 12"."""
    ranges: list[list[int]] = []
    for shard, its_owner in enumerate(report.owners):
        if its_owner != owner:
            continue
        if ranges and ranges[-1][1] == shard - 1:
            ranges[-1][1] = shard
        else:
            ranges.append([shard, shard])
    words = [f"{a}" if a == b else f"{a}\N{EN DASH}{b}" for a, b in ranges[:SHOWN_SHARDS]]
    more = len(ranges) - SHOWN_SHARDS
    return ", ".join(words) + (f" and {more} more ranges" if more > 0 else "")
