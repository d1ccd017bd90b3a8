"""The NATS server that carries the bus while it is measured: one of our own, with its streams in
files on the disk that is measured, and otherwise as it comes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.stores.disk_space import MachineUnfit
from tests.brokers.nats_server import MISSING, NatsServer, find_nats_server


@contextmanager
def open_broker(directory: Path) -> Iterator[NatsServer]:
    """Runs within the context, in a directory of its own below."""
    if find_nats_server() is None:
        raise MachineUnfit(MISSING)
    place = directory / "broker"
    place.mkdir()
    with NatsServer(place) as broker:
        yield broker
