"""The metrics of the store: its calls, its file or its connections, and the timers in it."""

from typing import TYPE_CHECKING, cast

from duetime.ports.clock import Clock
from duetime.service.reporting.census import Census
from duetime.settings import Settings
from duetime.store_adapters import snapshot_watch_of
from duetime.stores.memory import MemoryStore
from duetime.stores.sqlite import SqliteStore
from duetime.telemetry.measured_store import StoreCalls
from duetime.telemetry.metrics.catalogue import store as catalogue
from duetime.telemetry.metrics.recording import Gauge, LabelValues, Recorder, Samples, one

if TYPE_CHECKING:
    from duetime.stores.postgres import PostgresStore, SnapshotWatch


class StoreWatch:
    """The store with everything that looks at it: `store` is the one to use, since its calls are
    measured."""

    def __init__(
        self,
        settings: Settings,
        kept: "SqliteStore | MemoryStore | PostgresStore",
        clock: Clock,
        namespaces: LabelValues,
    ) -> None:
        self._calls = StoreCalls(clock, namespaces)
        self.store = self._calls.measured(kept)
        most_names = settings.metrics_namespaces
        self.census = Census(self.store, clock, most_names=most_names)
        self._snapshots = snapshot_watch_of(settings, clock)
        self._own: list[Recorder] = []
        if isinstance(kept, SqliteStore):
            self._own = _of_file(kept)
        elif self._snapshots is not None:
            self._own = _of_database(cast("PostgresStore", kept), self._snapshots)

    def start(self) -> None:
        self.census.start()
        if self._snapshots is not None:
            self._snapshots.start()

    async def abandon(self) -> None:
        await self.census.abandon()
        if self._snapshots is not None:
            await self._snapshots.abandon()

    def recorders(self) -> list[Recorder]:
        return [*self._calls.recorders(), *self.census.recorders(), *self._own]


def _of_file(store: SqliteStore) -> list[Recorder]:
    def log_bytes() -> float | None:
        return None if store.log is None else store.log.size_bytes

    def copied_seconds_ago() -> float | None:
        return None if store.log is None else store.log.copied_seconds_ago

    def free_bytes() -> float | None:
        return None if store.disk is None else store.disk.free_bytes

    def reserve_bytes() -> float | None:
        return None if store.disk is None else store.disk.reserve_bytes

    return [
        store.commit_sizes,
        one(catalogue.WAL_BYTES, log_bytes),
        one(catalogue.CHECKPOINT_AGE, copied_seconds_ago),
        one(catalogue.DISK_FREE, free_bytes),
        one(catalogue.DISK_RESERVE, reserve_bytes),
    ]


def _of_database(store: "PostgresStore", watch: "SnapshotWatch") -> list[Recorder]:
    def connections() -> Samples:
        if store.connections is not None:
            idle, used = store.connections
            yield ("idle",), idle
            yield ("used",), used

    return [
        Gauge(catalogue.POOL, connections),
        one(catalogue.OLDEST_TRANSACTION, lambda: watch.oldest_age_seconds),
    ]
