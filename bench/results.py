"""All figures of one run, as written to `results.json`."""

import msgspec

from bench.harness.load_generator import LoadFigures
from bench.limits.database import DatabaseLimit
from bench.limits.http_clients import ClientFigures
from bench.limits.store_calls import StoreCalls
from bench.measurements.backup import BackupFigures
from bench.measurements.bus.session import BusFigures
from bench.measurements.copy import CopyFigures
from bench.measurements.creates import CreatesFigures
from bench.measurements.firing import BurstFigures, SteadyFigures
from bench.measurements.footprint import FootprintFigures
from bench.measurements.held_snapshot import HeldFigures
from bench.measurements.lists import ListFigures
from bench.measurements.nodes import NodesFigures
from bench.measurements.observed import ObservedFigures
from bench.measurements.scrape import ScrapeFigures
from bench.measurements.secured import SecuredFigures
from bench.measurements.store_audit import StoreAudit
from bench.measurements.ui import UiFigures
from bench.measurements.ui_timers import UiTimersFigures
from bench.measurements.v1.session import V1Figures
from bench.scale import Scale, StoreName
from bench.stores.postgres_server import PostgresFacts
from bench.stores.statement_costs import StatementFigures


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    cpus: int
    memory_gb: float
    system: str
    python: str
    store: str
    load_average: float
    """Load average of the minute before the run. Above about 0.5, the machine was not idle."""


class StoreFigures(msgspec.Struct, kw_only=True):
    """Figures of one store. `memory_mb` is the server's memory at the end.

    `analyzed` is true if the tables were analyzed right after filling. `scattered_creates` are due
    at random among the stored timers, so that hardly two share an index page. They run right after
    a checkpoint, PostgreSQL's worst case: it logs each page in full.
    """

    stored: int
    analyzed: bool = False
    creates: CreatesFigures | None = None
    scattered_creates: CreatesFigures | None = None
    burst: BurstFigures | None = None
    steady: SteadyFigures | None = None
    memory_mb: float | None = None
    statements: list[StatementFigures] = []

    @property
    def label(self) -> str:
        return f"{self.stored:,} stored" if self.stored else "empty store"

    @property
    def faults(self) -> list[str]:
        figures = (self.creates, self.scattered_creates, self.burst, self.steady)
        return [f"{self.label}: {fault}" for each in figures if each for fault in each.faults]


class Results(msgspec.Struct, kw_only=True):
    """`loaded` is in ascending order of size; only PostgreSQL has `postgres` to `store_audit`."""

    store: StoreName
    machine: Machine
    scale: Scale
    harness: LoadFigures
    """The load generator against the receiver: the limit of the harness."""
    empty: StoreFigures | None = None
    loaded: list[StoreFigures] = []
    footprint: FootprintFigures | None = None
    backup: BackupFigures | None = None
    copy: CopyFigures | None = None
    secured: SecuredFigures | None = None
    scrape: ScrapeFigures | None = None
    observed: ObservedFigures | None = None
    ui: UiFigures | None = None
    ui_timers: UiTimersFigures | None = None
    clients: list[ClientFigures] = []
    postgres: PostgresFacts | None = None
    limit: DatabaseLimit | None = None
    calls: StoreCalls | None = None
    loaded_calls: StoreCalls | None = None
    """Store calls on the largest store."""
    workers: BurstFigures | None = None
    nodes: NodesFigures | None = None
    held: list[HeldFigures] = []
    lists: list[ListFigures] = []
    store_audit: StoreAudit | None = None
    v1: V1Figures = msgspec.field(default_factory=V1Figures)
    bus: BusFigures = msgspec.field(default_factory=BusFigures)
    seconds: float = 0.0

    @property
    def stores(self) -> list[StoreFigures]:
        return [*([self.empty] if self.empty else []), *self.loaded]

    @property
    def faults(self) -> list[str]:
        return [
            *(fault for each in self.stores for fault in each.faults),
            *(fault for each in self.clients for fault in each.faults),
            *(f"two workers: {fault}" for fault in (self.workers.faults if self.workers else [])),
            *(self.nodes.faults if self.nodes else []),
            *(self.backup.faults if self.backup else []),
            *(self.copy.faults if self.copy else []),
            *(self.secured.faults if self.secured else []),
            *(self.observed.faults if self.observed else []),
            *(self.ui.faults if self.ui else []),
            *(fault for each in self.held for fault in each.faults),
            *(self.store_audit.faults if self.store_audit else []),
            *self.v1.faults,
            *self.bus.faults,
        ]
