"""The PostgreSQL store: the ports' methods, each handed to the connections it may use."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, NodeFacts
from duetime.ports.store import (
    Capabilities,
    ClaimBatch,
    ConditionalResult,
    CreateRequest,
    CreateResult,
    Leases,
    Page,
    PageQuery,
    ScanQuery,
)
from duetime.stores.postgres import (
    changing,
    counting,
    leasing,
    membership,
    namespaces,
    paging,
    pruning,
    reading,
    recovering,
    redriving,
    scanning,
    schema,
    settling,
)
from duetime.stores.postgres.claiming import Claiming
from duetime.stores.postgres.connections import LISTS_BY_INDEX, PLANS_BY_INDEX, Connections
from duetime.stores.postgres.creating import Creating
from duetime.stores.postgres.options import PostgresOptions

_log = structlog.get_logger()

_CREATE_CONNECTIONS = 3
_ENGINE_CONNECTIONS = 4
_LIST_CONNECTIONS = 3


class PostgresStore:
    """Implements the timer, lease and member store ports on a database that nodes share."""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._opened: _Opened | None = None
        self.capabilities = Capabilities(
            name="postgresql",
            durable=True,
            shared_by_nodes=True,
            history_step=options.history_step,
        )

    async def open(self) -> None:
        for version in await schema.migrate(self._options):
            _log.info("store.migrated", version=version, schema=self._options.schema)
        opened = _Opened(self._options)
        await opened.open()
        self._opened = opened
        await self._warn_if_not_durable()

    async def close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    async def ping(self) -> None:
        """Every way has to answer: one alone would not notice another that hangs. Lists may be
        at work for long, and that is no fault."""
        for connections in (self._ways.creates, self._ways.engine, self._ways.reads):
            await connections.fetch_value("SELECT 1")

    async def add_namespace(self, namespace: Namespace) -> Namespace:
        return await namespaces.add_namespace(self._ways.reads, namespace)

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        return await namespaces.change_namespace(self._ways.reads, name, options)

    async def namespaces(self) -> Sequence[Namespace]:
        return await namespaces.read_namespaces(self._ways.reads)

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        return await self._ways.creating.create(requests)

    async def get(self, key: TimerKey) -> Timer | None:
        return await reading.get_timer(self._ways.reads, key)

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        return await changing.change_if_pending(self._ways.reads, key, change)

    async def cancel_if_pending(self, key: TimerKey, now: Instant) -> ConditionalResult | None:
        step = self._options.history_step
        return await changing.cancel_if_pending(self._ways.reads, key, now, step)

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        return await changing.remove_if_pending(self._ways.reads, key)

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        return await redriving.redrive_if_failed(self._ways.reads, redrives, now)

    async def page(self, query: PageQuery) -> Page:
        return await paging.read_page(self._ways.lists, query)

    async def scan(self, query: ScanQuery) -> list[Timer]:
        return await scanning.scan(self._ways.lists, query)

    async def count_scan(self, query: ScanQuery) -> int:
        return await scanning.count_scan(self._ways.lists, query)

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        since_inclusive: Instant | None = None,
    ) -> ClaimBatch:
        return await self._ways.claiming.claim_due(
            leases, now, until_inclusive, limit, since_inclusive
        )

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        return await self._ways.claiming.executing(leases)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return await settling.settle(self._ways.engine, settlements, self._options.history_step)

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        step = self._options.history_step
        return await recovering.recover(self._ways.engine, leases, limit, step)

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        self._require_opened()
        if namespace is None:
            return await pruning.prune(self._options, finished_before, limit)
        return await pruning.prune_namespace(self._options, namespace, finished_before, limit)

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        async with self._ways.lists.borrow() as connection:
            counts = await counting.count(connection, namespace, TimerStatus)
        return {status: counted.timers for status, counted in counts.items()}

    async def shards(self) -> Sequence[ShardState]:
        return await leasing.read_shards(self._ways.engine)

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        return await leasing.claim_shards(self._ways.engine, seen, owner)

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        return await leasing.release_shards(self._ways.engine, leases)

    async def heartbeat(self, node: str, facts: NodeFacts, *, join: bool) -> ClusterView:
        return await membership.heartbeat(self._ways.engine, node, facts, join=join)

    async def leave(self, node: str) -> None:
        await membership.leave(self._ways.engine, node)

    async def forget_member(self, node: str, *, seen_beat: int) -> bool:
        return await membership.forget_member(self._ways.engine, node, seen_beat)

    async def _warn_if_not_durable(self) -> None:
        for setting in ("fsync", "full_page_writes"):
            if await self._ways.reads.fetch_value("SELECT current_setting($1)", setting) == "off":
                _log.warning(
                    "store.not_durable",
                    setting=setting,
                    advice="timers may be lost when the database's machine fails: turn it on",
                )

    @property
    def _ways(self) -> "_Opened":
        return self._require_opened()

    def _require_opened(self) -> "_Opened":
        if self._opened is None:
            raise StoreUnavailable("the store is closed")
        return self._opened


class _Opened:
    """The ways to the database, apart from each other so that no kind of work starves another:
    lists that skip far may keep all of theirs busy, and timers still fire."""

    def __init__(self, options: PostgresOptions) -> None:
        self.creates = Connections(options, PLANS_BY_INDEX, _CREATE_CONNECTIONS)
        self.engine = Connections(options, PLANS_BY_INDEX, _ENGINE_CONNECTIONS)
        self.reads = Connections(options, PLANS_BY_INDEX, options.pool_size)
        self.lists = Connections(options, LISTS_BY_INDEX, _LIST_CONNECTIONS)
        self.all = (self.creates, self.engine, self.reads, self.lists)
        self.creating = Creating(self.creates)
        self.claiming = Claiming(self.engine)

    async def open(self) -> None:
        for connections in self.all:
            await connections.open()

    async def close(self) -> None:
        await asyncio.gather(*(connections.close() for connections in self.all))
