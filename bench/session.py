"""One run of the benchmark: the chosen measurements, in order, each on its store."""

import os
import platform
import sys
import time

import psutil

from bench.harness.load_generator import Load, LoadFigures, RandomInstants, generate
from bench.harness.progress import Steps
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.limits.database import Rows, measure_database
from bench.limits.http_clients import measure_clients
from bench.limits.store_calls import measure_store_calls
from bench.measurements.backup import measure_backup
from bench.measurements.bus.session import BUS_MEASURES, measure_bus
from bench.measurements.copy import measure_copy
from bench.measurements.creates import measure_creates
from bench.measurements.firing import measure_burst, measure_steady
from bench.measurements.footprint import measure_footprint
from bench.measurements.held_snapshot import measure_held_snapshot
from bench.measurements.lists import measure_lists
from bench.measurements.nodes import measure_nodes
from bench.measurements.observed import measure_observed
from bench.measurements.scrape import NAMESPACES as SCRAPED_NAMESPACES
from bench.measurements.scrape import measure_scrape
from bench.measurements.secured import measure_secured, secure
from bench.measurements.store_audit import audit_store
from bench.measurements.ui import measure_ui
from bench.measurements.ui_timers import measure_ui_timers
from bench.measurements.v1.pages import NAMESPACES, measure_pages
from bench.measurements.v1.session import V1_MEASURES, measure_v1
from bench.results import Machine, Results, StoreFigures
from bench.scale import Scale, StoreName
from bench.stores.opening import Stores
from bench.stores.postgres import PostgresSchema
from bench.stores.postgres_preload import DUE_WITHIN_US
from bench.stores.postgres_server import PostgresHost
from bench.stores.sqlite import SqliteFile
from bench.stores.statement_costs import StatementStatistics
from bench.stores.store_under_test import StoreUnderTest

MEASURES = ("creates", "burst", "steady")
ON_THE_LARGEST = ("footprint", "lists", "audit")
ON_SHARED_STORES = ("limit", "workers", "nodes")
HELD_SNAPSHOT = "held-snapshot"
SECURED = "secured"
SCRAPE = "scrape"
OBSERVED = "observed"
UI = "ui"
UI_TIMERS = "ui-timers"
COPY = "copy"
NAMES = {
    StoreName.SQLITE: (
        *MEASURES,
        "loaded",
        "footprint",
        "backup",
        SECURED,
        SCRAPE,
        OBSERVED,
        UI,
        UI_TIMERS,
        "clients",
        *V1_MEASURES,
        *BUS_MEASURES,
    ),
    StoreName.POSTGRESQL: (
        *MEASURES,
        *ON_SHARED_STORES,
        HELD_SNAPSHOT,
        COPY,
        SECURED,
        SCRAPE,
        OBSERVED,
        UI,
        UI_TIMERS,
        "loaded",
        *ON_THE_LARGEST,
        *V1_MEASURES,
        *BUS_MEASURES,
    ),
}
WORKERS = 2


def measures_of(names: set[str]) -> tuple[str, ...]:
    """The named ones of `MEASURES`; all of them if `loaded` is named without any."""
    chosen = tuple(name for name in MEASURES if name in names)
    return MEASURES if not chosen and "loaded" in names else chosen


def reads_pages_on_largest(names: set[str], scale: Scale) -> bool:
    """Whether pages can be read from the largest store of the other measurements."""
    return "pages" in names and scale.v1.paged == scale.stored


def most_stored(names: set[str], scale: Scale) -> int:
    """The number of timers in the largest store of these measurements."""
    stored = scale.stored if names.intersection(("loaded", *ON_THE_LARGEST)) else 0
    paged = scale.v1.paged if names.intersection(("pages", UI_TIMERS)) else 0
    # The import writes its lines into a file; the bare limit stores the rows once more.
    imported = 2 * scale.v1.import_timers if "import" in names else 0
    # Commands are measured twice: as a backlog, and while publishing.
    commanded = 2 * scale.bus.commands if "bus-commands" in names else 0
    # The backup and the restored store lie beside the store.
    backed_up = 3 * 2 * scale.backed_up if "backup" in names else 0
    # The limit stores the rows once more, and the file and its rows lie beside them.
    copied = 4 * 2 * scale.copied if COPY in names else 0
    held = max(scale.held_rates, default=0) * scale.held_seconds if HELD_SNAPSHOT in names else 0
    # Dead rows stay in both tables that a timer passes through.
    return max(2 * stored, 2 * paged, imported, commanded, backed_up, copied, 3 * held)


