"""The engine: its parts, started and stopped in order."""

import structlog
from msgspec import Struct

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.due_reader import DueReader
from duetime.engine.lane import Slots
from duetime.engine.pruner import Pruner
from duetime.engine.settler import Settler
from duetime.engine.shard_owner import ShardOwner
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.leases import LeaseStore
from duetime.ports.store import TimerStore

_log = structlog.get_logger()


SHORTEST_SETTLING_GRACE_SECONDS = 1.0
"""Outcomes that are not recorded are repeated after the next start, so a store that is away for
a moment gets a second chance even when the attempts took all of the grace."""


class EngineOptions(Struct, frozen=True, kw_only=True):
    """`retention_seconds` is None when finished timers are kept forever."""

    owner: str
    horizon_ms: float = 50.0
    poll_seconds: float = 5.0
    batch_size: int = 500
    concurrency: int = 4_096
    concurrency_per_endpoint: int = 1_024
    retention_seconds: float | None = None


class Engine:
    """Implements the wake-ups port for the front doors of this process."""

    def __init__(
        self,
        store: TimerStore,
        leases: LeaseStore,
        destination: Destination,
        clock: Clock,
        options: EngineOptions,
    ) -> None:
        self._clock = clock
        self._shard_owner = ShardOwner(store, leases, options.owner)
        self._due_reader = DueReader(
            store,
            clock,
            horizon_ms=options.horizon_ms,
            poll_seconds=options.poll_seconds,
            batch_size=options.batch_size,
        )
        self._settler = Settler(store, self._due_reader, clock)
        slots = Slots(options.concurrency, options.concurrency_per_endpoint)
        self._dispatcher = Dispatcher(
            destination, self._settler, clock, slots, horizon_ms=options.horizon_ms
        )
        self._due_reader.feed(self._dispatcher)
        self._pruner = (
            None
            if options.retention_seconds is None
            else Pruner(store, clock, options.retention_seconds)
        )

    async def start(self) -> None:
        await self._shard_owner.take_all()
        self._due_reader.leases = self._shard_owner.leases
        self._settler.start()
        self._due_reader.start()
        if self._pruner is not None:
            self._pruner.start()

    async def stop(self, grace_seconds: float) -> None:
        """Claim nothing more, finish what is under way within the grace, hand back the rest,
        release the shards."""
        stopping_since_seconds = self._clock.monotonic()
        if self._pruner is not None:
            await self._pruner.stop()
        await self._due_reader.stop()
        await self._dispatcher.stop(grace_seconds)
        grace_left_seconds = grace_seconds - (self._clock.monotonic() - stopping_since_seconds)
        try:
            await self._settler.stop(max(grace_left_seconds, SHORTEST_SETTLING_GRACE_SECONDS))
            await self._shard_owner.release_all()
        except StoreUnavailable as error:
            # What could not be settled is still executing in the store: it is recovered.
            _log.error("engine.stopped_without_store", error=error.message)
        except Exception:
            _log.exception("engine.stopped_with_unsettled")

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        self._due_reader.announce(shard, due_at)

    @property
    def is_running(self) -> bool:
        return self._due_reader.is_working and self._settler.is_working

    @property
    def shards_owned(self) -> int:
        return len(self._shard_owner.leases)

    @property
    def in_flight(self) -> int:
        return self._dispatcher.in_flight

    def lateness_ms(self, percent: float) -> float | None:
        return self._dispatcher.lateness.percentile_ms(percent, self._clock.monotonic())
