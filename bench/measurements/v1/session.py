"""Runs the measurements of the Timer API v1, each on a store of its own."""

import msgspec

from bench.harness.progress import Steps
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.measurements.v1.batches import BatchesFigures, measure_batches
from bench.measurements.v1.busy_api import BusyApiFigures, measure_busy_api
from bench.measurements.v1.crowd import CrowdFigures, measure_crowd
from bench.measurements.v1.hanging import HangingFigures, measure_hanging
from bench.measurements.v1.imports import ImportFigures, measure_import
from bench.measurements.v1.pages import NAMESPACES, PagesFigures, measure_pages
from bench.measurements.v1.retries import RetriesFigures, measure_retries
from bench.measurements.v1.slow_clients import SlowClientsFigures, measure_slow_clients
from bench.scale import V1Scale
from bench.stores.opening import Stores

V1_MEASURES = (
    "batches",
    "import",
    "pages",
    "hanging",
    "crowd",
    "busy-api",
    "slow-clients",
    "retries",
)


class V1Figures(msgspec.Struct, kw_only=True):
    batches: BatchesFigures | None = None
    imported: ImportFigures | None = None
    pages: PagesFigures | None = None
    hanging: HangingFigures | None = None
    crowd: CrowdFigures | None = None
    busy_api: BusyApiFigures | None = None
    slow_clients: SlowClientsFigures | None = None
    retries: RetriesFigures | None = None

    @property
    def is_empty(self) -> bool:
        return not any(msgspec.structs.astuple(self))

    @property
    def faults(self) -> list[str]:
        figures = (
            self.batches,
            self.imported,
            self.pages,
            self.hanging,
            self.crowd,
            self.busy_api,
            self.slow_clients,
            self.retries,
        )
        return [fault for each in figures if each for fault in each.faults]


def measure_v1(
    names: set[str],
    scale: V1Scale,
    stores: Stores,
    receiver: Receiver,
    steps: Steps,
    figures: V1Figures,
) -> None:
    """Run the named measurements that have no figures yet."""
    if "batches" in names:
        with steps.step("v1: batches"), stores.new_store("batches") as store:
            figures.batches = measure_batches(store, scale)
    if "import" in names:
        with steps.step("v1: import"), stores.new_store("import") as store:
            figures.imported = measure_import(store, scale)
    if "retries" in names:
        with (
            steps.step("v1: retries"),
            stores.new_store("retries") as store,
            Server(store) as server,
        ):
            figures.retries = measure_retries(server, receiver, scale)
    if "hanging" in names:
        with (
            steps.step("v1: a hanging endpoint"),
            stores.new_store("hanging") as store,
            Server(store) as server,
        ):
            figures.hanging = measure_hanging(server, scale)
    if "crowd" in names:
        with (
            steps.step("v1: many hanging endpoints"),
            stores.new_store("crowd") as store,
            Server(store) as server,
        ):
            figures.crowd = measure_crowd(server, scale)
    if "busy-api" in names:
        with (
            steps.step("v1: firings beside large batches"),
            stores.new_store("busy-api") as store,
            Server(store) as server,
        ):
            figures.busy_api = measure_busy_api(server, receiver, scale)
    if "slow-clients" in names:
        with (
            steps.step("v1: firings beside slow connections"),
            stores.new_store("slow-clients") as store,
            Server(store) as server,
        ):
            figures.slow_clients = measure_slow_clients(server, receiver, scale)
    if "pages" in names and figures.pages is None:
        with stores.new_store("pages") as store:
            text = f"storing {scale.paged:,} pending and {scale.paged:,} finished timers"
            with steps.step(text):
                store.fill(scale.paged, steps, analyze=True)
            with steps.step("v1: pages"), Server(store, namespaces=NAMESPACES) as server:
                figures.pages = measure_pages(server, scale)
