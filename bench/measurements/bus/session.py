"""Runs the measurements of the bus, each on a store and a broker of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.harness.progress import Steps
from bench.harness.server import Server
from bench.measurements.bus.commands import CommandsFigures, measure_commands
from bench.measurements.bus.firing import (
    EventsBurstFigures,
    EventsSteadyFigures,
    measure_events_burst,
    measure_events_steady,
)
from bench.scale import BusScale
from bench.stores.disk_space import MachineUnfit
from bench.stores.opening import Stores
from tests.brokers.nats_server import MISSING, NatsServer, find_nats_server

BUS_MEASURES = ("bus-commands", "bus-burst", "bus-steady")


class BusFigures(msgspec.Struct, kw_only=True):
    commands: CommandsFigures | None = None
    burst: EventsBurstFigures | None = None
    steady: EventsSteadyFigures | None = None

    @property
    def is_empty(self) -> bool:
        return not any(msgspec.structs.astuple(self))

    @property
    def faults(self) -> list[str]:
        figures = (self.commands, self.burst, self.steady)
        return [fault for each in figures if each for fault in each.faults]


def measure_bus(
    names: set[str], scale: BusScale, stores: Stores, steps: Steps, figures: BusFigures
) -> None:
    """Run the named measurements."""
    if "bus-commands" in names:
        with (
            steps.step("bus: commands"),
            stores.new_store("bus_commands") as store,
            open_broker(store.directory) as broker,
        ):
            figures.commands = measure_commands(store, broker, scale)
    if "bus-burst" in names:
        with (
            steps.step("bus: burst"),
            stores.new_store("bus_burst") as store,
            open_broker(store.directory) as broker,
            Server(store, broker_url=broker.url) as server,
        ):
            figures.burst = measure_events_burst(server, broker, scale)
    if "bus-steady" in names:
        with (
            steps.step("bus: steady"),
            stores.new_store("bus_steady") as store,
            open_broker(store.directory) as broker,
            Server(store, broker_url=broker.url) as server,
        ):
            figures.steady = measure_events_steady(server, broker, scale)


@contextmanager
def open_broker(directory: Path) -> Iterator[NatsServer]:
    """A NATS server with default settings, and its streams in files on the disk under test."""
    if find_nats_server() is None:
        raise MachineUnfit(MISSING)
    place = directory / "broker"
    place.mkdir()
    with NatsServer(place) as broker:
        yield broker
