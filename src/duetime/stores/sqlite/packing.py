"""Making blocks of the many timers of a large batch: all that can be done without the store."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.domain.timer import Timer
from duetime.ports.store import CreateRequest, OnExisting
from duetime.stores.sqlite.blocks import BLOCK_TIMERS, BlockContent, block_content
from duetime.stores.sqlite.unfiled import FilingOptions

LARGEST_BLOCK = 256 * 1024
"""In characters. Timers that do not fit in, 8 KB each, have rows of their own at once: who wants
one of them should not have to read all of its block."""


class BlockSeries(Struct, frozen=True):
    """Timers of one namespace, in blocks that are to follow each other, all but the last full."""

    namespace: str
    ids: tuple[str, ...]
    uuids: bytes
    blocks: list[BlockContent]


class Pack(Struct, frozen=True):
    """New timers: those in blocks, and those that are due too soon for that."""

    timers: Sequence[Timer]
    series: list[BlockSeries]
    near: list[Timer]


def pack(requests: Sequence[CreateRequest], options: FilingOptions) -> Pack | None:
    """The timers of these requests, if they can be put away: when every key comes once, none is
    to replace another, and none is very large."""
    keep = OnExisting.KEEP
    if any(request.on_existing is not keep for request in requests):
        return None
    timers = [request.timer for request in requests]
    if len({timer.timer_uuid for timer in timers}) != len(timers):
        return None
    far = _far(timers, options)
    series = [_series_of(group) for group in _groups(far)]
    if any(len(block.timers) > LARGEST_BLOCK for each in series for block in each.blocks):
        return None
    return Pack(timers, series, [] if len(far) == len(timers) else _without(timers, far))


def _far(timers: Iterable[Timer], options: FilingOptions) -> list[Timer]:
    """Those that can wait: they are new in every respect, and not due soon."""
    near = options.near_microseconds
    return [
        timer
        for timer in timers
        if (due_at := timer.due_at) - (created_at := timer.created_at) >= near
        and due_at == timer.execute_at
        and created_at == timer.updated_at
    ]


def _without(timers: Iterable[Timer], others: Iterable[Timer]) -> list[Timer]:
    uuids = {timer.timer_uuid for timer in others}
    return [timer for timer in timers if timer.timer_uuid not in uuids]


def _groups(timers: Iterable[Timer]) -> Iterable[Sequence[Timer]]:
    """The timers that may be in one block, together."""
    groups: defaultdict[tuple[str, Instant], list[Timer]] = defaultdict(list)
    for timer in timers:
        groups[timer.key[0], timer.created_at].append(timer)
    return groups.values()


def _series_of(timers: Sequence[Timer]) -> BlockSeries:
    starts = range(0, len(timers), BLOCK_TIMERS)
    blocks = [block_content(timers[start : start + BLOCK_TIMERS]) for start in starts]
    return BlockSeries(
        timers[0].key.namespace,
        tuple([timer.key[1] for timer in timers]),
        b"".join([block.uuids for block in blocks]),
        blocks,
    )
