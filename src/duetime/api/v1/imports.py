"""Streams of timers of any length, one JSON object a line."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from msgspec import UNSET, DecodeError, json
from msgspec.structs import replace

from duetime.api.decoding import may_be_too_deep
from duetime.api.v1.batches import BatchCreation, Outcome, Wanted, decode_one
from duetime.api.v1.errors import item_error
from duetime.api.v1.types import MAX_BATCH, CreateBody, ImportAnswer, LineError
from duetime.domain.errors import DuetimeError, TimerConflict
from duetime.ports.store import CreateResult, Existence

BLOCK_BYTES = 256 * 1024
"""Lines are created in blocks of about this size, so that memory does not grow with the file."""

WRITES_AT_ONCE = 3
"""While two blocks are written, as stores can, the next is read."""

MAX_ERRORS_TOLD = 100

_decode_lines = json.Decoder(CreateBody).decode_lines


async def blocks_of_lines(
    chunks: AsyncIterator[bytes], max_line_bytes: int
) -> AsyncIterator[bytes]:
    """The same bytes, cut at ends of lines into blocks. A line that is longer than allowed comes
    out as a block of its own, cut short: nobody can read it, and it is counted."""
    pieces: list[bytes] = []
    size = 0
    skipping = False
    async for chunk in chunks:
        if skipping:
            _, newline, chunk = chunk.partition(b"\n")
            if not newline:
                continue
            skipping = False
        pieces.append(chunk)
        size += len(chunk)
        if size < BLOCK_BYTES:
            continue
        block = b"".join(pieces)
        end = block.rfind(b"\n") + 1
        if end:
            yield block[:end]
        rest = block[end:]
        if len(rest) > max_line_bytes:
            yield rest[:max_line_bytes] + b"\n"
            rest, skipping = b"", True
        pieces, size = [rest], len(rest)
    block = b"".join(pieces)
    if block:
        yield block


class Import:
    """One stream on its way into the store."""

    def __init__(self, batches: BatchCreation, default_namespace: str | None) -> None:
        self._batches = batches
        self._default_namespace = default_namespace
        self._lines = 0
        self._created = 0
        self._existing = 0
        self._conflicts = 0
        self._invalid = 0
        self._errors: list[LineError] = []

    async def run(self, blocks: AsyncIterator[bytes]) -> ImportAnswer:
        """Create the timers of all lines. Raises what the store raises; then what was read
        before may have been created, and the whole may be sent again."""
        under_way: list[asyncio.Task[None]] = []
        try:
            async for block in blocks:
                if len(under_way) >= WRITES_AT_ONCE:
                    await under_way.pop(0)
                write = self._create(block, self._lines + 1)
                self._lines += block.count(b"\n") + (not block.endswith(b"\n"))
                under_way.append(asyncio.get_running_loop().create_task(write))
            for task in under_way:
                await task
        finally:
            for task in under_way:
                task.cancel()
        return self.answer()

    def answer(self) -> ImportAnswer:
        return ImportAnswer(
            lines=self._lines,
            created=self._created,
            existing=self._existing,
            conflicts=self._conflicts,
            invalid=self._invalid,
            errors=sorted(self._errors, key=lambda error: error.line),
        )

    async def _create(self, block: bytes, first_line: int) -> None:
        wanted, numbers = self._decode(block, first_line)
        for start in range(0, len(wanted), MAX_BATCH):
            some = wanted[start : start + MAX_BATCH]
            outcomes = await self._batches.create(some)
            for line, outcome in zip(numbers[start : start + MAX_BATCH], outcomes, strict=True):
                self._count(line, outcome)

    def _decode(self, block: bytes, first_line: int) -> tuple[Sequence[Wanted], Sequence[int]]:
        """The timers of a block and their lines. Blocks without a fault are decoded in one go."""
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        wanted: Sequence[Wanted]
        numbers: Sequence[int] = range(first_line, first_line + count)
        try:
            if not block.isascii():
                block.decode()
            wanted = [] if may_be_too_deep(block) else _decode_lines(block)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            wanted = []
        if len(wanted) != count:
            lines = [
                (first_line + place, line)
                for place, line in enumerate(block.split(b"\n"))
                if line.strip()
            ]
            numbers = [number for number, _ in lines]
            wanted = [decode_one(line) for _, line in lines]
        if self._default_namespace is not None:
            wanted = [self._with_namespace(body) for body in wanted]
        return wanted, numbers

    def _with_namespace(self, body: Wanted) -> Wanted:
        if isinstance(body, CreateBody) and body.namespace is UNSET and body.group_id is UNSET:
            return replace(body, namespace=self._default_namespace)
        return body

    def _count(self, line: int, outcome: Outcome) -> None:
        if isinstance(outcome, CreateResult):
            if outcome.existence is Existence.CREATED:
                self._created += 1
            else:
                self._existing += 1
            return
        if isinstance(outcome, TimerConflict):
            self._conflicts += 1
        else:
            self._invalid += 1
        if len(self._errors) < MAX_ERRORS_TOLD:
            self._errors.append(_line_error(line, outcome))


def _line_error(line: int, error: DuetimeError) -> LineError:
    told = item_error(error)
    return LineError(line, told.error, told.message)
