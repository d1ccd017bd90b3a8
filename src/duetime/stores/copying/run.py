"""A whole copy: begin or go on, move, compare, finish."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager

from msgspec import Struct

from duetime.domain.errors import CopyRefused
from duetime.ports.clock import Clock
from duetime.stores.copying.checksums import Checksum, Checksums, Group
from duetime.stores.copying.comparison import (
    Difference,
    differences,
    read_checksums,
    rows_that_differ,
)
from duetime.stores.copying.ports import CopySource, CopyTarget
from duetime.stores.copying.transfer import Advance, transfer

Showing = Callable[[str, int], AbstractContextManager[Advance]]
"""Shows the progress of a phase, named by a verb, over a number of timers."""


class Sides(Struct, frozen=True, kw_only=True):
    """Both ends of a copy. `read_back` opens the target to read what is in it now; `read_again`
    opens the source once more, to see whether a service has used it meanwhile."""

    source_name: str
    source: CopySource
    target: CopyTarget
    read_back: Callable[[], AbstractAsyncContextManager[CopySource]]
    read_again: Callable[[], AbstractAsyncContextManager[CopySource]]


class Compared(Struct, frozen=True):
    """`examples` names some rows that differ."""

    checksums: Mapping[Group, Checksum]
    differences: list[Difference]
    examples: list[str]


class CopyReport(Struct, frozen=True, kw_only=True):
    """`copied` counts the timers of this run, `resumed_at` those of runs before. `compared` is
    None if an earlier run has finished the copy."""

    timers: int
    copied: int = 0
    resumed_at: int = 0
    compared: Compared | None = None
    copy_seconds: float = 0.0
    compare_seconds: float = 0.0


async def run_copy(sides: Sides, clock: Clock, show: Showing, *, rows: int) -> CopyReport:
    """Copy everything, or the rest of it, and let services use the target if both are equal.

    Raises `CopyRefused` if the target holds something else, or the source was used meanwhile."""
    identity = await sides.source.identity()
    timers = await sides.source.count_timers()
    mark = await sides.target.begin(sides.source_name, identity, clock.now())
    if mark.finished_at is not None:
        return CopyReport(timers=mark.timers)
    started = clock.monotonic()
    # A run that copies everything has seen everything: the source need not be read again.
    seen = Checksums() if mark.position is None else None
    with show("copied", timers - mark.timers) as advance:
        await transfer(
            sides.source,
            sides.target,
            mark.position,
            rows=rows,
            see=lambda batch: None if seen is None else seen.add(batch),
            advance=advance,
        )
    copied = clock.monotonic()
    expected = None if seen is None else seen.result()
    # The database makes indexes while this process computes checksums.
    completing = asyncio.ensure_future(sides.target.complete())
    try:
        async with sides.read_back() as target:
            compared = await compare(sides.source, target, timers, show, expected=expected)
        await completing
    finally:
        completing.cancel()
        await asyncio.gather(completing, return_exceptions=True)
    if not compared.differences:
        async with sides.read_again() as again:
            if await again.identity() != identity:
                raise CopyRefused(
                    f"a service has used {sides.source_name} during the copy: stop it, and copy"
                    " into an empty target"
                )
        await sides.target.finish(clock.now())
    return CopyReport(
        timers=timers,
        copied=timers - mark.timers,
        resumed_at=mark.timers,
        compared=compared,
        copy_seconds=copied - started,
        compare_seconds=clock.monotonic() - copied,
    )


async def compare(
    source: CopySource,
    target: CopySource,
    timers: int,
    show: Showing,
    *,
    expected: Mapping[Group, Checksum] | None = None,
) -> Compared:
    """Compare both sides. `expected` has the checksums of the source, if they are known."""
    with show("compared", timers) as advance:
        found = await read_checksums(target, advance)
    if expected is None:
        with show("read again", timers) as advance:
            expected = await read_checksums(source, advance)
    different = differences(expected, found)
    examples: list[str] = []
    if different:
        tables = {each.group.table for each in different}
        examples = await rows_that_differ(source, target, tables)
    return Compared(expected, different, examples)
