"""The measurements of the bus, each on a store and a broker of its own."""

from bench.bus.commands import measure_commands
from bench.bus.due import measure_events_burst, measure_events_steady
from bench.bus.figures import BusFigures
from bench.bus.nats_broker import open_broker
from bench.progress import Steps
from bench.scale import BusScale
from bench.server import Server
from bench.stores import Stores

BUS_MEASURES = ("bus-commands", "bus-burst", "bus-steady")


def measure_bus(
    names: set[str], scale: BusScale, stores: Stores, steps: Steps, figures: BusFigures
) -> None:
    """What was asked for."""
    if "bus-commands" in names:
        with (
            steps.step("bus: commands"),
            stores.new_site("bus_commands") as site,
            open_broker(site.directory) as broker,
        ):
            figures.commands = measure_commands(site, broker, scale)
    if "bus-burst" in names:
        with (
            steps.step("bus: burst"),
            stores.new_site("bus_burst") as site,
            open_broker(site.directory) as broker,
            Server(site, broker_url=broker.url) as server,
        ):
            figures.burst = measure_events_burst(server, broker, scale)
    if "bus-steady" in names:
        with (
            steps.step("bus: steady"),
            stores.new_site("bus_steady") as site,
            open_broker(site.directory) as broker,
            Server(site, broker_url=broker.url) as server,
        ):
            figures.steady = measure_events_steady(server, broker, scale)
