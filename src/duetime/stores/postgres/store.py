"""The PostgreSQL store: the methods of the ports, each with the connection pool it uses."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

import structlog

from duetime.domain.bulk import BulkOperation
from duetime.domain.errors import StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.inspection import DueCount, LiveCounts, NamespaceCounts
from duetime.ports.leases import ShardState
from duetime.ports.membership import ClusterView, NodeFacts
from duetime.ports.store import (
    Capabilities,
    ClaimBatch,
    ClaimStart,
    ConditionalResult,
    CreateRequest,
    CreateResult,
    Leases,
    NamespaceChanges,
    Page,
    PageQuery,
    ScanEntry,
    ScanQuery,
)
from duetime.stores.postgres import (
    changing,
    cluster,
    history,
    lists,
    namespaces,
    restoring,
    schema,
    settling,
)
from duetime.stores.postgres.claiming import Claiming
from duetime.stores.postgres.connections import (
    ANY_PLAN,
    LISTS_BY_INDEX,
    PLANS_BY_INDEX,
    Connections,
    PatientConnections,
    connected,
)
from duetime.stores.postgres.copying.unfinished import refuse_half_copied
from duetime.stores.postgres.creating import Creating
from duetime.stores.postgres.endpoints.pauses import PostgresPauseStore
from duetime.stores.postgres.inspection import census, due_counts
from duetime.stores.postgres.namespaces import read_operations
from duetime.stores.postgres.observing.lateness_ledger import PostgresLatenessLedger
from duetime.stores.postgres.options import PostgresOptions
from duetime.stores.postgres.searching.searches import PostgresSearches
from duetime.stores.postgres.security.store import PostgresSecurityStore

_log = structlog.get_logger()

_CREATE_CONNECTIONS = 3
_ENGINE_CONNECTIONS = 4
_LIST_CONNECTIONS = 3
_PATIENT_CONNECTIONS = 2


class PostgresStore:
    """Implements the ports of timers, leases, members and bulk operations on a database that nodes
    share; and by `security` that of keys, secrets and the audit log."""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._opened: _Pools | None = None
        self.security = PostgresSecurityStore(self._require_opened)
        self.lateness_ledger = PostgresLatenessLedger(self._require_opened)
        self.searches = PostgresSearches(self._require_opened)
        self.endpoint_pauses = PostgresPauseStore(self._require_opened)
        self.capabilities = Capabilities(
            durable=True, shared_by_nodes=True, history_step=options.history_step
        )

    async def open(self) -> None:
        for version in await schema.migrate(self._options):
            _log.info("store.migrated", version=version, schema=self._options.schema)
        async with connected(self._options, ANY_PLAN) as connection:
            await refuse_half_copied(connection, self._options)
        opened = _Pools(self._options)
        await opened.open()
        self._opened = opened
        await namespaces.renumber_changes(opened.reads)
        await census.begin_anew(opened.reads)
        await self._warn_if_not_durable()

    async def close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    async def ping(self) -> None:
        """Every pool must answer, since one may hang alone; but lists may rightly take long."""
        for connections in (self._pools.creates, self._pools.engine, self._pools.reads):
            await connections.fetch_value("SELECT 1")

    async def add_namespace(self, namespace: Namespace, *, in_reserve: bool = False) -> Namespace:
        return await namespaces.add_namespace(self._pools.reads, namespace)

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        return await namespaces.change_namespace(self._pools.reads, name, options)

    async def remove_namespace(self, name: str) -> bool:
        return await namespaces.remove_namespace(self._pools.reads, name)

    async def remove_pending(self, namespace: str, *, limit: int) -> int:
        return await namespaces.remove_pending(self._pools.reads, namespace, limit)

    async def namespaces(self) -> Sequence[Namespace]:
        return await namespaces.read_namespaces(self._pools.reads)

    async def find_namespaces(self, names: Collection[str]) -> Sequence[Namespace]:
        return await namespaces.find_namespaces(self._pools.reads, names)

    async def namespaces_changed(self, since: str | None) -> NamespaceChanges:
        return await namespaces.read_changes(self._pools.reads, since)

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        return await self._pools.creating.create(requests)

    async def restore(self, timers: Sequence[Timer]) -> list[CreateResult]:
        return await restoring.restore(self._pools.creates, timers, self._options.history_step)

    async def get(self, key: TimerKey) -> Timer | None:
        return await changing.get_timer(self._pools.reads, key)

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        return await changing.change_if_pending(self._pools.reads, key, change)

    async def cancel_if_pending(
        self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        step = self._options.history_step
        return await changing.cancel_if_pending(self._pools.reads, key, now, step, only_updated_at)

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        return await changing.remove_if_pending(self._pools.reads, key)

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        return await changing.redrive_if_failed(self._pools.reads, redrives, now)

    async def page(self, query: PageQuery) -> Page:
        return await lists.read_page(self._pools.lists, query)

    async def scan(self, query: ScanQuery) -> list[Timer]:
        return await lists.scan(self._pools.lists, query)

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        return await lists.scan_entries(self._pools.lists, query)

    async def count_scan(self, query: ScanQuery) -> int:
        return await lists.count_scan(self._pools.lists, query)

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        return await self._pools.claiming.claim_due(leases, now, until_inclusive, limit, start)

    async def first_due(
        self, leases: Leases, *, before_exclusive: Instant
    ) -> dict[ShardNumber, Instant]:
        return await self._pools.claiming.first_due(leases, before_exclusive)

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        return await self._pools.claiming.executing(leases)

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return await settling.settle(self._pools.engine, settlements, self._options.history_step)

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        step = self._options.history_step
        return await settling.recover(self._pools.engine, leases, limit, step)

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        self._require_opened()
        if namespace is None:
            return await history.prune(self._options, finished_before, limit)
        return await history.prune_namespace(self._options, namespace, finished_before, limit)

    async def clock_believed_at(self) -> Instant | None:
        return await history.clock_believed_at(self._pools.reads)

    async def mark_clock_believed(self, now: Instant) -> None:
        await history.mark_clock_believed(self._pools.reads, now)

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        async with self._pools.lists.borrow() as connection:
            counts = await lists.count(connection, namespace, list(TimerStatus))
        return {status: counted.timers for status, counted in counts.items()}

    async def count_unfinished(self, namespace: str, *, exact_up_to: int) -> int:
        return await lists.count_unfinished(self._pools.reads, namespace, exact_up_to)

    async def count_by_namespace(self, *, most_names: int) -> NamespaceCounts | None:
        return await census.count_by_namespace(self._pools.lists, self._options, most_names)

    async def count_live(self, now: Instant, *, most: int) -> LiveCounts | None:
        return await census.count_live(self._pools.lists, now, most)

    async def count_due(
        self, bounds: Sequence[Instant], *, most: int, namespaces: Collection[str] | None = None
    ) -> Sequence[DueCount] | None:
        return await due_counts.count_due(self._pools.lists, bounds, most, namespaces)

    async def shards(self) -> Sequence[ShardState]:
        return await cluster.read_shards(self._pools.engine)

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        return await cluster.claim_shards(self._pools.engine, seen, owner)

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        return await cluster.release_shards(self._pools.engine, leases)

    async def heartbeat(self, node: str, facts: NodeFacts, *, join: bool) -> ClusterView:
        return await cluster.heartbeat(self._pools.engine, node, facts, join=join)

    async def leave(self, node: str) -> None:
        await cluster.leave(self._pools.engine, node)

    async def hand_over(self, node: str, leases: Leases) -> set[ShardNumber]:
        return await cluster.hand_over(self._pools.engine, node, leases)

    async def finish(self, node: str, leases: Collection[tuple[ShardNumber, Epoch]]) -> None:
        await cluster.finish(self._pools.engine, node, leases)

    async def forget_member(self, node: str, *, seen_beat: int) -> bool:
        return await cluster.forget_member(self._pools.engine, node, seen_beat)

    async def add_operation(self, operation: BulkOperation) -> None:
        await namespaces.add_operation(self._pools.reads, operation)

    async def operation(self, operation_id: str) -> BulkOperation | None:
        return await namespaces.get_operation(self._pools.reads, operation_id)

    async def operations(
        self, *, running: bool, limit: int, namespaces: Collection[str] | None = None
    ) -> Sequence[BulkOperation]:
        return await read_operations(self._pools.reads, running, limit, namespaces)

    async def replace_operation(self, operation: BulkOperation) -> bool:
        return await namespaces.replace_operation(self._pools.reads, operation)

    async def forget_operations(self, *, ended_before: Instant, limit: int) -> int:
        return await namespaces.forget_operations(self._pools.reads, ended_before, limit)

    @property
    def connections(self) -> tuple[int, int] | None:
        """Open connections that wait, and that work; None while the store is closed."""
        if self._opened is None:
            return None
        pools = self._opened.all
        return sum(each.idle for each in pools), sum(each.used for each in pools)

    async def _warn_if_not_durable(self) -> None:
        for setting in ("fsync", "full_page_writes"):
            if await self._pools.reads.fetch_value("SELECT current_setting($1)", setting) == "off":
                _log.warning(
                    "store.not_durable",
                    setting=setting,
                    advice="timers may be lost when the database's machine fails: turn it on",
                )

    @property
    def _pools(self) -> "_Pools":
        return self._require_opened()

    def _require_opened(self) -> "_Pools":
        if self._opened is None:
            raise StoreUnavailable("the store is closed")
        return self._opened


class _Pools:
    """A connection pool for each kind of work, so that none starves another: timers still fire
    while lists with large offsets keep all their connections busy."""

    def __init__(self, options: PostgresOptions) -> None:
        self.creates = Connections(options, PLANS_BY_INDEX, _CREATE_CONNECTIONS)
        self.engine = Connections(options, PLANS_BY_INDEX, _ENGINE_CONNECTIONS)
        self.reads = Connections(options, PLANS_BY_INDEX, options.pool_size)
        self.lists = Connections(options, LISTS_BY_INDEX, _LIST_CONNECTIONS)
        self.patient = PatientConnections(
            options, PLANS_BY_INDEX, _PATIENT_CONNECTIONS, asked=self.engine
        )
        self.all = (self.creates, self.engine, self.reads, self.lists, self.patient)
        self.creating = Creating(self.creates)
        self.claiming = Claiming(self.engine, self.patient)

    async def open(self) -> None:
        for connections in self.all:
            await connections.open()

    async def close(self) -> None:
        await asyncio.gather(*(connections.close() for connections in self.all))
