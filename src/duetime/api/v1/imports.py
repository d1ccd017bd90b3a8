"""Streams of timers of any length, one JSON object a line."""

import asyncio
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Sequence
from math import ceil

from msgspec import UNSET, json
from msgspec.structs import replace

from duetime.api.v1.batch_entries import Unreadable, Wanted, decode_wanted, key_told
from duetime.api.v1.batches import BatchCreation, Outcome, decode_faultless
from duetime.api.v1.errors import item_error
from duetime.api.v1.line_blocks import Block, LineBlocks
from duetime.api.v1.types import MAX_BATCH, CreateBody, ImportAnswer, LineError
from duetime.domain.errors import DuetimeError, TimerConflict, TooLarge
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.store import CreateResult, Existence

BLOCK_BYTES = 400 * 1024
"""Lines are created in blocks of about this size, so that memory does not grow with the file. Of
timers with small payloads it is as many as are written at once."""

WRITES_AT_ONCE = 5
"""While some blocks are written, as stores can, and another one is made ready to be, the next is
read."""

MAX_ERRORS_TOLD = 100

_decode_lines = json.Decoder(CreateBody).decode_lines


class Import:
    """One stream on its way into the store."""

    def __init__(
        self, batches: BatchCreation, default_namespace: str | None, max_line_bytes: int
    ) -> None:
        self._batches = batches
        self._max_line_bytes = max_line_bytes
        self._under_way: set[asyncio.Task[None]] = set()
        self._default_namespace = default_namespace
        self._lines = 0
        self._created = 0
        self._existing = 0
        self._conflicts = 0
        self._invalid = 0
        self._errors: list[LineError] = []

    async def run(self, chunks: AsyncIterator[bytes]) -> ImportAnswer:
        """Create the timers of all lines. Raises what the store raises; then what was read
        before may have been created, and the whole may be sent again.

        What has come is written as soon as nothing else is: a slow stream is not kept waiting,
        and of a fast one large blocks are made while others are being written.
        """
        blocks = LineBlocks(self._max_line_bytes)
        async with asyncio.TaskGroup() as writes:
            async for chunk in chunks:
                blocks.feed(chunk)
                while blocks.complete_bytes >= BLOCK_BYTES or not self._under_way:
                    if not await self._write_next(blocks, writes):
                        break
            blocks.end()
            while await self._write_next(blocks, writes):
                pass
        return self.answer()

    async def _write_next(self, blocks: LineBlocks, writes: asyncio.TaskGroup) -> bool:
        """Begin to write a block, when there is room for it. False when there is no block."""
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
            errors=sorted(self._errors, key=lambda error: error.line),
        )

    async def _create(self, block: Block) -> None:
        if block.content is None:
            error = TooLarge("line", f"must be at most {self._max_line_bytes} bytes")
            # Nothing was kept of its text.
            self._count_refused(block.first_line, Unreadable(b"", error), error)
            return
        wanted, numbers = self._decode(block, block.content)
        # Parts of one size: a small one left over would cost as much to write as a large one.
        parts = ceil(len(wanted) / MAX_BATCH)
        for part in range(parts):
            among = slice(len(wanted) * part // parts, len(wanted) * (part + 1) // parts)
            outcomes = await self._batches.create(wanted[among])
            self._count(numbers[among], wanted[among], outcomes)

    def _decode(self, block: Block, content: bytes) -> tuple[Sequence[Wanted], Sequence[int]]:
        """The timers of a block and their lines. Blocks without a fault are decoded in one go."""
        if block.first_line == 1:
            content = content.removeprefix(BOM_UTF8)
        numbers: Sequence[int] = range(block.first_line, block.first_line + block.lines)
        wanted: Sequence[Wanted] | None = decode_faultless(_decode_lines, content)
        if wanted is None or len(wanted) != block.lines:
            lines = [
                (block.first_line + place, line)
                for place, line in enumerate(content.split(b"\n"))
                if line.strip()
            ]
            numbers = [number for number, _ in lines]
            wanted = [decode_wanted(line, "line") for _, line in lines]
        if self._default_namespace is not None:
            wanted = [self._with_namespace(body) for body in wanted]
        return wanted, numbers

    def _with_namespace(self, body: Wanted) -> Wanted:
        if isinstance(body, CreateBody) and body.namespace is UNSET and body.group_id is UNSET:
            return replace(body, namespace=self._default_namespace)
        return body

    def _count(
        self, lines: Sequence[int], wanted: Sequence[Wanted], outcomes: Sequence[Outcome]
    ) -> None:
        created = existing = 0
        new = Existence.CREATED
        for line, body, outcome in zip(lines, wanted, outcomes, strict=True):
            if not isinstance(outcome, CreateResult):
                self._count_refused(line, body, outcome)
            elif outcome.existence is new:
                created += 1
            else:
                existing += 1
        self._created += created
        self._existing += existing

    def _count_refused(self, line: int, wanted: Wanted, error: DuetimeError) -> None:
        if isinstance(error, TimerConflict):
            self._conflicts += 1
        else:
            self._invalid += 1
        if len(self._errors) < MAX_ERRORS_TOLD:
            self._errors.append(self._line_error(line, wanted, error))

    def _line_error(self, line: int, wanted: Wanted, error: DuetimeError) -> LineError:
        namespace, id = key_told(wanted, self._default_namespace or DEFAULT_NAMESPACE)
        told = item_error(error)
        return LineError(
            line, namespace, id, error=told.error, message=told.message, details=told.details
        )
