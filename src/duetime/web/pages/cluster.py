"""The cluster page: the members, and the shards that each of them owns."""

from collections.abc import Callable, Sequence
from itertools import groupby

from duetime.service.reporting.cluster_report import ClusterReport
from duetime.web.charts.drawing import Drawing
from duetime.web.charts.shard_grid import colour_of, shard_grid
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.rendering.view import View
from duetime.web.request import Request

SHOWN_LEASES = 50
SHOWN_RANGES = 20
"""Ranges of shards that are named, of those that a member owns or that nobody does."""


class ClusterPage:
    def __init__(self, report: Callable[[], ClusterReport]) -> None:
        self._report = report
        self._last: tuple[tuple[object, ...], Drawing, dict[int | None, str]] | None = None

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiCluster", "/ui/cluster", self.show, for_all_namespaces=True, may_be_live=True),
        )

    async def show(self, request: Request) -> View:
        report = self._report()
        grid, named = self._drawn(report)
        return View(
            template="pages/cluster.html",
            title="Cluster",
            values={
                "cluster": report,
                "grid": grid,
                "members": [
                    (member, colour_of(place), named.get(place, ""))
                    for place, member in enumerate(report.members)
                ],
                "orphans": named.get(None, ""),
                "leases": report.unfinished[:SHOWN_LEASES],
            },
            live=("members", "shards", "leases"),
        )

    def _drawn(self, report: ClusterReport) -> tuple[Drawing, dict[int | None, str]]:
        """The picture, and the shards of each owner in words: made again when a shard has moved."""
        key = (*(member.node for member in report.members), *report.owners)
        if self._last is None or self._last[0] != key:
            self._last = key, _grid_of(report), _ranges(report.owners)
        return self._last[1:]


def _grid_of(report: ClusterReport) -> Drawing:
    shares = ", ".join(
        f"{member.facts.host or member.node} owns {member.shards}" for member in report.members[:20]
    )
    return shard_grid(
        report.owners,
        label=f"{len(report.owners)} shards by owner",
        description=f"{shares}; {len(report.without_owner)} without an owner",
    )


def _ranges(owners: Sequence[int | None]) -> dict[int | None, str]:
    """The numbers of each owner's shards, as ranges: "0-7, 12"."""
    ranges: dict[int | None, list[str]] = {}
    first = 0
    for owner, run in groupby(owners):
        last = first + len(list(run)) - 1
        words = f"{first}" if first == last else f"{first}\N{EN DASH}{last}"
        ranges.setdefault(owner, []).append(words)
        first = last + 1
    return {owner: _listed(words) for owner, words in ranges.items()}


def _listed(words: Sequence[str]) -> str:
    more = len(words) - SHOWN_RANGES
    return ", ".join(words[:SHOWN_RANGES]) + (f" and {more} more ranges" if more > 0 else "")
