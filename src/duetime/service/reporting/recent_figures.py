"""The last quarter of an hour: attempts per second and their lateness, over all members."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from duetime.background import BackgroundLoop
from duetime.domain.instants import Instant
from duetime.domain.lateness.recent_slots import SLOT, SLOT_SECONDS, SlotFigures
from duetime.ports.clock import Clock

SHOWN_SLOTS = 15 * 60 // SLOT_SECONDS
"""Slots that are remembered: fifteen minutes."""

LOOK_SECONDS = SLOT_SECONDS / 2
"""Time between two looks. Members tell each slot for longer than this."""

LAST_MESSAGES_SECONDS = 2
"""Time that the messages of other members take: a slot is shown once it has been over so long."""

Tell = Callable[[], Mapping[str, Sequence[SlotFigures]]]
"""The last slots of each member, by its name, as this process knows them."""


class SlotSum(Struct, frozen=True, kw_only=True):
    """A slot over all members that told theirs. The rates are sums. `p50_ms` is the mean of the
    members' medians, weighted by their attempts; `p99_ms` is that of the member with the highest.
    """

    began_at: Instant
    attempts_per_second: float = 0.0
    completed_per_second: float = 0.0
    p50_ms: float | None = None
    p99_ms: float | None = None
    members: int = 0


class RecentFigures(BackgroundLoop):
    """Each process keeps the history of the whole as it saw it: it begins with the process."""

    name = "recent-figures"

    def __init__(self, clock: Clock, tell: Tell) -> None:
        super().__init__(clock)
        self._tell = tell
        self._slots: dict[int, dict[str, SlotFigures]] = {}

    async def step(self) -> None:
        self.look()
        await self.wait(LOOK_SECONDS)

    def look(self) -> None:
        """Take in what the members tell now."""
        newest = self._clock.now() // SLOT
        oldest = newest - SHOWN_SLOTS
        for member, slots in self._tell().items():
            for slot in slots:
                # The clock of a member may be wrong.
                if oldest <= slot.number <= newest:
                    self._slots.setdefault(slot.number, {})[member] = slot
        for number in [each for each in self._slots if not oldest <= each <= newest]:
            del self._slots[number]

    def slots(self) -> Sequence[SlotSum]:
        """The slots of the last fifteen minutes, the oldest first. One from before the start of
        this process has no members."""
        end = (self._clock.now() - LAST_MESSAGES_SECONDS * SLOT // SLOT_SECONDS) // SLOT
        return [
            _sum_of(number, list(self._slots.get(number, {}).values()))
            for number in range(end - SHOWN_SLOTS, end)
        ]


def _sum_of(number: int, told: Sequence[SlotFigures]) -> SlotSum:
    attempts = sum(slot.attempts for slot in told)
    medians = [(slot.p50_ms, slot.attempts) for slot in told if slot.p50_ms is not None]
    highest = [slot.p99_ms for slot in told if slot.p99_ms is not None]
    return SlotSum(
        began_at=Instant(number * SLOT),
        attempts_per_second=attempts / SLOT_SECONDS,
        completed_per_second=sum(slot.completed for slot in told) / SLOT_SECONDS,
        p50_ms=sum(ms * count for ms, count in medians) / attempts if medians else None,
        p99_ms=max(highest, default=None),
        members=len(told),
    )
