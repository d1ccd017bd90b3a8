"""Imports: streams of any length, with one JSON object per line.

A line is a create, or a full line: a timer or a namespace with its whole state.
"""

import asyncio
from bisect import insort
from codecs import BOM_UTF8
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from math import ceil
from typing import Generic, TypeVar

from msgspec import UNSET, Struct, json
from msgspec.structs import replace

from duetime.api.http.caller import Caller
from duetime.api.http.values import STATUSES
from duetime.api.v1.answer_types import CountsAnswer, ImportAnswer, LineError, RestoredAnswer
from duetime.api.v1.batch_entries import BatchEntry, UnreadableEntry, decode_entry, entry_key
from duetime.api.v1.batches import BatchCreation, Outcome, decode_faultless
from duetime.api.v1.errors import item_error
from duetime.api.v1.full.reading import decode_full, full_key, is_full
from duetime.api.v1.full.restoration import FullRestoration
from duetime.api.v1.full.types import FullNamespace, FullTimer
from duetime.api.v1.request_types import CreateBody
from duetime.domain.errors import DuetimeError, NamespaceDiffers, TimerConflict, TooLarge
from duetime.domain.limits import MAX_BATCH_TIMERS, MAX_IMPORT_ERRORS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.timer import TimerStatus
from duetime.ports.store import CreateResult, Existence

BLOCK_BYTES = 400 * 1024
"""Size of the blocks in which lines are created, so that memory does not grow with the stream. With
small payloads a block is as many timers as the store writes at once."""

WRITES_AT_ONCE = 5
"""Blocks that the store writes at the same time, while others are decoded and read."""

FULL_LINE_FACTOR = 4
"""Size of a full line, as a multiple of the size allowed for others: it has the attempts, and a
payload with line breaks takes up to twice its size."""

FULL_LINE_START = b'{"full":'

Entry = BatchEntry | FullTimer | FullNamespace
E = TypeVar("E")

_decode_lines = json.Decoder(CreateBody).decode_lines


class Block(Struct, frozen=True):
    """Whole lines from number `first_line` on. Without content the block is one line that was
    dropped because it is longer than allowed."""

    first_line: int
    lines: int
    content: bytes | None


