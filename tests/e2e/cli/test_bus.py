"""`duetime bus` beside a real server and a real broker."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from duetime.domain.instants import parse_instant
from tests.brokers.bus_client import schedule_timer
from tests.brokers.running_broker import RunningBroker, with_each_broker
from tests.polling import poll
from tests.real_server.command import Command, Finished, run_command
from tests.real_server.databases import Database
from tests.real_server.server_process import ServerProcess

pytestmark = pytest.mark.e2e


async def schedule(broker: RunningBroker, directory: Path, *arguments: str) -> Finished:
    finished = await run_command(
        "bus", "schedule", *arguments, "--tenant", "acme", directory=directory, **broker.settings
    )
    assert finished.status == 0, finished.errors
    return finished


@with_each_broker
async def test_a_scheduled_call_is_announced(
    tmp_path: Path, database: Database, broker: RunningBroker
) -> None:
    server = ServerProcess(tmp_path, **database.settings, **broker.settings)
    tail = Command("bus", "tail", directory=tmp_path, **broker.settings)
    async with server, tail:
        greeting = await tail.line()
        assert greeting == f"Watching timer.events at {broker.url} (Ctrl-C stops)"
        told = await schedule(broker, tmp_path, "call-1", "--in", "1s", "--correlation", "req-7")
        assert "published: acme/call-1 is due " in told.output
        line = await tail.line("call-1")
        assert "DueTimeReached  acme/call-1  reached " in line
        assert line.endswith("correlation req-7")
        assert await tail.end(signal.SIGINT) == 0
    assert tail.errors == ""


@with_each_broker
async def test_rejected_commands_are_shown(
    tmp_path: Path, database: Database, broker: RunningBroker
) -> None:
    server = ServerProcess(tmp_path, **database.settings, **broker.settings)
    arguments = ("bus", "tail", "--channel", "rejected", "--count", "1", "--json")
    tail = Command(*arguments, directory=tmp_path, **broker.settings)
    async with server, tail, broker.client() as bus:
        await tail.error_line("Watching timer.commands.rejected")
        line = asyncio.create_task(tail.line())
        far = parse_instant("2200-01-01T00:00:00Z")
        # The first commands may be rejected before the tail listens.
        await poll(lambda: bus.send([schedule_timer("far", far)]), lambda _: line.done())
        rejected = json.loads(await line)
        assert rejected["type"] == "CommandRejected"
        assert rejected["payload"]["reason"].startswith("payload.dueAt ")


async def test_a_broker_that_is_away_is_reported_in_one_line(tmp_path: Path) -> None:
    for url in ("nats://127.0.0.1:1", "redis://127.0.0.1:1"):
        for arguments in (("tail",), ("schedule", "c", "--tenant", "t", "--in", "1s")):
            finished = await run_command("bus", *arguments, "--broker", url, directory=tmp_path)
            assert finished.status == 3
            assert finished.output == ""
            (line,) = finished.errors.splitlines()
            assert url in line
