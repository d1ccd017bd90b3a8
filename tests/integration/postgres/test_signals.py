"""Signals: they reach every node, and a node that may have missed some learns it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from duetime.clock import SystemClock
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.stores.postgres import PostgresOptions, PostgresSignals
from duetime.stores.postgres.connections import ANY_PLAN, Connection, connected
from duetime.testing.store_contract.steps import at
from tests.postgres.relay import Relay

PATIENCE_SECONDS = 30
CHANGED = "shards changed"
MISSED = "signals missed"

_END_LISTENERS = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE query LIKE 'LISTEN%' AND strpos(query, $1) > 0
"""

Heard = str | dict[ShardNumber, Instant]


class Listener:
    """A receiver that records its signals."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[Heard] = asyncio.Queue()

    def due_announced(self, due: Mapping[ShardNumber, Instant]) -> None:
        self._heard.put_nowait(dict(due))

    def shards_changed(self) -> None:
        self._heard.put_nowait(CHANGED)

    def signals_missed(self) -> None:
        self._heard.put_nowait(MISSED)

    async def next(self) -> Heard:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._heard.get()


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[EventDict]]:
    """Log entries about lost connections; they stay out of the output."""
    with capture_logs() as logs:
        yield logs


@pytest.fixture
async def signals(options: PostgresOptions) -> AsyncIterator[PostgresSignals]:
    signals = PostgresSignals(options, SystemClock())
    yield signals
    await signals.stop()


@pytest.fixture
async def watcher(options: PostgresOptions) -> AsyncIterator[Connection]:
    async with connected(options, ANY_PLAN) as connection:
        yield connection


def channel(options: PostgresOptions) -> str:
    return f"duetime_{options.schema}"


async def test_every_node_receives_a_signal(
    options: PostgresOptions, signals: PostgresSignals
) -> None:
    other, own_ears, other_ears = PostgresSignals(options, SystemClock()), Listener(), Listener()
    await signals.start(own_ears)
    await other.start(other_ears)
    due = {ShardNumber(3): at(5), ShardNumber(4095): at(-1), ShardNumber(0): Instant(-7)}
    await signals.announce_due(due)
    await other.announce_shards_changed()
    for ears in (own_ears, other_ears):
        assert [await ears.next(), await ears.next()] == [due, CHANGED]
    await other.stop()


async def test_any_number_of_shards_can_be_announced(signals: PostgresSignals) -> None:
    ears = Listener()
    await signals.start(ears)
    due = {ShardNumber(n): Instant(253_402_300_799_999_999 - n) for n in range(4_096)}
    await signals.announce_due(due)
    heard: dict[ShardNumber, Instant] = {}
    while len(heard) < len(due):
        part = await ears.next()
        assert isinstance(part, dict)
        heard |= part
    assert heard == due


async def test_an_empty_announcement_is_not_sent(signals: PostgresSignals) -> None:
    ears = Listener()
    await signals.start(ears)
    await signals.announce_due({})
    await signals.announce_shards_changed()
    assert await ears.next() == CHANGED


async def test_nodes_of_another_schema_receive_nothing(
    options: PostgresOptions, signals: PostgresSignals
) -> None:
    elsewhere = PostgresSignals(replace(options, schema="elsewhere"), SystemClock())
    ears = Listener()
    await signals.start(ears)
    await elsewhere.start(Listener())
    await elsewhere.announce_due({ShardNumber(1): at(1)})
    await signals.announce_shards_changed()
    assert await ears.next() == CHANGED
    await elsewhere.stop()


async def test_a_broken_connection_is_replaced_and_reported(
    options: PostgresOptions, signals: PostgresSignals, watcher: Connection
) -> None:
    ears = Listener()
    await signals.start(ears)
    for _ in range(3):
        assert await watcher.fetchval(_END_LISTENERS, channel(options)) == 1
        assert await ears.next() == MISSED
    await signals.announce_shards_changed()
    assert await ears.next() == CHANGED


async def test_a_lost_connection_is_logged(
    options: PostgresOptions,
    signals: PostgresSignals,
    watcher: Connection,
    logs: list[EventDict],
) -> None:
    ears = Listener()
    await signals.start(ears)
    await watcher.fetchval(_END_LISTENERS, channel(options))
    assert await ears.next() == MISSED
    assert [(line["event"], line["log_level"]) for line in logs] == [("signals.lost", "warning")]


async def test_signals_start_without_a_database_and_find_it_later(
    options: PostgresOptions, logs: list[EventDict]
) -> None:
    with Relay(options.url) as relay:
        relay.cut()
        signals, ears = PostgresSignals(replace(options, url=relay.url), SystemClock()), Listener()
        await signals.start(ears)
        with pytest.raises(StoreUnavailable):
            await signals.announce_shards_changed()
        relay.heal()
        assert await ears.next() == MISSED
        await signals.announce_shards_changed()
        assert await ears.next() == CHANGED
        await signals.stop()
    assert [(line["event"], line["log_level"], line["loop"]) for line in logs] == [
        ("signals.unavailable", "warning", "postgres-signals"),
        ("signals.available", "info", "postgres-signals"),
    ]


async def test_a_signal_of_another_release_counts_as_missed_signals(
    options: PostgresOptions, signals: PostgresSignals, watcher: Connection
) -> None:
    ears = Listener()
    await signals.start(ears)
    for text in ("news", "due", "due 1", "due 1:x", "due :", ""):
        await watcher.execute("SELECT pg_notify($1, $2)", channel(options), text)
        assert await ears.next() == MISSED


async def test_stopped_signals_say_nothing_and_cannot_be_sent(signals: PostgresSignals) -> None:
    await signals.start(Listener())
    await signals.stop()
    await signals.stop()
    with pytest.raises(StoreUnavailable, match="not started"):
        await signals.announce_shards_changed()


async def test_stopping_ends_while_the_database_is_away(options: PostgresOptions) -> None:
    with Relay(options.url) as relay:
        hurried = replace(options, url=relay.url, connect_timeout_seconds=0.3)
        signals = PostgresSignals(hurried, SystemClock())
        await signals.start(Listener())
        relay.freeze()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await signals.stop()
