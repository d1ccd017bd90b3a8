"""The service with its surroundings within reach, and stores that a test makes fail."""

import asyncio
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from duetime.delivery.destination_router import DestinationRouter
from duetime.delivery.http import HttpDestination
from duetime.delivery.http_client import HttpClient
from duetime.domain.callback import BusCallback, Callback, HttpCallback, NatsCallback
from duetime.domain.defaults import (
    DEFAULT_CALLBACK_TIMEOUT_MS,
    DEFAULT_MAX_PAYLOAD_BYTES,
    DEFAULT_MIN_DELAY_SECONDS,
)
from duetime.domain.errors import TimerUnreadable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber, TimerKey
from duetime.domain.namespace import ConfiguredNamespace
from duetime.domain.timer import Timer
from duetime.ports.store import (
    CreateRequest,
    CreateResult,
    Existence,
    Position,
    ScanEntry,
    ScanQuery,
)
from duetime.service.known_namespaces import KnownNamespaces
from duetime.service.namespaces import Namespaces
from duetime.service.restoring import Restoring
from duetime.service.timer_service import TimerService
from duetime.service.validation import TimerRules
from duetime.stores.memory import MemoryStore
from duetime.testing import VirtualClock
from duetime.testing.store_contract.steps import own_shards

# Callbacks are only checked here, never sent, and a client takes a while to make.
_UNUSED_CLIENT = HttpClient()


class RecordingWakeUps:
    def __init__(self) -> None:
        self.announced: list[tuple[ShardNumber, Instant]] = []

    def announce(self, shard: ShardNumber, due_at: Instant) -> None:
        self.announced.append((shard, due_at))


class Shards:
    """The shards that a test gives to this process."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.numbers = [ShardNumber(number) for number in numbers]

    def owned_shards(self) -> list[ShardNumber]:
        return self.numbers


EVERY_SHARD = Shards(range(16))


class GatedStore(MemoryStore):
    """A store whose creates wait until a test lets them through, or makes them fail."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Semaphore(0)
        self.started = asyncio.Semaphore(0)
        self.batches: list[int] = []
        self.failures: list[Exception] = []

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        self.batches.append(len(requests))
        self.started.release()
        await self.gate.acquire()
        if self.failures:
            raise self.failures.pop(0)
        return await super().create(requests)


class DamagedStore(MemoryStore):
    """A store that cannot read the timers with the ids in `damaged`."""

    def __init__(self) -> None:
        super().__init__()
        self.damaged: set[str] = set()

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        results = await super().create(requests)
        return [
            CreateResult(Existence.UNREADABLE, request.timer)
            if request.timer.key.id in self.damaged
            else result
            for request, result in zip(requests, results, strict=True)
        ]

    async def get(self, key: TimerKey) -> Timer | None:
        if key.id in self.damaged:
            raise TimerUnreadable(key)
        return await super().get(key)

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        return [
            Position(timer.execute_at, timer.timer_uuid) if timer.key.id in self.damaged else timer
            for timer in await self.scan(query)
        ]


def timer_rules(**changes: object) -> TimerRules:
    rules = TimerRules(
        min_delay_ms=DEFAULT_MIN_DELAY_SECONDS * 1_000,
        callback_timeout_ms=DEFAULT_CALLBACK_TIMEOUT_MS,
        max_payload_bytes=DEFAULT_MAX_PAYLOAD_BYTES,
    )
    return replace(rules, **changes)


class ServiceBench:
    """A service on a memory store, with everything around it within reach."""

    def __init__(
        self,
        store: MemoryStore | None = None,
        rules: TimerRules | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        self.store = store or MemoryStore()
        self.clock = clock or VirtualClock()
        self.wakeups = RecordingWakeUps()
        self.known = KnownNamespaces()
        self.namespaces = Namespaces(self.store, self.known)
        http = HttpDestination(_UNUSED_CLIENT, self.clock, DEFAULT_CALLBACK_TIMEOUT_MS)
        missing: dict[type[Callback], str] = {
            NatsCallback: "'nats' needs a NATS server",
            BusCallback: "'bus' needs a broker",
        }
        self.destination = DestinationRouter({HttpCallback: http}, missing, self.clock)
        self.service = self.service_with(rules or timer_rules())

    @property
    def restoring(self) -> Restoring:
        rules = timer_rules(min_delay_ms=0, past_is_due=True)
        parts = (self.store, self.clock, self.wakeups, self.destination, self.namespaces)
        return Restoring(*parts, rules, turns=self.service.turns)

    def service_with(self, rules: TimerRules) -> TimerService:
        return TimerService(
            self.store, self.clock, self.wakeups, self.destination, self.namespaces, rules
        )

    async def open(self) -> "ServiceBench":
        await self.namespaces.add_all([ConfiguredNamespace("default")])
        return self

    async def claim_all(self) -> None:
        """Let everything that is due be executing, as the engine would."""
        leases = await own_shards(self.store)
        now = self.clock.now()
        await self.store.claim_due(leases, now=now, until_inclusive=now, limit=1_000)
