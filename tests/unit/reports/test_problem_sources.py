"""The sources of problems, against a store and members that misbehave."""

import asyncio
from typing import Any, cast

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import plus_ms
from duetime.engine import Engine
from duetime.ports.membership import ClusterView, LostMember, Member, NodeFacts
from duetime.reports.problem_sources import (
    LOST_SHOWN_SECONDS,
    PING_SECONDS,
    PING_TIMEOUT_SECONDS,
    MemberLosses,
    StorePing,
)
from duetime.testing import LoopClock, on_virtual_time

BEAT_SECONDS = 1.0


class PingedStore:
    def __init__(self) -> None:
        self.asked = 0
        self.is_away = False
        self.answers = asyncio.Event()
        self.answers.set()

    async def ping(self) -> None:
        self.asked += 1
        await self.answers.wait()
        if self.is_away:
            raise StoreUnavailable("away")


def is_answered(ping: StorePing) -> bool:
    assert ping.is_away is (ping.answer_seconds is None)
    return not ping.is_away


@on_virtual_time
async def test_a_store_that_hangs_is_away_and_is_asked_once() -> None:
    clock, store = LoopClock(), PingedStore()
    ping = StorePing(cast(Any, store), clock)
    ping.start()
    await clock.sleep(1)
    assert is_answered(ping)
    store.answers.clear()
    await clock.sleep(PING_SECONDS + PING_TIMEOUT_SECONDS + 1)
    assert not is_answered(ping)
    await clock.sleep(60)
    assert store.asked == 2
    store.answers.set()
    await clock.sleep(PING_SECONDS + PING_TIMEOUT_SECONDS + 1)
    assert is_answered(ping)
    await ping.abandon()


@on_virtual_time
async def test_a_store_that_refuses_is_away() -> None:
    clock, store = LoopClock(), PingedStore()
    store.is_away = True
    ping = StorePing(cast(Any, store), clock)
    ping.start()
    await clock.sleep(1)
    assert ping.is_away
    await ping.abandon()


class Cluster:
    """An engine as far as its view of the members goes; `me` sees it."""

    node = "me"

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.beats = {"me": 0, "other": 0}
        self.lost: dict[str, tuple[LostMember, ...]] = {}
        self.lost_members: list[LostMember] = []
        self._losses = MemberLosses(cast(Engine, self), self.clock, BEAT_SECONDS)

    @property
    def view(self) -> ClusterView:
        return ClusterView(
            [
                Member(node, beat, NodeFacts(lost=self.lost.get(node, ())))
                for node, beat in self.beats.items()
            ],
            [],
        )

    def found(self) -> list[tuple[str, str]]:
        return [(each.kind, each.subject) for each in self._losses.look()]

    def beat(self, *nodes: str, times: int = 1) -> list[tuple[str, str]]:
        found = self.found()
        for _ in range(times):
            for node in nodes:
                self.beats[node] += 1
            found = self.found()
        return found


@on_virtual_time
async def test_a_member_whose_beats_stand_still_is_silent() -> None:
    cluster = Cluster()
    assert cluster.beat("me", "other", times=20) == []
    assert cluster.beat("me", times=3) == []
    assert cluster.beat("me", times=10) == [("member_silent", "other")]
    assert cluster.beat("me", "other") == []


@on_virtual_time
async def test_nobody_is_silent_while_the_store_is_away() -> None:
    cluster = Cluster()
    cluster.beat("me", "other", times=20)
    for _ in range(50):
        assert cluster.found() == []


@on_virtual_time
async def test_a_member_that_leaves_is_no_problem_and_one_believed_dead_is() -> None:
    cluster = Cluster()
    cluster.beat("me", "other", times=3)
    del cluster.beats["other"]
    assert cluster.beat("me", times=3) == []
    cluster.beats["third"] = 1
    cluster.lost["third"] = (LostMember("other", cluster.clock.now()),)
    assert cluster.beat("me", "third") == [("member_lost", "other")]
    long_ago = plus_ms(cluster.clock.now(), -(LOST_SHOWN_SECONDS + 1) * 1_000)
    cluster.lost["third"] = (LostMember("other", long_ago),)
    assert cluster.beat("me", "third") == []
