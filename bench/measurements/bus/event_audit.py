"""Checks events: each arrives once, never early, with its command's correlation id."""

from collections.abc import Iterable

import msgspec

from bench.harness.load_generator import EvenInstants
from bench.measurements.bus.envelopes import correlation_of
from bench.measurements.bus.event_listener import Event


class EventAudit(msgspec.Struct, frozen=True, kw_only=True):
    expected: int
    lost: int
    early: int
    """Events whose arrival or `reachedAt` is before the due instant."""
    duplicates: int
    """Events after the first of their timer."""
    uncorrelated: int
    """Events without the correlation id of their command."""
    shared_ids: int
    """Timers whose envelope id belongs to another timer too."""
    strangers: int
    """Events of timers that were not scheduled."""

    def faults(self, what: str) -> list[str]:
        counts = {
            "lost": self.lost,
            "early": self.early,
            "published more than once": self.duplicates,
            "without their correlation id": self.uncorrelated,
            "without a unique envelope id": self.shared_ids,
            "of unknown timers": self.strangers,
        }
        return [f"{what}: {count} {kind}" for kind, count in counts.items() if count]


def audit_events(
    events: Iterable[Event], instants: EvenInstants, first_number: int, count: int
) -> EventAudit:
    expected = range(first_number, first_number + count)
    ids_by_number: dict[int, str] = {}
    early = duplicates = uncorrelated = strangers = 0
    for event in events:
        if event.number not in expected:
            strangers += 1
            continue
        due_us = instants.due_us(event.number - first_number)
        early += min(event.reached_us, event.arrived_us) < due_us
        uncorrelated += event.correlation_id != correlation_of(event.number)
        if event.number in ids_by_number:
            duplicates += 1
        else:
            ids_by_number[event.number] = event.envelope_id
    return EventAudit(
        expected=count,
        lost=count - len(ids_by_number),
        early=early,
        duplicates=duplicates,
        uncorrelated=uncorrelated,
        shared_ids=len(ids_by_number) - len(set(ids_by_number.values())),
        strangers=strangers,
    )