class Session:
    def __init__(
        self, names: set[str], scale: Scale, stores: Stores, receiver: Receiver, steps: Steps
    ) -> None:
        self._names = names
        self._measures = measures_of(names)
        self._reads_pages = reads_pages_on_largest(names, scale)
        self._scale = scale
        self._stores = stores
        self._receiver = receiver
        self._steps = steps

    def run(self, results: Results) -> None:
        if "clients" in self._names:
            with self._steps.step("clients: ours beside aiohttp and pyreqwest"):
                results.clients = measure_clients(self._receiver, self._scale)
        if self._measures or self._names.intersection(ON_SHARED_STORES):
            with self._stores.new_store("empty") as store:
                self._on_empty_store(store, results)
        if HELD_SNAPSHOT in self._names:
            self._with_held_snapshot(results)
        needs_largest = self._names.intersection(("loaded", *ON_THE_LARGEST))
        if needs_largest or self._reads_pages:
            with self._stores.new_store("loaded") as store:
                self._on_loaded_stores(store, results)
        if "backup" in self._names:
            with self._stores.new_store("backup") as store:
                self._back_up(store, results)
        if COPY in self._names:
            with self._stores.new_store(COPY) as store:
                self._copy(store, results)
        if SECURED in self._names:
            with (
                self._stores.new_store("plain") as plain_store,
                self._stores.new_store("secured") as secured_store,
                Server(plain_store) as plain,
                Server(secured_store) as secured,
                self._steps.step("many keys, signatures and the guard, beside none"),
            ):
                secure(secured)
                results.secured = measure_secured(plain, secured, self._receiver, self._scale)
        if SCRAPE in self._names:
            with (
                self._stores.new_store("scrape") as store,
                Server(store, namespaces=SCRAPED_NAMESPACES) as server,
                self._steps.step("scrapes of many namespaces"),
            ):
                results.scrape = measure_scrape(server, self._receiver)
        if OBSERVED in self._names:
            with (
                self._stores.new_store("observed") as store,
                self._steps.step("metrics and traces, beside none"),
            ):
                results.observed = measure_observed(store, self._receiver, self._scale)
        if UI in self._names:
            with (
                self._stores.new_store("ui") as store,
                Server(store) as server,
                self._steps.step("the first page of the Web UI, and open tabs"),
            ):
                results.ui = measure_ui(server, self._receiver, self._scale.v1)
        if UI_TIMERS in self._names:
            with self._stores.new_store("ui_timers") as store:
                self._show_timers(store, results)
        measure_v1(
            self._names, self._scale.v1, self._stores, self._receiver, self._steps, results.v1
        )
        measure_bus(self._names, self._scale.bus, self._stores, self._steps, results.bus)

    def _show_timers(self, store: StoreUnderTest, results: Results) -> None:
        size = self._scale.v1.paged
        with self._steps.step(f"storing {size:,} pending and {size:,} finished timers"):
            store.fill(size, self._steps, analyze=True)
        with Server(store) as server, self._steps.step("the page of timers"):
            results.ui_timers = measure_ui_timers(server, self._scale.v1)

    def _back_up(self, store: StoreUnderTest, results: Results) -> None:
        size = self._scale.backed_up
        with self._steps.step(f"storing {size:,} pending and {size:,} finished timers"):
            store.fill(size, self._steps, analyze=False)
        with self._steps.step("backup beside creates, restore and audit"):
            results.backup = measure_backup(store)

    def _copy(self, store: StoreUnderTest, results: Results) -> None:
        assert isinstance(store, PostgresSchema)
        file = SqliteFile(store.directory)
        size = self._scale.copied
        with self._steps.step(f"storing {size:,} pending and {size:,} finished timers in SQLite"):
            file.fill(size, self._steps, analyze=False)
        with self._steps.step("duetime copy from SQLite to PostgreSQL, and a bare COPY"):
            results.copy = measure_copy(file.path, store)

    def _on_empty_store(self, store: StoreUnderTest, results: Results) -> None:
        with Server(store) as server:
            if self._measures:
                results.empty = self._measure(server, StoreFigures(stored=0))
        if "limit" in self._names:
            rows = self._rows(store)
            with self._steps.step("limit of the database alone"):
                results.limit = measure_database(rows)
            with self._steps.step("the store alone"):
                results.calls = measure_store_calls(rows)
        if "workers" in self._names:
            with (
                self._steps.step(f"burst with {WORKERS} workers"),
                Server(store, workers=WORKERS) as server,
            ):
                results.workers = measure_burst(server, self._receiver, self._scale)
        if "nodes" in self._names:
            with self._steps.step(f"two nodes, {self._scale.node_timers:,} timers"):
                results.nodes = measure_nodes(store, self._receiver, self._scale)

    def _with_held_snapshot(self, results: Results) -> None:
        for rate in self._scale.held_rates:
            text = f"a snapshot held for {self._scale.held_seconds} s at {rate:,}/s"
            with (
                self._stores.new_store(f"held_{rate}") as store,
                Server(store) as server,
                self._steps.step(text),
            ):
                results.held.append(
                    measure_held_snapshot(
                        store, server, self._receiver, rate, self._scale.held_seconds
                    )
                )

    def _on_loaded_stores(self, store: StoreUnderTest, results: Results) -> None:
        sizes = self._scale.sizes if "loaded" in self._names else self._scale.sizes[-1:]
        for size in sizes:
            # Smaller stores are left to autovacuum. On the largest, it would work for minutes
            # during the measurements.
            is_largest = size == sizes[-1]
            text = f"storing {size:,} pending and {size:,} finished timers"
            with self._steps.step(text):
                store.fill(size, self._steps, analyze=is_largest)
            with Server(store, namespaces=NAMESPACES if self._reads_pages else ()) as server:
                if is_largest and "footprint" in self._names:
                    with self._steps.step("footprint"):
                        host = self._stores.host
                        results.footprint = measure_footprint(server, self._scale, host)
                if "loaded" in self._names:
                    analyzed = is_largest and self._stores.host is not None
                    figures = StoreFigures(stored=size, analyzed=analyzed)
                    results.loaded.append(self._measure(server, figures))
                if is_largest:
                    self._on_largest_store(server, results)
        if "limit" in self._names:
            with self._steps.step("the store alone"):
                results.loaded_calls = measure_store_calls(self._rows(store))
        if "audit" in self._names:
            with self._steps.step("duetime audit"):
                results.store_audit = audit_store(store)

    def _on_largest_store(self, server: Server, results: Results) -> None:
        host = self._stores.host
        if host is not None and results.loaded and "creates" in self._measures:
            with self._steps.step("creates due at random among the stored timers"):
                host.checkpoint()
                results.loaded[-1].scattered_creates = measure_creates(
                    server, self._receiver, self._scale, within_us=DUE_WITHIN_US
                )
        if "lists" in self._names:
            with self._steps.step("lists"):
                results.lists = measure_lists(server, self._scale)
        if self._reads_pages:
            with self._steps.step("v1: pages"):
                results.v1.pages = measure_pages(server, self._scale.v1)

    def _rows(self, store: StoreUnderTest) -> Rows:
        return Rows(
            url=store.settings["DATABASE_URL"],
            schema=store.settings["PG_SCHEMA"],
            count=self._scale.limit_rows,
        )

    def _measure(self, server: Server, figures: StoreFigures) -> StoreFigures:
        statistics = statistics_of(self._stores.host)
        if "creates" in self._measures:
            with self._steps.step(f"{figures.label}: creates"):
                figures.creates = measure_creates(server, self._receiver, self._scale)
        if "burst" in self._measures:
            with self._steps.step(f"{figures.label}: burst"):
                figures.burst = measure_burst(server, self._receiver, self._scale)
        if "steady" in self._measures:
            with self._steps.step(f"{figures.label}: steady"):
                figures.steady = measure_steady(server, self._receiver, self._scale)
        figures.memory_mb = round(server.memory_mb(), 1)
        figures.statements = statistics.read() if statistics else []
        return figures


def run_session(
    store: StoreName, names: set[str], scale: Scale, stores: Stores, steps: Steps
) -> Results:
    started = time.monotonic()
    machine = describe_machine(stores)
    with Receiver() as receiver:
        with steps.step("harness: load generator against receiver"):
            harness = measure_harness(receiver, scale)
        results = Results(
            store=store,
            machine=machine,
            scale=scale,
            harness=harness,
            postgres=stores.host.facts if stores.host else None,
        )
        Session(names, scale, stores, receiver, steps).run(results)
    results.seconds = round(time.monotonic() - started, 1)
    return results


def statistics_of(host: PostgresHost | None) -> StatementStatistics | None:
    return StatementStatistics(host.url) if host and host.has_statement_statistics else None


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


def describe_machine(stores: Stores) -> Machine:
    return Machine(
        cpus=os.cpu_count() or 0,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        system=platform.platform(),
        python=sys.version.split()[0],
        store=stores.version,
        load_average=round(os.getloadavg()[0], 2),
    )
