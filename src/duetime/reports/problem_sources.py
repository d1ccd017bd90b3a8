"""The sources of problems: each looks at one part of the process."""

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.background import BackgroundLoop
from duetime.bus.bus_router import BusRouter
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.engine import Engine
from duetime.ports.clock import Clock
from duetime.ports.endpoints import HeldTimers
from duetime.ports.store import TimerStore
from duetime.reports.cluster import report_on_cluster
from duetime.service.reporting import findings
from duetime.service.reporting.census import Census
from duetime.service.reporting.failed_lately import FailedLately
from duetime.service.reporting.objectives import Objectives
from duetime.service.reporting.problems import Finding, Source
from duetime.store_adapters import disk_of

if TYPE_CHECKING:
    from duetime.nats.connection import NatsConnection

PING_SECONDS = 5.0
"""Time between two questions to the store."""

PING_TIMEOUT_SECONDS = 5.0

SILENT_SECONDS = 5.0
SILENT_BEATS = 4
"""Bounds of the time without a beat after which a member counts as silent."""

MOST_ENDPOINTS = 100
"""Endpoints in trouble that are looked at."""

LOST_SHOWN_SECONDS = 900
"""Time for which a member that is gone is shown."""


class StorePing(BackgroundLoop):
    """Asks the store a simple question now and then, and remembers how long the answer took."""

    name = "store-ping"

    def __init__(self, store: TimerStore, clock: Clock) -> None:
        super().__init__(clock)
        self._store = store
        self._asking: asyncio.Task[None] | None = None
        self.is_away = False
        self.answer_seconds: float | None = None

    async def step(self) -> None:
        began_seconds = self._clock.monotonic()
        # A question without an answer stays open: others would only queue behind it.
        if self._asking is None:
            self._asking = asyncio.create_task(self._store.ping())
        await asyncio.wait({self._asking}, timeout=PING_TIMEOUT_SECONDS)
        self.is_away, self.answer_seconds = True, None
        if self._asking.done():
            asked, self._asking = self._asking, None
            with suppress(StoreUnavailable):
                asked.result()
                self.is_away = False
                self.answer_seconds = self._clock.monotonic() - began_seconds
        await self.wait(PING_SECONDS)

    async def abandon(self) -> None:
        await super().abandon()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})


class MemberLosses:
    """Members that fell silent, and those that were believed dead, whichever node took them off
    the list.

    Silence is counted in beats of this node: while the store is away, nobody's beats are seen.
    """

    def __init__(self, engine: Engine, clock: Clock, beat_seconds: float) -> None:
        self._engine = engine
        self._clock = clock
        self._beat_seconds = beat_seconds
        self._silent_beats = max(SILENT_BEATS, math.ceil(SILENT_SECONDS / beat_seconds))
        self._stood_since: dict[str, tuple[int, int]] = {}
        """By node: its beat, and the beat of this node at which it was first seen."""

    def look(self) -> Iterable[Finding]:
        members = self._engine.view.members
        own_beat = next((each.beat for each in members if each.node == self._engine.node), 0)
        stood, self._stood_since = self._stood_since, {}
        lost = {each.node: each.at for each in self._engine.lost_members}
        for member in members:
            lost.update((each.node, each.at) for each in member.facts.lost)
            beat, since = stood.get(member.node, (member.beat, own_beat))
            if beat != member.beat or since > own_beat:
                since = own_beat
            self._stood_since[member.node] = member.beat, since
            if own_beat - since >= self._silent_beats and member.node != self._engine.node:
                yield findings.silent_member(member.node, (own_beat - since) * self._beat_seconds)
        now = self._clock.now()
        for node, at in lost.items():
            if now - at <= LOST_SHOWN_SECONDS * MICROSECONDS_PER_SECOND:
                yield findings.lost_member(node, at)


class ProblemSources:
    """All sources of one process."""

    def __init__(
        self,
        engine: Engine,
        store: TimerStore,
        clock: Clock,
        census: Census,
        objectives: Objectives,
        router: BusRouter | None,
        nats: "NatsConnection | None",
        *,
        clock_skew_limit_ms: float,
        beat_seconds: float,
    ) -> None:
        self._engine = engine
        self._store = store
        self._clock = clock
        self._census = census
        self._objectives = objectives
        self._router = router
        self._nats = nats
        self._clock_skew_limit_ms = clock_skew_limit_ms
        self._failed = FailedLately()
        self._losses = MemberLosses(engine, clock, beat_seconds)
        self.ping = StorePing(store, clock)

    def all(self) -> list[Source]:
        return [
            self._of_store,
            self._of_disk,
            self._of_cluster,
            self._losses.look,
            self._of_endpoints,
            self._of_timers,
            self._of_objectives,
            self._of_brokers,
        ]

    def _of_store(self) -> Iterable[Finding]:
        return findings.of_store(
            is_away=self.ping.is_away,
            answer_seconds=self.ping.answer_seconds,
            is_running=self._engine.is_running,
        )

    def _of_disk(self) -> Iterable[Finding]:
        disk = disk_of(self._store)
        if disk is None:
            return []
        return findings.of_disk(
            free_bytes=disk.free_bytes,
            reserve_bytes=disk.reserve_bytes,
            is_short=disk.is_short,
            is_full=disk.is_full,
        )

    def _of_cluster(self) -> Iterable[Finding]:
        report = report_on_cluster(self._engine)
        yield from findings.of_clocks(report, self._clock_skew_limit_ms)
        yield from findings.of_shards(report)

    def _of_endpoints(self) -> Iterable[Finding]:
        held: list[HeldTimers] = self._engine.held()
        for member in self._engine.view.members:
            if member.node != self._engine.node:
                held += member.facts.held
        troubled = self._engine.troubled_endpoints(MOST_ENDPOINTS)
        yield from findings.behind_breakers(held, troubled)
        cluster = report_on_cluster(self._engine)
        yield from findings.of_pauses(
            troubled, cluster.put_off_elsewhere, are_all=cluster.tells_all_put_off
        )

    def _of_timers(self) -> Iterable[Finding]:
        overdue, kept = self._census.overdue_long, self._census.kept
        if overdue is not None:
            yield from findings.overdue_timers(overdue.overdue, are_all=overdue.are_all)
        if kept is not None:
            self._failed.see(self._clock.now(), kept.failed)
            yield from findings.failing_timers(self._failed.increase(kept.failed))

    def _of_objectives(self) -> Iterable[Finding]:
        return [
            findings.missed_objective(shown.labels[0], shown.text, shown.budget_left)
            for shown in self._objectives.shown()
            if shown.budget_left < 0
        ]

    def _of_brokers(self) -> Iterable[Finding]:
        if self._router is not None:
            yield from findings.of_bus(self._router.report(self._engine.node))
        if self._nats is not None:
            yield from findings.of_nats(
                self._nats.display_name, is_connected=self._nats.is_connected
            )
