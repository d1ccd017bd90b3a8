"""Alerts about the message bus: caused on a real server with a real broker."""

from pathlib import Path

import pytest

from duetime.ports.bus import Channel
from tests.brokers.bus_client import schedule_timer
from tests.brokers.nats_bus_client import NatsBusClient
from tests.brokers.nats_fixtures import MakeNats
from tests.monitoring.prometheus import Prometheus
from tests.real_server.server_process import ServerProcess
from tests.real_server.timer_requests import in_ms

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

HOUR_MS = 3_600_000
WAITING = 1_200
EVENTS = 150


async def test_a_broker_that_takes_no_events_and_goes_away(
    tmp_path: Path, prometheus: Prometheus, make_nats: MakeNats
) -> None:
    broker = make_nats()
    async with (
        ServerProcess(tmp_path, TIMER_BROKER_URL=broker.url) as server,
        NatsBusClient(broker.url, reads=False) as bus,
    ):
        await prometheus.watch(server)
        await bus.core.publish(Channel.COMMANDS, b"no command")
        await bus.streams.delete_stream((await bus.stream(Channel.EVENTS)).config.name or "")
        # Due one after another, so that some attempt fails in every second.
        await bus.send([schedule_timer(f"call-{n}", in_ms(100 * n)) for n in range(EVENTS)])
        await prometheus.fires("DuetimeBusRejected", "DuetimeBusPublishFailing")
        broker.kill()
        await prometheus.fires("DuetimeBrokerDisconnected")
        broker.start()
        await prometheus.fell_silent("DuetimeBrokerDisconnected")


async def test_a_disk_without_room_lets_commands_wait(
    tmp_path: Path, prometheus: Prometheus, make_nats: MakeNats
) -> None:
    broker = make_nats()
    # No disk has so much room.
    settings = {"DISK_RESERVE_BYTES": str(2**50), "TIMER_BROKER_URL": broker.url}
    async with (
        ServerProcess(tmp_path, **settings) as server,
        NatsBusClient(broker.url, reads=False) as bus,
    ):
        await prometheus.watch(server)
        await bus.send(
            [schedule_timer(f"call-{number}", in_ms(HOUR_MS)) for number in range(WAITING)]
        )
        await prometheus.fires("DuetimeDiskShort", "DuetimeDiskFilling", "DuetimeBusLag")
