"""The measurements of the bus, each on a store and a broker of its own."""

from bench.harness.progress import Steps
from bench.harness.server import Server
from bench.measurements.bus.commands import measure_commands
from bench.measurements.bus.figures import BusFigures
from bench.measurements.bus.firing import measure_events_burst, measure_events_steady
from bench.measurements.bus.nats_broker import open_broker
from bench.scale import BusScale
from bench.stores.opening import Stores

BUS_MEASURES = ("bus-commands", "bus-burst", "bus-steady")


def measure_bus(
    names: set[str], scale: BusScale, stores: Stores, steps: Steps, figures: BusFigures
) -> None:
    """What was asked for."""
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