class LineBlocks:
    """Cuts the chunks of a stream into blocks of complete lines."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._ready: deque[Block] = deque()
        self._complete = bytearray()
        self._tail = bytearray()
        self._dropped_bytes = 0
        self._is_skipping = False
        self._next_line = 1

    @property
    def complete_bytes(self) -> int:
        """Size of the complete lines that have not been taken."""
        return len(self._complete)

    def feed(self, chunk: bytes) -> None:
        if self._is_skipping:
            skipped, newline, chunk = chunk.partition(b"\n")
            self._dropped_bytes += len(skipped) + len(newline)
            self._is_skipping = not newline
        end = chunk.rfind(b"\n") + 1
        if end:
            self._complete += self._tail
            self._complete += chunk[:end]
            self._tail = bytearray()
        self._tail += chunk[end:]
        if len(self._tail) > self._max_line_bytes and not self._may_be_long():
            self._close_block()
            self._ready.append(self._numbered(None))
            self._dropped_bytes += len(self._tail)
            self._tail = bytearray()
            self._is_skipping = True

    def _may_be_long(self) -> bool:
        """Whether the last line is a full one, and not longer than such lines may be."""
        return self._tail.startswith(FULL_LINE_START) and (
            len(self._tail) <= FULL_LINE_FACTOR * self._max_line_bytes
        )

    def take_dropped_bytes(self) -> int:
        """Size of what was dropped since the last call."""
        dropped, self._dropped_bytes = self._dropped_bytes, 0
        return dropped

    def end(self) -> None:
        """The stream has ended, so the last line is complete."""
        self._complete += self._tail
        self._tail = bytearray()

    def take(self) -> Block | None:
        """The next complete lines, if there are any."""
        if not self._ready:
            self._close_block()
        return self._ready.popleft() if self._ready else None

    def _close_block(self) -> None:
        content = bytes(self._complete)
        self._complete = bytearray()
        if content:
            self._ready.append(self._numbered(content))

    def _numbered(self, content: bytes | None) -> Block:
        first_line = self._next_line
        lines = 1
        if content is not None:
            lines = content.count(b"\n") + (not content.endswith(b"\n"))
        self._next_line += lines
        return Block(first_line, lines, content)


class _Numbered(Struct, Generic[E], frozen=True):
    """Entries with the numbers of their lines."""

    numbers: Sequence[int] = ()
    entries: Sequence[E] = ()


class _Lines(Struct, frozen=True):
    """The lines of a block, by what happens to them."""

    creates: _Numbered[BatchEntry]
    timers: _Numbered[FullTimer] = _Numbered()
    namespaces: _Numbered[FullNamespace] = _Numbered()


class Import:
    """One stream on its way into the store."""

    def __init__(
        self,
        batches: BatchCreation,
        full: FullRestoration,
        caller: Caller,
        default_namespace: str | None,
        max_line_bytes: int,
        *,
        give_back: Callable[[int], None] = lambda size: None,
    ) -> None:
        """`give_back` is told the size of what is no longer in memory."""
        self._batches = batches
        self._full = full
        self._caller = caller
        self._max_line_bytes = max_line_bytes
        self._give_back = give_back
        self._under_way: set[asyncio.Task[None]] = set()
        self._default_namespace = default_namespace
        self._lines = 0
        self._created = 0
        self._existing = 0
        self._conflicts = 0
        self._invalid = 0
        self._errors: list[LineError] = []
        self._has_full_lines = False
        self._restored: Counter[TimerStatus] = Counter()
        self._restored_namespaces: Counter[Existence] = Counter()

    async def run(self, chunks: AsyncIterator[bytes]) -> ImportAnswer:
        """Create the timers of all lines. Raises what the store raises, and `Unauthorized` if the
        caller's key ends; then earlier lines may have been created, and the whole stream may be
        sent again.

        Lines are written as soon as no other write is under way, so a slow stream does not wait.
        A fast one fills large blocks while others are being written.
        """
        blocks = LineBlocks(self._max_line_bytes)
        async with asyncio.TaskGroup() as writes:
            async for chunk in chunks:
                blocks.feed(chunk)
                self._give_back(blocks.take_dropped_bytes())
                while blocks.complete_bytes >= BLOCK_BYTES or not self._under_way:
                    if not await self._write_next(blocks, writes):
                        break
            blocks.end()
            while await self._write_next(blocks, writes):
                pass
        return self.answer()

    async def _write_next(self, blocks: LineBlocks, writes: asyncio.TaskGroup) -> bool:
        """Begin to write a block as soon as there is room for it. False if there is no block."""
        block = blocks.take()
        if block is None:
            return False
        self._lines += block.lines
        if len(self._under_way) >= WRITES_AT_ONCE:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        self._caller.check_still_valid()
        if block.content is None:
            error = TooLarge("line", f"must be at most {self._max_line_bytes} bytes")
            self._count_refused(block.first_line, UnreadableEntry(b"", error), error)
            return True
        lines = await self._decode(block, block.content)
        # Before the next block, which may have timers of these namespaces.
        await self._restore_namespaces(lines.namespaces)
        write = writes.create_task(self._write(lines, len(block.content)))
        self._under_way.add(write)
        write.add_done_callback(self._under_way.discard)
        return True

    def answer(self) -> ImportAnswer:
        return ImportAnswer(
            lines=self._lines,
            created=self._created,
            existing=self._existing,
            conflicts=self._conflicts,
            invalid=self._invalid,
            errors=self._errors,
            restored=self._restored_answer() if self._has_full_lines else UNSET,
        )

    def _restored_answer(self) -> RestoredAnswer:
        counts = {label: self._restored[status] for label, status in STATUSES.items()}
        namespaces = self._restored_namespaces
        return RestoredAnswer(
            namespaces=namespaces.total(),
            existing_namespaces=namespaces[Existence.EXISTING],
            timers=CountsAnswer(**counts),
        )

    async def _write(self, lines: _Lines, size_bytes: int) -> None:
        for numbers, entries in _parts(lines.creates):
            self._count(numbers, entries, await self._batches.create(entries, self._caller.access))
        for numbers, timers in _parts(lines.timers):
            outcomes = await self._full.restore_timers(timers)
            self._count(numbers, timers, outcomes)
            self._restored.update(
                outcome.timer.status
                for outcome in outcomes
                if isinstance(outcome, CreateResult) and outcome.existence is Existence.CREATED
            )
        self._give_back(size_bytes)

    async def _restore_namespaces(self, lines: _Numbered[FullNamespace]) -> None:
        if not lines.entries:
            return
        outcomes = await self._full.restore_namespaces(lines.entries)
        for number, full, outcome in zip(lines.numbers, lines.entries, outcomes, strict=True):
            if isinstance(outcome, DuetimeError):
                self._count_refused(number, full, outcome)
            else:
                self._restored_namespaces[outcome] += 1

    async def _decode(self, block: Block, content: bytes) -> _Lines:
        """The lines of a block. Blocks without a fault, and without full lines, are decoded in one
        go."""
        if block.first_line == 1:
            content = content.removeprefix(BOM_UTF8)
        creates: Sequence[BatchEntry] | None = await decode_faultless(
            _decode_lines, content, self._batches.turns
        )
        if creates is not None and len(creates) == block.lines:
            numbers = range(block.first_line, block.first_line + block.lines)
            return _Lines(_Numbered(numbers, self._with_namespaces(creates)))
        texts = [
            (number, line)
            for number, line in enumerate(content.split(b"\n"), block.first_line)
            if line.strip()
        ]
        entries = await self._batches.turns.map(_decode_line, (line for _, line in texts))
        numbered = list(zip((number for number, _ in texts), entries, strict=True))
        lines = _Lines(
            _chosen(numbered, CreateBody, UnreadableEntry),
            _chosen(numbered, FullTimer),
            _chosen(numbered, FullNamespace),
        )
        self._has_full_lines |= bool(lines.timers.entries or lines.namespaces.entries)
        creates = self._with_namespaces(lines.creates.entries)
        return replace(lines, creates=_Numbered(lines.creates.numbers, creates))

    def _with_namespaces(self, entries: Sequence[BatchEntry]) -> Sequence[BatchEntry]:
        if self._default_namespace is None:
            return entries
        return [self._with_namespace(entry) for entry in entries]

    def _with_namespace(self, entry: BatchEntry) -> BatchEntry:
        if isinstance(entry, CreateBody) and entry.namespace is UNSET and entry.group_id is UNSET:
            return replace(entry, namespace=self._default_namespace)
        return entry

    def _count(
        self, lines: Sequence[int], entries: Sequence[Entry], outcomes: Sequence[Outcome]
    ) -> None:
        created = existing = 0
        new = Existence.CREATED
        for line, entry, outcome in zip(lines, entries, outcomes, strict=True):
            if not isinstance(outcome, CreateResult):
                self._count_refused(line, entry, outcome)
            elif outcome.existence is new:
                created += 1
            else:
                existing += 1
        self._created += created
        self._existing += existing

    def _count_refused(self, line: int, entry: Entry, error: DuetimeError) -> None:
        if isinstance(error, TimerConflict | NamespaceDiffers):
            self._conflicts += 1
        else:
            self._invalid += 1
        # Blocks are written side by side, so a later line may be refused before an earlier one.
        if len(self._errors) == MAX_IMPORT_ERRORS:
            if line > self._errors[-1].line:
                return
            del self._errors[-1]
        insort(self._errors, self._line_error(line, entry, error), key=lambda each: each.line)

    def _line_error(self, line: int, entry: Entry, error: DuetimeError) -> LineError:
        if isinstance(entry, FullTimer | FullNamespace):
            namespace, id = full_key(entry)
        else:
            namespace, id = entry_key(entry, self._default_namespace or DEFAULT_NAMESPACE)
        item = item_error(error)
        return LineError(
            line, namespace, id, error=item.error, message=item.message, details=item.details
        )


def _decode_line(line: bytes) -> Entry:
    return decode_full(line) if is_full(line) else decode_entry(line, "line")


def _chosen(numbered: Iterable[tuple[int, Entry]], *kinds: type[E]) -> _Numbered[E]:
    """The entries of these kinds."""
    chosen = [(number, entry) for number, entry in numbered if isinstance(entry, kinds)]
    return _Numbered([number for number, _ in chosen], [entry for _, entry in chosen])


def _parts(lines: _Numbered[E]) -> Iterator[tuple[Sequence[int], Sequence[E]]]:
    """The lines in parts that can be written at once. They have the same size: a small remainder
    would cost as much to write as a large part."""
    numbers, entries = lines.numbers, lines.entries
    parts = ceil(len(entries) / MAX_BATCH_TIMERS)
    for part in range(parts):
        among = slice(len(entries) * part // parts, len(entries) * (part + 1) // parts)
        yield numbers[among], entries[among]
