"""`duetime cluster --watch`: the cluster, refreshed every second."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from rich.live import Live
from rich.text import Text

from duetime.cli.output.cluster_views import ClusterTables, cluster_tables, print_cluster
from duetime.cli.output.layout import table_lines
from duetime.cli.terminal import console, printable
from duetime.clock import SystemClock
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant, format_instant
from duetime.domain.wording import span
from duetime.event_loop import stop_signal
from duetime.ports.inspection import StoreInspector
from duetime.ports.membership import BEAT_SHARE, TAKE_OVER_SHARE, Member
from duetime.settings import Settings

LOOK_SECONDS = 1.0
"""Time between two reads."""

SILENT_SHARE = 3 * BEAT_SHARE
"""Share of the lease time without a beat after which a member is shown as silent. It is shown as
dead when others take over."""


async def watch_cluster(settings: Settings, inspector: StoreInspector) -> None:
    """Show the cluster until a signal ends the command. Raises `StoreUnavailable` if the store
    cannot be reached at first; a later outage is shown on the screen, and the read is retried."""
    stopped = stop_signal()
    watch = ClusterWatch(settings, inspector)
    try:
        tables = await watch.look()
        if console().is_terminal:
            await _show_on_terminal(watch, tables, stopped)
        else:
            while not stopped.is_set():
                print_cluster(tables)
                print(flush=True)
                await _pause(stopped)
                tables = await watch.look()
    finally:
        await watch.close()


class BeatWatch:
    """The time since each member's beat last changed, by the observer's monotonic clock."""

    def __init__(self) -> None:
        self._last_moved: dict[str, tuple[int, float]] = {}

    def look(self, members: Sequence[Member], now_seconds: float) -> None:
        """Compare with the view before. A member's first appearance counts as a change."""
        seen = self._last_moved
        self._last_moved = {}
        for member in members:
            beat, moved_seconds = seen.get(member.node, (None, now_seconds))
            if beat != member.beat:
                moved_seconds = now_seconds
            self._last_moved[member.node] = member.beat, moved_seconds

    def still_seconds(self, node: str, now_seconds: float) -> float:
        return now_seconds - self._last_moved[node][1]

    def forgive(self) -> None:
        """Start over: no change could be seen while the store could not be reached."""
        self._last_moved.clear()


class ClusterWatch:
    """Reads the cluster, and compares it with the read before."""

    def __init__(self, settings: Settings, inspector: StoreInspector) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._beats = BeatWatch()
        self._inspector = inspector
        self._is_open = False

    async def look(self) -> ClusterTables:
        """Read the cluster. Raises `StoreUnavailable`; the next call then reconnects."""
        try:
            if not self._is_open:
                await self._inspector.open()
                self._is_open = True
            facts = await self._inspector.cluster()
        except StoreUnavailable:
            self._beats.forgive()
            await self.close()
            raise
        self._beats.look(facts.view.members, self._clock.monotonic())
        return cluster_tables(
            facts,
            facts.view.store_now or self._clock.now(),
            skew_limit_ms=self._settings.clock_skew_limit_ms,
            beat_text=self._beat_text,
        )

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            await self._inspector.close()

    def _beat_text(self, member: Member) -> Text:
        still_seconds = self._beats.still_seconds(member.node, self._clock.monotonic())
        return beat_text(member.beat, still_seconds, self._settings.lease_seconds)


def beat_text(beat: int, still_seconds: float, lease_seconds: float) -> Text:
    """The beat, and whether the member is alive or how long its beat has not changed."""
    if still_seconds < lease_seconds * SILENT_SHARE:
        return Text(f"{beat} alive", style="green")
    style = "yellow" if still_seconds < lease_seconds * TAKE_OVER_SHARE else "red"
    return Text(f"{beat} still for {span(still_seconds * 1_000)}", style=style)


async def _show_on_terminal(
    watch: ClusterWatch, tables: ClusterTables, stopped: asyncio.Event
) -> None:
    output = console()
    looked_at, error = SystemClock().now(), ""
    with Live(console=output, auto_refresh=False, screen=True) as live:
        while not stopped.is_set():
            live.update(screen(tables, output.width, looked_at, error), refresh=True)
            await _pause(stopped)
            try:
                tables = await watch.look()
                looked_at, error = SystemClock().now(), ""
            except StoreUnavailable as unavailable:
                error = unavailable.message


def screen(tables: ClusterTables, width: int, looked_at: Instant, error: str) -> Text:
    """All lines of the screen. Long lines are cut, because wrapping would shift the others."""
    lines = [
        Text.assemble(
            tables.summary, "  ", (f"at {format_instant(looked_at)}, Ctrl-C ends", "dim")
        ),
        Text(printable(error), style="red"),
        *table_lines(tables.members.headings, tables.members.rows, width),
        Text(),
        *table_lines(tables.shards.headings, tables.shards.rows, width),
    ]
    for line in lines:
        line.truncate(width)
    return Text("\n", no_wrap=True).join(lines)


async def _pause(stopped: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            await stopped.wait()
