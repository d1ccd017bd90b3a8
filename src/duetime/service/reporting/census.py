"""The census: timers by namespace and status, read now and then and shown from memory."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from duetime.background import BackgroundLoop
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.timer import TimerStatus
from duetime.ports.clock import Clock
from duetime.ports.inspection import CensusStore, LiveCounts, NamespaceCounts
from duetime.telemetry.metrics.catalogue import timers as timer_metrics
from duetime.telemetry.metrics.recording import Gauge, LabelValues, Recorder, Samples

READ_SECONDS = 5.0
"""Pause after a reading, unless the reading took long."""

SHARE_OF_TIME = 0.01
"""Part of the time that the store may spend on a census, within LONGEST_PAUSE_SECONDS."""

LONGEST_PAUSE_SECONDS = 60.0

MOST_COUNTED = 20_000
"""Executing timers, and overdue ones, that are counted at most: each of them is read."""

OVERDUE_SECONDS = 60
"""Time after its instant from which a timer that nobody has claimed is a problem."""

Counts = Mapping[str, int] | Mapping[str | None, int]


class Census:
    """The latest numbers of timers. While the store is away or takes too long, the numbers and the
    instant at which they were read stay as they are.

    Up to `most_names` namespaces are told apart, the first in their order. One that is gone leaves
    its place to another.
    """

    def __init__(self, store: CensusStore, clock: Clock, *, most_names: int) -> None:
        self._most_names = most_names
        self._kept = _KeptCounts(store, clock, most_names)
        self._live = _LiveCounts(store, clock)
        self._overdue_long = _LiveCounts(store, clock, OVERDUE_SECONDS)

    def start(self) -> None:
        self._kept.start()
        self._live.start()
        self._overdue_long.start()

    async def abandon(self) -> None:
        await self._kept.abandon()
        await self._live.abandon()
        await self._overdue_long.abandon()

    @property
    def kept(self) -> NamespaceCounts | None:
        """The numbers of pending and failed timers, as they were last read."""
        return self._kept.counts

    @property
    def overdue_long(self) -> LiveCounts | None:
        """The timers that have been overdue for OVERDUE_SECONDS, as they were last counted."""
        return self._overdue_long.counts

    def recorders(self) -> Sequence[Recorder]:
        return (
            Gauge(timer_metrics.TIMERS, self._timers),
            Gauge(timer_metrics.OVERDUE, self._overdue),
            Gauge(timer_metrics.COUNTS_CAPPED, self._is_capped),
            Gauge(timer_metrics.COUNTED_AT, self._counted_at),
        )

    def _timers(self) -> Samples:
        kept, live = self._kept.counts, self._live.counts
        if kept is not None:
            yield from self._with_status(kept.pending, TimerStatus.PENDING)
            yield from self._with_status(kept.failed, TimerStatus.FAILED)
        if live is not None:
            yield from self._with_status(live.executing, TimerStatus.EXECUTING)

    def _with_status(self, counts: Counts, status: TimerStatus) -> Samples:
        return (((name, status.label), count) for name, count in self._labelled(counts))

    def _overdue(self) -> Samples:
        live = self._live.counts
        if live is not None:
            yield from (((name,), count) for name, count in self._labelled(live.overdue))

    def _labelled(self, counts: Counts) -> Iterator[tuple[str, int]]:
        """The counts by the label of their namespace. Namespaces that have timers of another status
        have 0, so that a number that falls to 0 does not vanish."""
        kept = self._kept.counts
        labels = self._labels()
        labelled = dict[str, int]()
        if kept is not None:
            labelled = {labels.get(name, LabelValues.OTHER): 0 for name in kept.pending}
        for name, count in counts.items():
            label = labels.get(name, LabelValues.OTHER)
            labelled[label] = labelled.get(label, 0) + count
        yield from labelled.items()

    def _labels(self) -> dict[str | None, str]:
        """The label of each namespace that is told apart. Names that the store has chosen come
        first, so that others cannot take their places."""
        kept, live = self._kept.counts, self._live.counts
        names: list[str | None] = [] if kept is None else [*kept.pending, *kept.failed]
        if live is not None:
            names += sorted(live.executing.keys() | live.overdue.keys())
        labels = {name: name for name in names if name is not None}
        return dict(islice(labels.items(), self._most_names))

    def _is_capped(self) -> Samples:
        if self._live.counts is not None:
            yield (), int(not self._live.counts.are_all)

    def _counted_at(self) -> Samples:
        """The instant of the older reading."""
        read_at = [at for at in (self._kept.read_at, self._live.read_at) if at is not None]
        if read_at:
            yield (), min(read_at) / MICROSECONDS_PER_SECOND


class _Reader(BackgroundLoop):
    """Reads, and rests for the longer the longer that took. A reading that failed is followed by a
    rest, too."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.read_at: int | None = None
        self._rest_seconds = 0.0

    async def step(self) -> None:
        await self.wait(self._rest_seconds)
        began_at, began_seconds = self._clock.now(), self._clock.monotonic()
        try:
            is_read = await self.read()
        finally:
            took_seconds = self._clock.monotonic() - began_seconds
            rest_seconds = max(READ_SECONDS, took_seconds / SHARE_OF_TIME)
            self._rest_seconds = min(rest_seconds, LONGEST_PAUSE_SECONDS)
        if is_read:
            self.read_at = began_at

    @abstractmethod
    async def read(self) -> bool:
        """Read the counts, and answer whether there are any."""


class _KeptCounts(_Reader):
    """Reads the numbers that the store keeps up to date."""

    name = "census-kept"

    def __init__(self, store: CensusStore, clock: Clock, most_names: int) -> None:
        super().__init__(clock)
        self._store = store
        self._most_names = most_names
        self.counts: NamespaceCounts | None = None

    async def read(self) -> bool:
        counts = await self._store.count_by_namespace(most_names=self._most_names)
        if counts is not None:
            self.counts = counts
        return counts is not None


class _LiveCounts(_Reader):
    """Counts the timers that execute or are overdue. Apart from the others, because this may take
    long while a store has many dead rows."""

    name = "census-live"

    def __init__(self, store: CensusStore, clock: Clock, grace_seconds: int = 0) -> None:
        super().__init__(clock)
        self._store = store
        self._grace = grace_seconds * MICROSECONDS_PER_SECOND
        self.counts: LiveCounts | None = None

    async def read(self) -> bool:
        due_before = Instant(self._clock.now() - self._grace)
        counts = await self._store.count_live(due_before, most=MOST_COUNTED)
        if counts is not None:
            self.counts = counts
        return counts is not None
