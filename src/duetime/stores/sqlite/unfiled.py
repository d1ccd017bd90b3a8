"""What the process remembers of the timers that are not filed yet: nothing for each of them."""

import math
from time import perf_counter

from msgspec import Struct

from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.stores.sqlite.unfiled_keys import UnfiledKeys


class FilingOptions(Struct, frozen=True, kw_only=True):
    """When timers are filed after their creation instead of with it.

    Batches of `from_timers` or more are put away in blocks, but for what is due within
    `near_microseconds` of its creation: a claim will soon look for it. Beyond `max_unfiled` the
    writer files as many as it creates. After `idle_seconds` without work it files slice after
    slice until there is some: at least `idle_slice` timers, and as many, up to `max_idle_slice`,
    as take about `slice_seconds`. For so long a timer that falls due meanwhile may have to wait.
    Lists are work too, but hold filing up for no more than `longest_pause_seconds`. `side_slice`
    are filed along with other work, so that filing gets on however busy the store is. All of
    these are rounded to blocks.

    Lists note the order of unfiled timers after `note_from` of them were put away or filed, in
    runs of `run_timers`. A list has to note what is left, in a few milliseconds; many at once are
    noted faster than few. While timers are put away one after the other, noting would take the
    processor from them: unless there was a list in the last `listed_seconds` it waits for a pause
    of `idle_seconds`, or until `note_at_latest` timers are waiting. For those a list takes about
    a second, once.
    """

    from_timers: int = 65
    near_microseconds: int = 60 * MICROSECONDS_PER_SECOND
    max_unfiled: int = 2_000_000
    idle_seconds: float = 0.05
    longest_pause_seconds: float = 1.0
    idle_slice: int = 256
    max_idle_slice: int = 4_096
    slice_seconds: float = 0.010
    side_slice: int = 32
    note_from: int = 4_096
    note_at_latest: int = 262_144
    listed_seconds: float = 60.0
    run_timers: int = 65_536


USUAL_FILING = FilingOptions()


class Unfiled:
    """How many timers no index finds, and what the writer finds them by.

    Only the writer changes the counts, when it has committed; others may look meanwhile. A
    `count` of zero means that everything whose creation has been answered is filed. `moves`
    counts what was ever put away or filed. `next_block` only grows: the ids of blocks are not
    used again, so that one who has seen a block knows which ones came after it. `listed_at` is
    when somebody last asked for a list, `put_away_at` when timers were last put away, both by
    `perf_counter`. What is in `set_aside` are blocks that
    could not be read: the file is damaged. The others go on without them.
    """

    def __init__(self, options: FilingOptions) -> None:
        self.options = options
        self.keys = UnfiledKeys()
        self.count = 0
        self.moves = 0
        self.listed_at = -math.inf
        self.put_away_at = -math.inf
        self.next_block = 1
        self.set_aside: set[int] = set()
        self._has_filed = False
        self._first_block: int | None = None

    def committed(self, put_away: int, filed: int, first_block: int | None = None) -> None:
        """`first_block` is the oldest that is left, when some were filed in their order."""
        self.count += put_away - filed
        self.moves += put_away + filed
        if put_away:
            self.put_away_at = perf_counter()
        if filed:
            self._has_filed, self._first_block = True, first_block

    def may_wait_for_notes(self, now: float) -> int:
        """How many timers lists need not have noted yet."""
        options = self.options
        is_filling = now - self.put_away_at < options.idle_seconds
        is_listed = now - self.listed_at < options.listed_seconds
        return options.note_at_latest if is_filling and not is_listed else options.note_from

    def forget_filed(self) -> None:
        """Forget keys of what is filed. Not part of a commit: if it fails, that still counts."""
        if not self._has_filed:
            return
        if not self.count:
            self.keys.forget_all()
        elif self._first_block is not None:
            self.keys.sweep(self._first_block)
        self._has_filed = False
