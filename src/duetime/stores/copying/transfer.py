"""Moving batches from a source to a target: one is read while the one before is written."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from duetime.stores.copying.ports import Batch, CopySource, CopyTarget, Position
from duetime.stores.copying.tables import Table

Advance = Callable[[int], None]
"""Called with the number of timers that were copied or compared since the last call."""


async def transfer(
    source: CopySource,
    target: CopyTarget,
    after: Position | None,
    *,
    rows: int,
    see: Callable[[Batch], None],
    advance: Advance,
) -> None:
    """Copy everything behind the position. `see` gets each batch that is copied."""
    async with aclosing(_read_ahead(source.batches(after, rows=rows))) as batches:
        async for batch in batches:
            await target.write(batch)
            see(batch)
            advance(timers_in(batch))


async def _read_ahead(batches: AsyncIterator[Batch]) -> AsyncGenerator[Batch, None]:
    upcoming = _next(batches)
    try:
        while (batch := await upcoming) is not None:
            upcoming = _next(batches)
            yield batch
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)


def _next(batches: AsyncIterator[Batch]) -> "asyncio.Future[Batch | None]":
    async def read() -> Batch | None:
        return await anext(batches, None)

    return asyncio.ensure_future(read())


def timers_in(batch: Batch) -> int:
    return len(batch.rows) if batch.table is Table.TIMERS else 0
