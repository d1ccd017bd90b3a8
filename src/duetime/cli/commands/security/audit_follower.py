"""Entries of the audit log as they are made."""

import asyncio
import sys
from collections.abc import Callable, Mapping

from duetime.cli.client.answers import AuditEntry, AuditLogPage
from duetime.cli.client.platform import NoAnswer
from duetime.cli.client.v1 import V1Client
from duetime.cli.terminal import ExitCode, fail
from duetime.clock import SystemClock
from duetime.domain.instants import Instant, format_instant, parse_instant, plus_ms
from duetime.domain.limits import MAX_V1_PAGE_TIMERS
from duetime.ports.clock import Clock

POLL_SECONDS = 1.0

OVERLAP_MS = 10_000
"""Time for which entries may come late: nodes write them side by side, by clocks of their own."""

CATCH_UP_SECONDS = 60.0
"""Time after an outage in which older entries may come: a node writes then what it had to keep."""

MAX_PAGES = 20
"""Pages of one look. More entries at once are skipped."""

Show = Callable[[AuditEntry], None]


class AuditFollower:
    """Shows each entry once, oldest first, until Ctrl-C. A server that goes away is waited for,
    unless it was never there."""

    def __init__(
        self,
        client: V1Client,
        path: str,
        query: Mapping[str, str | int],
        limit: int,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._path = path
        self._query = query
        self._limit = limit
        self._clock = clock or SystemClock()
        self._seen: dict[str, Instant] = {}
        self._from: Instant | None = None
        self._advance_after_seconds = 0.0
        self._is_away = False

    def run(self, show: Show) -> None:
        try:
            with self._client.kept_open():
                self._show_first(show)
                while True:
                    asyncio.run(self._clock.sleep(POLL_SECONDS))
                    for entry in self._look():
                        show(entry)
        except KeyboardInterrupt:
            return

    def _show_first(self, show: Show) -> None:
        try:
            newest = self._read({**self._query, "limit": self._limit}, pages=1)
            for entry in reversed(newest):
                show(entry)
            self._remember(newest)
            if newest:
                # Older entries of the overlap are not new, though they were not shown.
                older = [each for each in self._unseen() if _at(each) < _at(newest[-1])]
                self._remember(older)
        except NoAnswer as error:
            fail(str(error), ExitCode.UNREACHABLE)

    def _look(self) -> list[AuditEntry]:
        """The new entries, oldest first."""
        try:
            entries = self._unseen()
        except NoAnswer as error:
            self._advance_after_seconds = self._clock.monotonic() + CATCH_UP_SECONDS
            if not self._is_away:
                self._is_away = True
                _say(f"{error}; waiting for it")
            return []
        if self._is_away:
            self._is_away = False
            _say("the server is back")
        self._remember(entries)
        return entries[::-1]

    def _unseen(self) -> list[AuditEntry]:
        query = {**self._query, "limit": MAX_V1_PAGE_TIMERS}
        if self._from is not None:
            query["from"] = format_instant(self._from)
        return [each for each in self._read(query, MAX_PAGES) if each.id not in self._seen]

    def _read(self, query: Mapping[str, str | int], pages: int) -> list[AuditEntry]:
        """Entries, newest first. Raises `NoAnswer`."""
        entries: list[AuditEntry] = []
        for left in reversed(range(pages)):
            page = self._client.read_as(AuditLogPage, self._client.poll(self._path, query))
            entries += page.entries
            if page.next_cursor is None:
                break
            query = {**query, "cursor": page.next_cursor}
            if not left and pages > 1:
                _say(f"more than {len(entries):,} entries at once: the oldest are not shown")
        return entries

    def _remember(self, entries: list[AuditEntry]) -> None:
        self._seen.update((each.id, _at(each)) for each in entries)
        if self._seen and self._clock.monotonic() >= self._advance_after_seconds:
            self._from = plus_ms(max(self._seen.values()), -OVERLAP_MS)
            self._seen = {id: at for id, at in self._seen.items() if at >= self._from}


def _at(entry: AuditEntry) -> Instant:
    return parse_instant(entry.at)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
