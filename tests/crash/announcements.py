"""Checks on timers that came over the bus, once all of them have fired."""

from collections.abc import Collection

import httpx

from duetime.domain.instants import Instant
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.bus import Channel
from tests.brokers.bus_client import Command, schedule_timer
from tests.brokers.nats_bus_client import NatsBusClient
from tests.real_server.timer_requests import wait_until_dry

COUNTED = 10_000
"""Largest count of a list that every database gives exactly."""


def command_of(call: str, due_at: Instant) -> Command:
    """A command for the default namespace, whose timers the platform API counts."""
    return schedule_timer(call, due_at, tenant=DEFAULT_NAMESPACE)


async def check_all_completed(api: httpx.AsyncClient, count: int) -> None:
    counts = await wait_until_dry(api)
    assert counts["failed"] == counts["canceled"] == 0
    assert min(counts["completed"], COUNTED) == min(count, COUNTED)


async def check_each_is_stored_once(bus: NatsBusClient, calls: Collection[str]) -> None:
    """Looks into the stream itself, whose messages are those that any consumer gets."""
    stored = await bus.stored(Channel.EVENTS)
    assert len(stored) == len(calls)
    assert len({(message.headers or {})["Nats-Msg-Id"] for message in stored}) == len(calls)
    assert bus.book.times_by_call() == dict.fromkeys(calls, 1)
    assert len({event.id for event in bus.book.events}) == len(calls)
