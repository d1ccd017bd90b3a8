"""The methods of the store ports, each handed to the writer or to a reader."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

from msgspec import UNSET

from duetime.domain.bulk import BulkOperation
from duetime.domain.errors import StorageFull, StoreUnavailable
from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch, ShardNumber, TimerKey
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.timer import Claim, Timer, TimerStatus, unfinished_of
from duetime.domain.transitions import Change, Redrive, Settlement
from duetime.ports.inspection import DueCount, LiveCounts, NamespaceCounts
from duetime.ports.leases import ShardState
from duetime.ports.store import (
    Capabilities,
    ClaimBatch,
    ClaimStart,
    ConditionalResult,
    CreateRequest,
    CreateResult,
    Leases,
    NamespaceChanges,
    OnExisting,
    Page,
    PageQuery,
    ScanEntry,
    ScanQuery,
)
from duetime.stores.namespace_changes import ChangeLog
from duetime.stores.sqlite import changing, claiming, leasing, lists, namespaces, pruning
from duetime.stores.sqlite.connections import Reader, real_path
from duetime.stores.sqlite.copying.unfinished import open_whole
from duetime.stores.sqlite.creating import (
    NewTimer,
    all_exist,
    create_timers,
    is_one_statement,
    read_existing,
)
from duetime.stores.sqlite.disk.checkpointer import LogStatus
from duetime.stores.sqlite.disk.failure import EndOfProcess, OnFailure
from duetime.stores.sqlite.disk.opening import OpenFile
from duetime.stores.sqlite.disk.space import DiskStatus
from duetime.stores.sqlite.endpoints.pauses import SqlitePauseStore
from duetime.stores.sqlite.namespaces import read_operations
from duetime.stores.sqlite.observing import due_counts
from duetime.stores.sqlite.observing.lateness_ledger import SqliteLatenessLedger
from duetime.stores.sqlite.restoring import restore_timers
from duetime.stores.sqlite.searching.searches import SqliteSearches
from duetime.stores.sqlite.security.store import SqliteSecurityStore
from duetime.stores.sqlite.settling import settle
from duetime.stores.sqlite.tables import get_timer
from duetime.stores.sqlite.writer import BatchOperation, Writer
from duetime.telemetry.metrics.catalogue.store import COMMIT_SIZE
from duetime.telemetry.metrics.recording import Histogram, Series

_MAX_TRIES = 10
"""Attempts to create a timer that exists when it is written and is gone when it is read."""

_EXISTING_AT_ONCE = 50
"""Existing timers in one read, so that other reads get their turn."""

_Write = Callable[[Sequence[CreateRequest]], Awaitable[list[CreateResult | None]]]

_CREATE = BatchOperation(create_timers, is_one_statement)
_SETTLE = BatchOperation(settle)


class SqliteStore:
    """Implements the ports of timers, leases and bulk operations on one file, for one process; and
    by `security` that of keys, secrets and the audit log."""

    capabilities = Capabilities(durable=True, shared_by_nodes=False)

    def __init__(
        self, path: Path, *, reserve_bytes: int = 0, on_failure: OnFailure | None = None
    ) -> None:
        """While less than `reserve_bytes` are free on the disk, nothing new is accepted.
        `on_failure` replaces the end of the process, in tests."""
        self._path = real_path(path)
        self._reserve_bytes = reserve_bytes
        self._on_failure = EndOfProcess(self._path) if on_failure is None else on_failure
        self._opened: _Opened | None = None
        self.commit_sizes = Histogram(COMMIT_SIZE)
        self.security = SqliteSecurityStore(self._require_opened)
        self.lateness_ledger = SqliteLatenessLedger(self._require_opened)
        self.searches = SqliteSearches(self._require_opened)
        self.endpoint_pauses = SqlitePauseStore(self._require_opened)

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        file = await loop.run_in_executor(
            None, open_whole, self._path, self._reserve_bytes, self._on_failure
        )
        self._opened = _Opened(file, self._on_failure, self.commit_sizes.of())

    async def close(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    async def ping(self) -> None:
        """Read from the file, and see that the writer does not hang. Nothing is written: anybody
        may ask for this, and must not take the writer's time."""
        await self._quick.run(lambda statements: statements.first("SELECT 1 FROM namespaces"))
        await self._writer.progress()

    async def add_namespace(self, namespace: Namespace, *, in_reserve: bool = False) -> Namespace:
        refusal = None if in_reserve else self._refusal_of_new()
        add = partial(namespaces.add_namespace, namespace=namespace, refusal=refusal)
        with self._noting_change(namespace.name):
            return await self._writer.submit(add)

    async def change_namespace(self, name: str, options: NamespaceOptions) -> Namespace | None:
        change = partial(namespaces.change_namespace, name=name, options=options)
        with self._noting_change(name):
            return await self._writer.submit(change)

    async def remove_namespace(self, name: str) -> bool:
        return await self._writer.submit(partial(namespaces.remove_namespace, name=name))

    async def remove_pending(self, namespace: str, *, limit: int) -> int:
        return await self._writer.submit(
            partial(namespaces.remove_pending, namespace=namespace, limit=limit)
        )

    async def namespaces(self) -> Sequence[Namespace]:
        return await self._quick.run(namespaces.read_namespaces)

    async def find_namespaces(self, names: Collection[str]) -> Sequence[Namespace]:
        return await self._quick.run(partial(namespaces.find_namespaces, names=names))

    async def namespaces_changed(self, since: str | None) -> NamespaceChanges:
        return await self._require_opened().namespace_changes.answer(self, since)

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        refusal = self._refusal_of_new()
        if refusal is not None and not await self._quick.run(partial(all_exist, requests=requests)):
            raise refusal
        results = await self._write_new(requests)
        if None not in results:
            return cast(list[CreateResult], results)
        return await self._with_existing(requests, results, self._write_new)

    async def _write_new(self, requests: Sequence[CreateRequest]) -> list[CreateResult | None]:
        new = [NewTimer.of(request) for request in requests]
        return list(await self._writer.submit_batch(_CREATE, new))

    async def restore(self, timers: Sequence[Timer]) -> list[CreateResult]:
        self._refuse_new()
        requests = [CreateRequest(timer, OnExisting.KEEP) for timer in timers]
        results = await self._write_restored(requests)
        return await self._with_existing(requests, results, self._write_restored)

    async def _write_restored(self, requests: Sequence[CreateRequest]) -> list[CreateResult | None]:
        new = [NewTimer.of(request) for request in requests]
        return await self._writer.submit(partial(restore_timers, new=new))

    async def _with_existing(
        self, requests: Sequence[CreateRequest], results: list[CreateResult | None], write: _Write
    ) -> list[CreateResult]:
        """The results, completed with timers that exist. All creates wait for these reads. `write`
        is called again for timers that are gone by then."""
        for _ in range(_MAX_TRIES):
            missing = [index for index, result in enumerate(results) if result is None]
            for start in range(0, len(missing), _EXISTING_AT_ONCE):
                some = missing[start : start + _EXISTING_AT_ONCE]
                read = partial(read_existing, requests=[requests[index] for index in some])
                for index, existing in zip(some, await self._quick.run(read), strict=True):
                    results[index] = existing
            # A timer that existed and is gone by now can be created after all.
            gone = [index for index in missing if results[index] is None]
            if not gone:
                return cast(list[CreateResult], results)
            written = await write([requests[index] for index in gone])
            for index, result in zip(gone, written, strict=True):
                results[index] = result
        raise StoreUnavailable("timers were forgotten as fast as they were created: try again")

    async def get(self, key: TimerKey) -> Timer | None:
        return await self._quick.run(partial(get_timer, key=key))

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        if change.callback is not UNSET or change.metadata is not UNSET:
            self._refuse_new()
        return await self._writer.submit(
            partial(changing.change_if_pending, key=key, change=change)
        )

    async def cancel_if_pending(
        self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        cancel = partial(changing.cancel_if_pending, only_updated_at=only_updated_at)
        return await self._writer.submit(partial(cancel, key=key, now=now))

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        return await self._writer.submit(partial(changing.remove_if_pending, key=key))

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        self._refuse_new()
        return await self._writer.submit(
            partial(changing.redrive_if_failed, redrives=redrives, now=now)
        )

    async def page(self, query: PageQuery) -> Page:
        return await self._lists.run(partial(lists.read_page, query=query))

    async def scan(self, query: ScanQuery) -> list[Timer]:
        return await self._lists.run(partial(lists.scan, query=query))

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        return await self._lists.run(partial(lists.scan_entries, query=query))

    async def count_scan(self, query: ScanQuery) -> int:
        return await self._lists.run(partial(lists.count_scan, query=query))

    async def claim_due(
        self,
        leases: Leases,
        *,
        now: Instant,
        until_inclusive: Instant,
        limit: int,
        start: ClaimStart | None = None,
    ) -> ClaimBatch:
        return await self._writer.submit(
            partial(
                claiming.claim_due,
                leases=leases,
                now=now,
                until_inclusive=until_inclusive,
                limit=limit,
            )
        )

    async def first_due(
        self, leases: Leases, *, before_exclusive: Instant
    ) -> dict[ShardNumber, Instant]:
        find = partial(claiming.first_due, leases=leases, before_exclusive=before_exclusive)
        return await self._quick.run(find)

    async def executing(self, leases: Leases) -> Sequence[Claim]:
        return await self._quick.run(partial(claiming.executing, leases=leases))

    async def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        return list(await self._writer.submit_batch(_SETTLE, settlements))

    async def recover(self, leases: Leases, *, limit: int = 10_000) -> list[Instant]:
        return await self._writer.submit(partial(claiming.recover, leases=leases, limit=limit))

    async def prune(
        self, *, finished_before: Instant, limit: int, namespace: str | None = None
    ) -> int:
        return await self._writer.submit(
            partial(
                pruning.prune, finished_before=finished_before, limit=limit, namespace=namespace
            )
        )

    async def clock_believed_at(self) -> Instant | None:
        return await self._quick.run(pruning.clock_believed_at)

    async def mark_clock_believed(self, now: Instant) -> None:
        await self._writer.submit(partial(pruning.mark_clock_believed, now=now))

    async def counts(self, namespace: str | None = None) -> dict[TimerStatus, int]:
        return await self._quick.run(partial(lists.read_counts, namespace=namespace))

    async def count_unfinished(self, namespace: str, *, exact_up_to: int) -> int:
        return unfinished_of(await self.counts(namespace))

    async def count_by_namespace(self, *, most_names: int) -> NamespaceCounts:
        return await self._lists.run(partial(lists.count_by_namespace, most_names=most_names))

    async def count_live(self, now: Instant, *, most: int) -> LiveCounts:
        return await self._lists.run(partial(lists.count_live, now=now, most=most))

    async def count_due(
        self, bounds: Sequence[Instant], *, most: int, namespaces: Collection[str] | None = None
    ) -> Sequence[DueCount]:
        return await due_counts.count_in_parts(self._lists, bounds, most, namespaces)

    async def shards(self) -> Sequence[ShardState]:
        return await self._quick.run(leasing.read_shards)

    async def claim_shards(
        self, seen: Mapping[ShardNumber, Epoch], *, owner: str
    ) -> dict[ShardNumber, Epoch]:
        return await self._writer.submit(partial(leasing.claim_shards, seen=seen, owner=owner))

    async def release_shards(self, leases: Leases) -> set[ShardNumber]:
        return await self._writer.submit(partial(leasing.release_shards, leases=leases))

    async def add_operation(self, operation: BulkOperation) -> None:
        await self._writer.submit(partial(namespaces.add_operation, operation=operation))

    async def operation(self, operation_id: str) -> BulkOperation | None:
        return await self._quick.run(partial(namespaces.get_operation, operation_id=operation_id))

    async def operations(
        self, *, running: bool, limit: int, namespaces: Collection[str] | None = None
    ) -> Sequence[BulkOperation]:
        read = partial(read_operations, running=running, limit=limit, namespaces=namespaces)
        return await self._quick.run(read)

    async def replace_operation(self, operation: BulkOperation) -> bool:
        return await self._writer.submit(partial(namespaces.replace_operation, operation=operation))

    async def forget_operations(self, *, ended_before: Instant, limit: int) -> int:
        return await self._writer.submit(
            partial(namespaces.forget_operations, ended_before=ended_before, limit=limit)
        )

    @property
    def disk(self) -> DiskStatus | None:
        """None while the store is closed."""
        opened = self._opened
        if opened is None:
            return None
        space = opened.space
        is_full = opened.writer.found_no_room or space.is_full
        return DiskStatus(space.free_bytes, space.reserve_bytes, space.is_short, is_full)

    @property
    def log(self) -> LogStatus | None:
        """None while the store is closed."""
        return None if self._opened is None else self._opened.checkpointer.status

    def _refusal_of_new(self) -> StorageFull | None:
        space = self._require_opened().space
        if not space.is_short:
            return None
        return StorageFull(
            f"the disk is nearly full: {space.free_bytes} bytes are free, and "
            f"{space.reserve_bytes} are reserved (DISK_RESERVE_BYTES)"
        )

    def _refuse_new(self) -> None:
        refusal = self._refusal_of_new()
        if refusal is not None:
            raise refusal

    @contextmanager
    def _noting_change(self, name: str) -> Iterator[None]:
        """Also if the write fails: it may have taken place."""
        changes = self._require_opened().namespace_changes
        try:
            yield
        finally:
            changes.note(name)

    @property
    def _writer(self) -> Writer:
        return self._require_opened().writer

    @property
    def _quick(self) -> Reader:
        return self._require_opened().quick_reader

    @property
    def _lists(self) -> Reader:
        return self._require_opened().list_reader

    def _require_opened(self) -> "_Opened":
        if self._opened is None:
            raise StoreUnavailable("the store is closed")
        return self._opened


class _Opened:
    """Everything that exists only while the file is open. Made on the event loop's thread."""

    def __init__(self, file: OpenFile, on_failure: OnFailure, commit_sizes: Series) -> None:
        self.quick_reader = file.quick_reader
        self.list_reader = file.list_reader
        self.space = file.space
        self.checkpointer = file.checkpointer
        self.writer = Writer(
            file.connection, on_failure, file.checkpointer.between_commits, commit_sizes
        )
        self.namespace_changes = ChangeLog()
        self._closing = file.closing

    async def close(self) -> None:
        await self.writer.close()
        await asyncio.to_thread(self._closing.close)
