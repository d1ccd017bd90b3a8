"""The two sides of a copy, as each kind of store implements them."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from duetime.domain.instants import Instant
from duetime.stores.copying.tables import Row, Table

MAX_BATCH_BYTES = 16 * 2**20
"""Size of the texts in a batch at which the batch ends, however few rows it has."""

DEFAULT_BATCH_ROWS = 10_000


class Position(Struct, frozen=True, array_like=True):
    """Place in the order in which a source is read: after a key in one of its parts."""

    part: str
    after: Sequence[Any]


class Part(Protocol):
    """Rows of a source that have an order of their own."""

    @property
    def name(self) -> str: ...


PartT = TypeVar("PartT", bound=Part)


def parts_behind(
    parts: Sequence[PartT], position: Position | None
) -> Iterator[tuple[PartT, Sequence[Any]]]:
    """The parts that are not wholly before the position, each with the key after which it is to be
    read; an empty key stands for the beginning."""
    is_behind = position is None
    for part in parts:
        if position is not None and part.name == position.part:
            is_behind = True
            yield part, position.after
        elif is_behind:
            yield part, ()


class Batch(Struct, frozen=True):
    """Some rows of one table, and the position behind them."""

    table: Table
    rows: Sequence[Row]
    position: Position


class CopyMark(Struct, frozen=True, kw_only=True):
    """The copy that a target holds, or the beginning of it.

    `source` is the source's name for people, without secrets; `identity` tells whether another run
    reads the same source in the same state. `position` is None before the first batch.
    """

    source: str
    identity: str
    position: Position | None
    timers: int
    started_at: Instant
    finished_at: Instant | None


class CopySource(Protocol):
    """The content of a store that nobody changes meanwhile."""

    async def identity(self) -> str:
        """Text that differs between stores, and after every start of a service on the same one."""
        ...

    async def count_timers(self) -> int:
        """The number of timers of all statuses. Raises `CopyRefused` if some are in no state."""
        ...

    def batches(
        self, after: Position | None, *, rows: int = DEFAULT_BATCH_ROWS, in_order: bool = True
    ) -> AsyncIterator[Batch]:
        """Everything behind the position, in an order that is the same in every run. Without
        `in_order` the order may differ, which may be faster, and positions mean nothing."""
        ...


class CopyTarget(Protocol):
    """A store that only the copy writes to, and on which no service starts before `finish`."""

    async def begin(self, source: str, identity: str, now: Instant) -> CopyMark:
        """Mark an empty store as the target of this copy, or find the mark of an earlier run.

        Raises `CopyRefused` if the store holds anything else."""
        ...

    async def write(self, batch: Batch) -> None:
        """Write the rows and the position in one transaction: after a crash at any moment, exactly
        the batches up to the stored position are there."""
        ...

    async def complete(self) -> None:
        """Make what writing does without, such as indexes. The content may be read meanwhile."""
        ...

    async def finish(self, now: Instant) -> None:
        """Let services start on the store, once it is complete."""
        ...
