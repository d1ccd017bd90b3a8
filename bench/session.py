"""One run of the benchmark: which measurements, in which order, on which store."""

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec
import psutil

from bench.client_limit import ClientFigures, measure_clients
from bench.creates import CreatesFigures, measure_creates
from bench.due import BurstFigures, SteadyFigures, measure_burst, measure_steady
from bench.footprint import FootprintFigures, measure_footprint
from bench.load import Load, LoadFigures, RandomInstants, generate
from bench.preload import Preload, preload_store
from bench.progress import Steps
from bench.receiver import Receiver
from bench.scale import Scale
from bench.server import LOG_NAME, Server

MEASURES = ("creates", "burst", "steady")
NAMES = (*MEASURES, "loaded", "footprint", "clients")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    cpus: int
    memory_gb: float
    system: str
    python: str
    sqlite: str
    load_average: float
    """Of the minute before the run: above 0.5 or so, somebody else was at work."""


class StoreFigures(msgspec.Struct, kw_only=True):
    """What was measured on one store. `memory_mb` is that of the server at the end."""

    stored: int
    creates: CreatesFigures | None = None
    burst: BurstFigures | None = None
    steady: SteadyFigures | None = None
    memory_mb: float | None = None

    def faults(self, label: str) -> list[str]:
        figures = (self.creates, self.burst, self.steady)
        return [f"{label}: {fault}" for each in figures if each for fault in each.faults]


class Results(msgspec.Struct, kw_only=True):
    machine: Machine
    scale: Scale
    harness: LoadFigures
    """The load generator against the receiver: what the harness itself can do."""
    empty: StoreFigures | None = None
    loaded: StoreFigures | None = None
    footprint: FootprintFigures | None = None
    clients: list[ClientFigures] = []
    seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        return [
            *(self.empty.faults("empty store") if self.empty else []),
            *(self.loaded.faults("loaded store") if self.loaded else []),
            *(fault for each in self.clients for fault in each.faults),
        ]


def measures_of(names: set[str]) -> tuple[str, ...]:
    """The measurements among the names; all of them when only `loaded` was asked for."""
    chosen = tuple(name for name in MEASURES if name in names)
    return MEASURES if not chosen and "loaded" in names else chosen


def run_session(names: set[str], scale: Scale, output: Path, steps: Steps) -> Results:
    started = time.monotonic()
    for log in output.glob("server-*.log"):
        log.unlink()
    machine = describe_machine()
    measures = measures_of(names)
    with Receiver() as receiver:
        with steps.step("harness: load generator against receiver"):
            results = Results(
                machine=machine, scale=scale, harness=measure_harness(receiver, scale)
            )
        if "clients" in names:
            with steps.step("clients: ours beside aiohttp and pyreqwest"):
                results.clients = measure_clients(receiver, scale)
        if measures:
            with working_directory(output, "empty") as directory, Server(directory) as server:
                results.empty = measure_store(
                    "empty store", server, receiver, scale, measures, steps, stored=0
                )
        if "loaded" in names or "footprint" in names:
            with working_directory(output, "loaded") as directory:
                fill(directory, scale, steps)
                with Server(directory) as server:
                    if "footprint" in names:
                        with steps.step("footprint"):
                            results.footprint = measure_footprint(server, scale)
                    if "loaded" in names:
                        results.loaded = measure_store(
                            "loaded store", server, receiver, scale, measures, steps, scale.stored
                        )
    results.seconds = round(time.monotonic() - started, 1)
    return results


def measure_harness(receiver: Receiver, scale: Scale) -> LoadFigures:
    figures = generate(
        Load(
            port=receiver.port,
            api_key="-" * 43,
            callback_url=receiver.url,
            count=scale.creates,
            instants=RandomInstants(earliest_us=0, latest_exclusive_us=1),
        )
    )
    receiver.forget()
    return figures


def measure_store(
    label: str,
    server: Server,
    receiver: Receiver,
    scale: Scale,
    measures: tuple[str, ...],
    steps: Steps,
    stored: int,
) -> StoreFigures:
    figures = StoreFigures(stored=stored)
    if "creates" in measures:
        with steps.step(f"{label}: creates"):
            figures.creates = measure_creates(server, receiver, scale)
    if "burst" in measures:
        with steps.step(f"{label}: burst"):
            figures.burst = measure_burst(server, receiver, scale)
    if "steady" in measures:
        with steps.step(f"{label}: steady"):
            figures.steady = measure_steady(server, receiver, scale)
    figures.memory_mb = round(server.memory_mb(), 1)
    return figures


def fill(directory: Path, scale: Scale, steps: Steps) -> None:
    text = f"storing {scale.stored:,} pending and {scale.stored:,} finished timers"
    with steps.step(text, total=2 * scale.stored) as advance_to:
        preload_store(
            Preload(path=str(directory / "bench.db"), pending=scale.stored, finished=scale.stored),
            advance_to,
        )


@contextmanager
def working_directory(output: Path, label: str) -> Iterator[Path]:
    """A directory beside the results, on the disk that is measured; gone with the run.

    What the server logged, warnings and errors only, stays.
    """
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=output))
    try:
        yield directory
    finally:
        log = directory / LOG_NAME
        if log.exists() and log.stat().st_size:
            log.replace(output / f"server-{label}.log")
        shutil.rmtree(directory)


def describe_machine() -> Machine:
    return Machine(
        cpus=os.cpu_count() or 0,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        system=platform.platform(),
        python=sys.version.split()[0],
        sqlite=apsw.sqlite_lib_version(),
        load_average=round(os.getloadavg()[0], 2),
    )
