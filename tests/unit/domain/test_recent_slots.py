"""The figures of the last slots."""

import random

import pytest

from duetime.domain.instants import Instant
from duetime.domain.lateness.recent_slots import SLOT, TOLD_SLOTS, SlotFigures, SlotRecorder

NOW = Instant(1_000 * SLOT + 1)


def test_a_slot_counts_the_attempts_that_ended_within_it() -> None:
    recorder = SlotRecorder()
    for number, completed in ((997, True), (999, True), (999, False), (1_000, True)):
        recorder.record(Instant(number * SLOT), 5, completed=completed)
    told = recorder.last_slots(NOW)
    assert [(slot.number, slot.attempts, slot.completed) for slot in told] == [
        (997, 1, 1),
        (998, 0, 0),
        (999, 2, 1),
    ]
    assert told[1] == SlotFigures(number=998)


def test_a_slot_is_not_told_before_it_is_over() -> None:
    recorder = SlotRecorder()
    recorder.record(NOW, 5, completed=True)
    assert not any(slot.attempts for slot in recorder.last_slots(NOW))
    assert recorder.last_slots(Instant(NOW + SLOT))[-1].attempts == 1


@pytest.mark.parametrize("largest", [7, 90, 4_000, 2_000_000, 3_600_000_000])
def test_percentiles_are_off_by_less_than_a_sixteenth(largest: int) -> None:
    recorder = SlotRecorder()
    chosen = random.Random(largest)
    values = sorted(chosen.randint(0, largest) for _ in range(1_000))
    for late in values:
        recorder.record(Instant(999 * SLOT), late, completed=True)
    slot = recorder.last_slots(NOW)[-1]
    assert slot.p50_ms == pytest.approx(values[499] / 1_000, rel=1 / 16, abs=0.001)
    assert slot.p99_ms == pytest.approx(values[989] / 1_000, rel=1 / 16, abs=0.001)


def test_a_timer_that_was_early_by_the_clock_counts_as_punctual() -> None:
    recorder = SlotRecorder()
    recorder.record(Instant(999 * SLOT), -400, completed=True)
    assert recorder.last_slots(NOW)[-1].p99_ms == 0


def test_old_slots_are_forgotten() -> None:
    recorder = SlotRecorder()
    for number in range(900, 1_000):
        recorder.record(Instant(number * SLOT), 5, completed=True)
    assert all(slot.attempts for slot in recorder.last_slots(NOW))
    assert not any(
        slot.attempts for slot in recorder.last_slots(Instant((900 + TOLD_SLOTS) * SLOT))
    )
