"""Numbers of timers by namespace, as a scrape shows them."""

from itertools import pairwise

import pytest

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.ports.clock import Clock
from duetime.ports.inspection import LiveCounts, NamespaceCounts
from duetime.service.reporting.census import LONGEST_PAUSE_SECONDS, READ_SECONDS, Census
from duetime.telemetry.metrics.exposition import Format
from duetime.telemetry.metrics.registry import Registry
from duetime.testing import LoopClock, on_virtual_time


class CountedStore:
    """Answers with its attributes, each after `took_seconds`, and records when it was asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.kept: NamespaceCounts | None = NamespaceCounts({"a": 3, "b": 0}, {"a": 1})
        self.live: LiveCounts | None = LiveCounts({"a": 2}, {"c": 4}, are_all=True)
        self.took_seconds = 0.0
        self.is_away = False
        self.asked_at_seconds: list[float] = []

    async def count_by_namespace(self, *, most_names: int) -> NamespaceCounts | None:
        self.asked_at_seconds.append(self._clock.monotonic())
        await self._answer()
        return self.kept

    async def count_live(self, now: Instant, *, most: int) -> LiveCounts | None:
        await self._answer()
        return self.live

    async def _answer(self) -> None:
        if self.took_seconds:
            await self._clock.sleep(self.took_seconds)
        if self.is_away:
            raise StoreUnavailable("away")


class Watched:
    """A census with its store, and the lines that a scrape shows."""

    def __init__(self, limit: int = 100) -> None:
        self.clock = LoopClock()
        self.store = CountedStore(self.clock)
        self.census = Census(self.store, self.clock, most_names=limit)
        self._registry = Registry()
        self._registry.add(self.census.recorders())

    def shown(self, name: str) -> dict[str, float]:
        lines = self._registry.render(Format.PROMETHEUS).splitlines()
        samples = [line.rpartition(" ") for line in lines if line.startswith(f"duetime_{name}")]
        return {sample.partition("{")[2].rstrip("}"): float(value) for sample, _, value in samples}


@on_virtual_time
async def test_every_namespace_has_all_numbers() -> None:
    watched = Watched()
    assert watched.shown("timers{") == {}

    watched.census.start()
    await watched.clock.sleep(1)

    assert watched.shown("timers{") == {
        'namespace="a",status="pending"': 3,
        'namespace="b",status="pending"': 0,
        'namespace="a",status="failed"': 1,
        'namespace="b",status="failed"': 0,
        'namespace="a",status="executing"': 2,
        'namespace="b",status="executing"': 0,
    }
    assert watched.shown("timers_overdue{") == {
        'namespace="a"': 0,
        'namespace="b"': 0,
        'namespace="c"': 4,
    }
    assert watched.shown("timers_counts_capped") == {"": 0}
    await watched.census.abandon()


@on_virtual_time
async def test_numbers_and_their_age_stay_while_the_store_is_away() -> None:
    watched = Watched()
    read_at = watched.clock.now() / MICROSECONDS_PER_SECOND
    watched.census.start()
    await watched.clock.sleep(1)
    before = watched.shown("timers{")

    watched.store.is_away = True
    watched.store.kept = NamespaceCounts({"a": 9}, {})
    await watched.clock.sleep(60)
    assert watched.shown("timers{") == before
    assert watched.shown("timers_counted_timestamp_seconds") == {"": read_at}

    watched.store.is_away = False
    await watched.clock.sleep(60)
    assert watched.shown("timers{")['namespace="a",status="pending"'] == 9
    assert watched.shown("timers_counted_timestamp_seconds")[""] > read_at + 60
    await watched.census.abandon()


@on_virtual_time
async def test_numbers_and_their_age_stay_while_counting_takes_too_long() -> None:
    watched = Watched()
    read_at = watched.clock.now() / MICROSECONDS_PER_SECOND
    watched.census.start()
    await watched.clock.sleep(1)

    watched.store.live = None
    watched.store.kept = NamespaceCounts({"a": 9}, {})
    await watched.clock.sleep(60)
    assert watched.shown("timers{")['namespace="a",status="pending"'] == 9
    assert watched.shown("timers{")['namespace="a",status="executing"'] == 2
    assert watched.shown("timers_overdue{")['namespace="c"'] == 4
    assert watched.shown("timers_counted_timestamp_seconds") == {"": read_at}
    await watched.census.abandon()


@on_virtual_time
async def test_a_slow_store_is_asked_less_often() -> None:
    watched = Watched()
    watched.census.start()
    await watched.clock.sleep(0.5)
    watched.store.took_seconds = 0.2
    await watched.clock.sleep(60)
    watched.store.took_seconds = 30.0
    await watched.clock.sleep(300)
    await watched.census.abandon()

    asked = watched.store.asked_at_seconds
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses[0] == pytest.approx(READ_SECONDS)
    assert pauses[1] == pytest.approx(20.2)
    assert pauses[-1] == pytest.approx(30 + LONGEST_PAUSE_SECONDS)


@on_virtual_time
async def test_namespaces_beyond_the_limit_are_shown_together() -> None:
    watched = Watched(limit=1)
    watched.store.kept = NamespaceCounts({"a": 1, "b": 2, None: 4}, {})
    watched.store.live = LiveCounts({"a": 1, "b": 1, "c": 1}, {}, are_all=False)
    watched.census.start()
    await watched.clock.sleep(1)

    shown = watched.shown("timers{")
    assert shown['namespace="a",status="pending"'] == 1
    assert shown['namespace="other",status="pending"'] == 6
    assert shown['namespace="other",status="executing"'] == 2
    assert watched.shown("timers_counts_capped") == {"": 1}
    await watched.census.abandon()


@on_virtual_time
async def test_a_store_that_still_counts_shows_what_it_knows() -> None:
    watched = Watched()
    watched.store.kept = None
    watched.census.start()
    await watched.clock.sleep(1)

    assert watched.shown("timers{") == {'namespace="a",status="executing"': 2}
    await watched.census.abandon()


@on_virtual_time
async def test_a_namespace_that_is_gone_leaves_its_place_to_others() -> None:
    watched = Watched(limit=2)
    watched.store.kept = NamespaceCounts({"a": 1, "b": 1}, {"b": 1})
    watched.store.live = LiveCounts({"d": 1, "c": 1}, {}, are_all=True)
    watched.census.start()
    await watched.clock.sleep(1)
    assert set(watched.shown("timers_overdue{")) == {'namespace="a"', 'namespace="b"'}
    assert watched.shown("timers{")['namespace="other",status="executing"'] == 2

    watched.store.kept = NamespaceCounts({"b": 1}, {"b": 1})
    await watched.clock.sleep(60)
    shown = watched.shown("timers{")
    assert not [labels for labels in shown if 'namespace="a"' in labels]
    assert shown['namespace="b",status="pending"'] == 1
    assert shown['namespace="c",status="executing"'] == 1
    assert shown['namespace="other",status="executing"'] == 1
    await watched.census.abandon()
