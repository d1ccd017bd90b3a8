"""From the settings of a store to its adapter, for the service and for the commands that open a
store themselves."""

from typing import TYPE_CHECKING, assert_never, cast

from duetime.clock import SystemClock
from duetime.engine import Cluster
from duetime.local_process import is_gone
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.settings import (
    MemoryStoreSettings,
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
)
from duetime.stores.memory import MemoryStore
from duetime.stores.sqlite import DiskStatus, SqliteStore

if TYPE_CHECKING:
    from duetime.stores.postgres import PostgresOptions, PostgresStore, SnapshotWatch

SHORTEST_PARTITION_SECONDS = 3_600
LONGEST_PARTITION_SECONDS = 30 * 86_400


def store_of(settings: Settings) -> "SqliteStore | MemoryStore | PostgresStore":
    match settings.store:
        case SqliteStoreSettings(path=path):
            return SqliteStore(path, reserve_bytes=settings.disk_reserve_bytes)
        case MemoryStoreSettings():
            return MemoryStore()
        case PostgresStoreSettings() as postgres:
            # Imported here, so that SQLite starts without waiting for the driver.
            from duetime.stores.postgres import PostgresStore

            return PostgresStore(postgres_options(postgres, settings.retention_days))
        case _ as unreachable:
            assert_never(unreachable)


def disk_of(store: TimerStore) -> DiskStatus | None:
    """The disk of the store, if the store can see it. The store may be wrapped."""
    disk = getattr(store, "disk", None)
    return disk if isinstance(disk, DiskStatus) else None


def cluster_of(
    settings: Settings, store: "SqliteStore | MemoryStore | PostgresStore", clock: SystemClock
) -> Cluster | None:
    if not isinstance(settings.store, PostgresStoreSettings):
        return None
    from duetime.stores.postgres import PostgresSignals

    return Cluster(
        # By its settings; the store may be a measured one.
        members=cast("PostgresStore", store),
        signals=PostgresSignals(postgres_options(settings.store, settings.retention_days), clock),
        is_gone=lambda facts: is_gone(facts.process),
    )


def snapshot_watch_of(settings: Settings, clock: Clock) -> "SnapshotWatch | None":
    """The loop that looks for trouble in a store that others use, too."""
    if not isinstance(settings.store, PostgresStoreSettings):
        return None
    from duetime.stores.postgres import SnapshotWatch

    return SnapshotWatch(postgres_options(settings.store, settings.retention_days), clock)


def postgres_options(store: PostgresStoreSettings, retention_days: float) -> "PostgresOptions":
    from duetime.stores.postgres import PostgresOptions

    return PostgresOptions(
        url=store.url,
        schema=store.schema,
        pool_size=store.pool_size,
        statement_timeout_seconds=store.statement_timeout_seconds,
        history_partition_seconds=_history_partition_seconds(retention_days),
    )


def _history_partition_seconds(retention_days: float) -> int:
    """An eighth of the retention: whole partitions are dropped, so timers stay that much longer."""
    if retention_days == 0:
        return LONGEST_PARTITION_SECONDS
    eighth = round(retention_days * 86_400 / 8)
    return min(max(eighth, SHORTEST_PARTITION_SECONDS), LONGEST_PARTITION_SECONDS)


def store_name(settings: Settings) -> str:
    match settings.store:
        case SqliteStoreSettings(path=path):
            return str(path.absolute())
        case MemoryStoreSettings():
            return "memory"
        case PostgresStoreSettings(place=place, schema=schema):
            return f"postgresql://{place}, schema {schema}"
        case _ as unreachable:
            assert_never(unreachable)
