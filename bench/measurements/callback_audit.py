"""Checks callbacks: each arrives once, on its first attempt, never early."""

from collections.abc import Iterable

import msgspec

from bench.harness.receiver import Callback


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    expected: int
    lost: int
    early: int
    duplicates: int
    """Callbacks after the first of their timer."""
    repeats: int
    """Callbacks whose Timer-Attempt is not 1."""
    shared_ids: int
    """Timers whose webhook-id is missing or belongs to another timer too."""
    strangers: int
    """Callbacks of timers that were not created."""

    def faults(self, what: str) -> list[str]:
        counts = {
            "lost": self.lost,
            "early": self.early,
            "delivered more than once": self.duplicates,
            "without Timer-Attempt: 1": self.repeats,
            "without a unique webhook-id": self.shared_ids,
            "of unknown timers": self.strangers,
        }
        return [f"{what}: {count} {kind}" for kind, count in counts.items() if count]


def audit(callbacks: Iterable[Callback], first_number: int, count: int) -> Audit:
    expected = range(first_number, first_number + count)
    ids_by_number: dict[int, str] = {}
    early = duplicates = repeats = strangers = 0
    for callback in callbacks:
        early += callback.arrived_us < callback.due_us
        repeats += callback.attempt != 1
        if callback.number not in expected:
            strangers += 1
        elif callback.number in ids_by_number:
            duplicates += 1
        else:
            ids_by_number[callback.number] = callback.webhook_id
    distinct_ids = len({each for each in ids_by_number.values() if each})
    return Audit(
        expected=count,
        lost=count - len(ids_by_number),
        early=early,
        duplicates=duplicates,
        repeats=repeats,
        shared_ids=len(ids_by_number) - distinct_ids,
        strangers=strangers,
    )
