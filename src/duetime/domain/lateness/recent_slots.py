"""Figures of the last seconds: attempts and their lateness, in slots of a few seconds."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from duetime.domain.instants import MICROSECONDS_PER_MS, MICROSECONDS_PER_SECOND, Instant

SLOT_SECONDS = 5
SLOT = SLOT_SECONDS * MICROSECONDS_PER_SECOND
"""Length of a slot in microseconds."""

TOLD_SLOTS = 3
"""Slots that are told again and again, so that a message may get lost."""

_STEPS = 8
"""Steps between a lateness and its double: a figure is off by less than a sixteenth."""


class SlotFigures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The attempts of one process that ended within a slot. `number` counts the slots since 1970.
    There are percentiles unless there was no attempt."""

    number: int
    attempts: int = 0
    completed: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None


class _Slot:
    __slots__ = ("attempts", "by_lateness", "completed")

    def __init__(self) -> None:
        self.attempts = 0
        self.completed = 0
        self.by_lateness: dict[int, int] = {}


class SlotRecorder:
    """Counts attempts. It keeps a few numbers for each of the last slots, however many attempts
    there are."""

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}

    def record(self, answered_at: Instant, late: int, *, completed: bool) -> None:
        number = answered_at // SLOT
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = _Slot()
            if len(self._slots) > TOLD_SLOTS + 2:
                del self._slots[next(iter(self._slots))]
        slot.attempts += 1
        slot.completed += completed
        step, by_lateness = _step_of(late), slot.by_lateness
        by_lateness[step] = by_lateness.get(step, 0) + 1

    def last_slots(self, now: Instant) -> tuple[SlotFigures, ...]:
        """The last slots that are over, the oldest first."""
        current = now // SLOT
        return tuple(self._figures(number) for number in range(current - TOLD_SLOTS, current))

    def _figures(self, number: int) -> SlotFigures:
        slot = self._slots.get(number)
        if slot is None:
            return SlotFigures(number=number)
        steps = sorted(slot.by_lateness.items())
        return SlotFigures(
            number=number,
            attempts=slot.attempts,
            completed=slot.completed,
            p50_ms=_percentile_ms(steps, slot.attempts, 0.5),
            p99_ms=_percentile_ms(steps, slot.attempts, 0.99),
        )


def _step_of(late: int) -> int:
    """The number of the step that a lateness in microseconds belongs to."""
    if late < _STEPS:
        return max(late, 0)
    doublings = late.bit_length() - _STEPS.bit_length()
    return doublings * _STEPS + (late >> doublings)


def _percentile_ms(steps: Sequence[tuple[int, int]], attempts: int, share: float) -> float:
    left = int((attempts - 1) * share) + 1
    reached = next(step for step, until in _running_sums(steps) if until >= left)
    return round(_middle_of(reached) / MICROSECONDS_PER_MS, 3)


def _running_sums(steps: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    counted = accumulate(count for _, count in steps)
    return zip((step for step, _ in steps), counted, strict=True)


def _middle_of(step: int) -> float:
    """The lateness in the middle of a step, in microseconds."""
    if step < 2 * _STEPS:
        return float(step)
    doublings, rest = step // _STEPS - 1, step % _STEPS
    return ((_STEPS + rest) << doublings) + (1 << doublings) / 2
