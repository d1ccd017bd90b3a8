"""The audit log: entries on their way into the store, and back from it."""

import asyncio
import math
import random
from collections import deque
from collections.abc import Sequence
from itertools import islice

import structlog
from msgspec.structs import asdict

from duetime.domain.errors import StoreUnavailable
from duetime.domain.security.audit import AuditEntry
from duetime.ports.clock import Clock
from duetime.ports.security import AuditQuery, SecurityStore
from duetime.service.security.refusals import RefusalThrottle
from duetime.service.timer_service import new_uuid7

_log = structlog.get_logger()

MAX_BATCH = 500

MAX_BACKLOG = 10_000
"""Entries that wait in memory for a store that does not take them."""

WAIT_SECONDS = 2.0
"""Time that a request waits for its entry to be durable; its work is done by then."""

SUMMARY_SECONDS = 10.0
"""Time after which entries that were left out are counted in the log."""

REFUSALS = "request.refuse"
"""The action of an entry that counts refused requests without one."""

LEFT_OUT = "LEFT_OUT"

CLOSE_SECONDS = 3.0
"""Time that a stop waits for the entries in memory to be written."""

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0

Durable = asyncio.Future[None]


class AuditLog:
    """Writes entries in the order in which they come, and those that wait together at once.

    A request is answered when its entry is durable. If the store refuses an entry, or does not take
    it within `WAIT_SECONDS`, the request is answered all the same: its entry is logged, kept in a
    bounded memory, and written when the store is back. Until then no other request waits either. An
    entry that finds no room is logged and counted in `dropped`.

    Entries of refused requests are written at a limited rate for each key, and not while the store
    is short of room: nobody may fill the store by requests that are refused.
    """

    def __init__(self, store: SecurityStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._backlog: deque[tuple[AuditEntry, Durable]] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._is_late = False
        self._throttle = RefusalThrottle(clock)
        self._summary: asyncio.Task[None] | None = None
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """Entries that are not written yet."""
        return len(self._backlog)

    async def entries(self, query: AuditQuery) -> Sequence[AuditEntry]:
        """Raises `StoreUnavailable`."""
        if query.namespaces is not None and not query.namespaces:
            return []
        return await self._store.audit_entries(query)

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Return when the entries are durable, or logged and kept for later. Never raises."""
        if not entries:
            return
        durable = self.submit(entries)
        if durable is None or self._is_late:
            self._log_unwritten(entries)
            return
        # Not cancelled with its waiter: the entries stay in the backlog.
        await asyncio.wait({durable}, timeout=WAIT_SECONDS)
        if not durable.done():
            self._fall_behind(f"no answer within {WAIT_SECONDS:g} s")
        if durable.cancelled():
            self._log_unwritten(entries)

    def append_later(self, entries: Sequence[AuditEntry]) -> None:
        """For requests that failed because the store did: nobody waits for it once more. The
        entries are logged, and written when the store is back."""
        if entries:
            self.submit(entries)
            self._log_unwritten(entries)

    async def append_refused(self, entries: Sequence[AuditEntry]) -> None:
        """As `append`, for requests that changed nothing. The entries of a key that are too many
        are left out and counted in one entry; while the store is short of room, entries are only
        logged."""
        admitted = [entry for entry in entries if self._throttle.admits(entry)]
        if len(admitted) < len(entries) and self._summary is None:
            summary = asyncio.get_running_loop().create_task(self._summarise_later())
            self._summary = summary
        if self._store.is_short:
            self._log_unwritten(admitted)
        else:
            await self.append(admitted)

    def submit(self, entries: Sequence[AuditEntry]) -> Durable | None:
        """Begin to write the entries. The result is set when the last one is durable; None if there
        was no room for it."""
        loop = asyncio.get_running_loop()
        durable: Durable | None = None
        for entry in entries:
            durable = None
            if len(self._backlog) < MAX_BACKLOG:
                durable = loop.create_future()
                self._backlog.append((entry, durable))
            else:
                self.dropped += 1
        if self._backlog and self._writer is None:
            self._writer = loop.create_task(self._write_until_empty(), name="audit-log")
        return durable

    async def close(self) -> None:
        """Write what is left, unless that takes too long. The store is still open."""
        if self._summary is not None:
            self._summary.cancel()
            self._summarise()
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=CLOSE_SECONDS)
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait({self._writer})
        if self._backlog:
            _log.error("audit.backlog_lost", entries=len(self._backlog))

    async def _summarise_later(self) -> None:
        await self._clock.sleep(SUMMARY_SECONDS)
        self._summarise()

    def _summarise(self) -> None:
        """Count what was left out, in one entry for each key. Requests of a key may have been about
        several namespaces, so the entry has none."""
        self._summary = None
        for left_out in self._throttle.take_left_out():
            entry = AuditEntry(
                id=new_uuid7(),
                at=self._clock.now(),
                actor=left_out.last.actor,
                key_id=left_out.last.key_id,
                address=left_out.last.address,
                action=REFUSALS,
                result=LEFT_OUT,
                details=f"requests={left_out.requests}",
            )
            _log.warning("audit.refusals_left_out", **_fields(entry))
            if not self._store.is_short:
                self.submit([entry])

    async def _write_until_empty(self) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        try:
            while self._backlog:
                batch = [entry for entry, _ in islice(self._backlog, MAX_BATCH)]
                try:
                    await self._write(batch)
                except StoreUnavailable as error:
                    self._fall_behind(error.message)
                    await self._clock.sleep(pause_seconds)
                    pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
                    continue
                pause_seconds = FIRST_PAUSE_SECONDS
                for _ in batch:
                    _, durable = self._backlog.popleft()
                    if not durable.done():
                        durable.set_result(None)
                self._catch_up()
        finally:
            self._writer = None

    async def _write(self, batch: Sequence[AuditEntry]) -> None:
        """Write the entries. One that the store cannot hold is logged, and keeps no other out."""
        try:
            await self._store.append_audit(batch)
        except StoreUnavailable:
            raise
        except Exception:
            if len(batch) == 1:
                self.dropped += 1
                _log.exception("audit.entry_refused", **_fields(batch[0]))
                return
            for entry in batch:
                await self._write([entry])

    def _fall_behind(self, reason: str) -> None:
        """Let nobody wait for the store until it has taken an entry."""
        if not self._is_late:
            self._is_late = True
            _log.error("audit.store_late", reason=reason, waiting=len(self._backlog))
        for _, durable in self._backlog:
            durable.cancel()

    def _catch_up(self) -> None:
        if self._is_late and len(self._backlog) < MAX_BATCH:
            self._is_late = False
            _log.info("audit.caught_up", dropped=self.dropped)

    def _log_unwritten(self, entries: Sequence[AuditEntry]) -> None:
        for entry in entries:
            _log.error("audit.entry_unwritten", **_fields(entry))


def _fields(entry: AuditEntry) -> dict[str, object]:
    return {name: value for name, value in asdict(entry).items() if value is not None}


class Sampling:
    """Picks a share of the requests, each one independently of the others."""

    def __init__(self, share: float) -> None:
        """`share` is above 0, and at most 1."""
        self._share = share
        self._left = self._gap()

    def passes(self) -> bool:
        """Pass over the next request, unless it is to be picked: `picks` is to be asked then."""
        if self._left > 1:
            self._left -= 1
            return True
        return False

    def picks(self) -> bool:
        """Whether this request is picked."""
        self._left -= 1
        if self._left:
            return False
        self._left = self._gap()
        return True

    def _gap(self) -> int:
        """The number of the next picked request, as if each one were drawn for itself."""
        if self._share >= 1:
            return 1
        return 1 + int(math.log(1 - random.random()) / math.log1p(-self._share))
