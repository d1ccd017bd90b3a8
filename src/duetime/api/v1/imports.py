"""Imports: streams of timers of any length, one JSON object per line."""

import asyncio
from bisect import insort
from codecs import BOM_UTF8
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import repeat
from math import ceil

from msgspec import UNSET, Struct, json
from msgspec.structs import replace

from duetime.api.v1.answer_types import ImportAnswer, LineError
from duetime.api.v1.batch_entries import BatchEntry, UnreadableEntry, decode_entry, entry_key
from duetime.api.v1.batches import BatchCreation, Outcome, decode_faultless
from duetime.api.v1.errors import item_error
from duetime.api.v1.request_types import CreateBody
from duetime.domain.errors import DuetimeError, TimerConflict, TooLarge
from duetime.domain.limits import MAX_BATCH_TIMERS, MAX_IMPORT_ERRORS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.store import CreateResult, Existence

BLOCK_BYTES = 400 * 1024
"""Size of the blocks in which lines are created, so that memory does not grow with the stream. With
small payloads a block is as many timers as the store writes at once."""

WRITES_AT_ONCE = 5
"""Blocks that the store writes at the same time, while others are decoded and read."""

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
        if len(self._tail) > self._max_line_bytes:
            self._close_block()
            self._ready.append(self._numbered(None))
            self._dropped_bytes += len(self._tail)
            self._tail = bytearray()
            self._is_skipping = True

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


class Import:
    """One stream on its way into the store."""

    def __init__(
        self,
        batches: BatchCreation,
        default_namespace: str | None,
        max_line_bytes: int,
        *,
        give_back: Callable[[int], None] = lambda size: None,
    ) -> None:
        """`give_back` is told the size of what is no longer in memory."""
        self._batches = batches
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

    async def run(self, chunks: AsyncIterator[bytes]) -> ImportAnswer:
        """Create the timers of all lines. Raises what the store raises; then earlier lines may
        have been created, and the whole stream may be sent again.

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
        write = writes.create_task(self._create(block))
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
        )

    async def _create(self, block: Block) -> None:
        if block.content is None:
            error = TooLarge("line", f"must be at most {self._max_line_bytes} bytes")
            self._count_refused(block.first_line, UnreadableEntry(b"", error), error)
            return
        entries, numbers = await self._decode(block, block.content)
        # Parts have the same size: a small remainder would cost as much to write as a large part.
        parts = ceil(len(entries) / MAX_BATCH_TIMERS)
        for part in range(parts):
            among = slice(len(entries) * part // parts, len(entries) * (part + 1) // parts)
            outcomes = await self._batches.create(entries[among])
            self._count(numbers[among], entries[among], outcomes)
        self._give_back(len(block.content))

    async def _decode(
        self, block: Block, content: bytes
    ) -> tuple[Sequence[BatchEntry], Sequence[int]]:
        """The entries of a block and their line numbers. Blocks without a fault are decoded in one
        go."""
        if block.first_line == 1:
            content = content.removeprefix(BOM_UTF8)
        numbers: Sequence[int] = range(block.first_line, block.first_line + block.lines)
        entries: Sequence[BatchEntry] | None = decode_faultless(_decode_lines, content)
        if entries is None or len(entries) != block.lines:
            lines = [
                (number, line)
                for number, line in enumerate(content.split(b"\n"), block.first_line)
                if line.strip()
            ]
            numbers = [number for number, _ in lines]
            texts = [line for _, line in lines]
            entries = await self._batches.turns.map(decode_entry, texts, repeat("line"))
        if self._default_namespace is not None:
            entries = [self._with_namespace(entry) for entry in entries]
        return entries, numbers

    def _with_namespace(self, entry: BatchEntry) -> BatchEntry:
        if isinstance(entry, CreateBody) and entry.namespace is UNSET and entry.group_id is UNSET:
            return replace(entry, namespace=self._default_namespace)
        return entry

    def _count(
        self, lines: Sequence[int], entries: Sequence[BatchEntry], outcomes: Sequence[Outcome]
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

    def _count_refused(self, line: int, entry: BatchEntry, error: DuetimeError) -> None:
        if isinstance(error, TimerConflict):
            self._conflicts += 1
        else:
            self._invalid += 1
        # Blocks are written side by side, so a later line may be refused before an earlier one.
        if len(self._errors) == MAX_IMPORT_ERRORS:
            if line > self._errors[-1].line:
                return
            del self._errors[-1]
        insort(self._errors, self._line_error(line, entry, error), key=lambda each: each.line)

    def _line_error(self, line: int, entry: BatchEntry, error: DuetimeError) -> LineError:
        namespace, id = entry_key(entry, self._default_namespace or DEFAULT_NAMESPACE)
        item = item_error(error)
        return LineError(
            line, namespace, id, error=item.error, message=item.message, details=item.details
        )
