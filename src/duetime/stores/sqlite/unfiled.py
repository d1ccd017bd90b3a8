"""Which timers are not filed yet, as the process remembers it."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import ShardNumber, TimerKey, timer_uuid_of
from duetime.domain.timer import Timer


class FilingOptions(Struct, frozen=True, kw_only=True):
    """When timers are filed after their creation instead of with it.

    Batches of `from_timers` or more are appended, but for what is due within `near_microseconds`
    of its creation: a claim will soon look for it. Beyond `max_unfiled` the writer files as many
    as it creates; so many take 170 MB of memory. After `idle_seconds` without work it files
    `idle_slice` at a time, about ten milliseconds' worth, until there is some. `side_slice` are
    filed along with other work, so that filing gets on however busy the store is.
    """

    from_timers: int = 65
    near_microseconds: int = 60 * MICROSECONDS_PER_SECOND
    max_unfiled: int = 1_000_000
    idle_seconds: float = 0.05
    idle_slice: int = 256
    side_slice: int = 32


USUAL_FILING = FilingOptions()


class Unfiled:
    """Finds the rows of timers that no index finds, and tells when the first of them is due.

    Only the writer changes it; readers may look meanwhile. It may hold a timer that is filed by
    now or a row that is gone: whoever uses a row makes sure whose it is. It never lacks a timer
    whose creation has been answered. While `earliest_is_exact` is not set, `earliest_due` is not
    to be relied on.
    """

    def __init__(self, options: FilingOptions) -> None:
        self.options = options
        self._rows: dict[bytes, int] = {}
        self.earliest_due: dict[ShardNumber, Instant] = {}
        self.earliest_is_exact = True

    def __len__(self) -> int:
        return len(self._rows)

    def row_of(self, key: TimerKey) -> int | None:
        return self._rows.get(timer_uuid_of(key)) if self._rows else None

    def rows_of(self, timers: Iterable[Timer]) -> list[int]:
        """The rows of those timers whose keys are among the unfiled ones."""
        rows = self._rows
        return [rows[timer.timer_uuid] for timer in timers if timer.timer_uuid in rows]

    def is_disjoint(self, timer_uuids: set[bytes]) -> bool:
        return self._rows.keys().isdisjoint(timer_uuids)

    def add(self, timers: Sequence[Timer], first_row: int) -> None:
        earliest = self.earliest_due
        for row_id, timer in enumerate(timers, first_row):
            self._rows[timer.timer_uuid] = row_id
            due_at = earliest.get(timer.shard)
            if due_at is None or timer.due_at < due_at:
                earliest[timer.shard] = timer.due_at

    def load(self, rows: Iterable[tuple[bytes, int, int, int]]) -> None:
        """Rows of timer_uuid, row id, shard and due instant."""
        for timer_uuid, row_id, shard, due_at in rows:
            self._rows[timer_uuid] = row_id
            known = self.earliest_due.get(ShardNumber(shard))
            if known is None or due_at < known:
                self.earliest_due[ShardNumber(shard)] = Instant(due_at)

    def moved(self, timer: Timer) -> None:
        """This pending timer, as it was, is no more."""
        if self.earliest_due.get(timer.shard) == timer.due_at:
            self.earliest_is_exact = False

    def correct_earliest_due(self, earliest: Mapping[ShardNumber, Instant]) -> None:
        self.earliest_due = dict(earliest)
        self.earliest_is_exact = True

    def distrust_earliest_due(self) -> None:
        """What was corrected last was not committed."""
        self.earliest_is_exact = False

    def timer_uuids(self) -> list[bytes]:
        return list(self._rows)

    def forget(self, timer_uuids: Iterable[bytes]) -> None:
        for timer_uuid in timer_uuids:
            self._rows.pop(timer_uuid, None)
        if not self._rows:
            self.correct_earliest_due({})
