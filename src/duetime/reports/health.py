"""The state of a service process, as its health check reports it."""

from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from duetime.api.platform.health import EngineHealth
from duetime.api.platform.types import BusStatus, ClusterStatus, DiskStatus, NatsStatus
from duetime.bus.bus_router import BusRouter
from duetime.delivery.http import HttpDestination
from duetime.domain.instants import Instant
from duetime.domain.timer import Timer
from duetime.engine import Engine
from duetime.ports.endpoints import FiringReport
from duetime.ports.store import TimerStore
from duetime.store_adapters import disk_of

if TYPE_CHECKING:
    from duetime.nats.connection import NatsConnection


def health_of(
    engine: Engine,
    store: TimerStore,
    http: HttpDestination,
    bus_router: BusRouter | None,
    nats: "NatsConnection | None",
) -> EngineHealth:
    disk = disk_of(store)
    cluster = None
    if engine.members is not None:
        cluster = ClusterStatus(
            node=engine.node,
            members=engine.members,
            shards=engine.shards,
            clock_offset_ms=engine.clock_watch.offset_ms,
            clock_skewed=engine.clock_watch.is_skewed,
        )
    return EngineHealth(
        running=engine.is_running,
        shards_owned=engine.shards_owned,
        lateness_ms=engine.lateness_ms(99),
        in_flight=engine.in_flight,
        local_shortages=engine.local_shortages,
        callbacks_refused=http.refused,
        disk=None
        if disk is None
        else DiskStatus(disk.free_bytes, disk.reserve_bytes, disk.is_short),
        disk_is_full=disk is not None and disk.is_full,
        cluster=cluster,
        bus=None if bus_router is None else BusStatus(**asdict(bus_router.health())),
        nats=None if nats is None else NatsStatus(nats.display_name, nats.is_connected),
    )


def report_of(engine: Engine, store: TimerStore, timer: Timer, now: Instant) -> FiringReport:
    """The engine's report on a timer, with the state of the disk."""
    disk = disk_of(store)
    is_full = disk is not None and disk.is_full
    return replace(engine.report_on(timer, now), disk_is_full=is_full)
