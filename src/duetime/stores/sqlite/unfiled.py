"""What the process remembers of the timers that are not filed yet: nothing for each of them."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import ShardNumber
from duetime.domain.timer import Timer


class FilingOptions(Struct, frozen=True, kw_only=True):
    """When timers are filed after their creation instead of with it.

    Batches of `from_timers` or more are appended, but for what is due within `near_microseconds`
    of its creation: a claim will soon look for it. Beyond `max_unfiled` the writer files as many
    as it creates. After `idle_seconds` without work it files slice after slice until there is
    some: at least `idle_slice` timers, and as many, up to `max_idle_slice`, as take about
    `slice_seconds`. For so long a timer that falls due meanwhile may have to wait. `side_slice`
    are filed along with other work, so that filing gets on however busy the store is.

    Lists note the order of unfiled timers after `note_from` of them were appended or filed, in
    runs of `run_timers`. What is not noted they read row by row, in two milliseconds; in order,
    many are noted faster than few.
    """

    from_timers: int = 65
    near_microseconds: int = 60 * MICROSECONDS_PER_SECOND
    max_unfiled: int = 1_000_000
    idle_seconds: float = 0.05
    idle_slice: int = 256
    max_idle_slice: int = 4_096
    slice_seconds: float = 0.010
    side_slice: int = 32
    note_from: int = 16_384
    run_timers: int = 65_536


USUAL_FILING = FilingOptions()


class Unfiled:
    """How many timers no index finds, and when the first of them is due.

    Only the writer changes it, when it has committed; others may look meanwhile. A `count` of
    zero means that everything whose creation has been answered is filed. `moves` counts what was
    ever appended or filed, `highest_row` is the highest row that was ever appended: rows are not
    used again, so that one who has seen a row knows what came after it. While
    `earliest_is_exact` is not set, `earliest_due` is not to be relied on.
    """

    def __init__(self, options: FilingOptions) -> None:
        self.options = options
        self.count = 0
        self.moves = 0
        self.highest_row = 0
        self.swept_up_to = 0
        self.earliest_due: dict[ShardNumber, Instant] = {}
        self.earliest_is_exact = True

    def add_earliest_due(self, earliest: Iterable[tuple[ShardNumber, Instant]]) -> None:
        for shard, due_at in earliest:
            self.earliest_due[shard] = min(due_at, self.earliest_due.get(shard, due_at))

    def moved(self, timer: Timer) -> None:
        """This pending timer, as it was, is no more."""
        if self.earliest_due.get(timer.shard) == timer.due_at:
            self.earliest_is_exact = False

    def correct_earliest_due(self, earliest: Mapping[ShardNumber, Instant]) -> None:
        self.earliest_due = dict(earliest)
        self.earliest_is_exact = True

    def committed(self, appended: int, filed: int) -> None:
        self.count += appended - filed
        self.moves += appended + filed
        if not self.count:
            self.correct_earliest_due({})

    def rolled_back(self) -> None:
        """What was said of due instants last was not committed."""
        self.earliest_is_exact = False
        if not self.count:
            self.correct_earliest_due({})
